// Two runs side by side: metrics, requests, answers; and two versions of a function on the same inputs.

import { get, segment } from "./api.js";
import { diffTable } from "./diff.js";
import { h, icon, show } from "./dom.js";
import { count, firstLine, moment, pretty, seconds, usd } from "./format.js";
import { t } from "./i18n.js";
import { answerOf, marks, statusBadge } from "./runs.js";
import { messagesOf } from "./spoken.js";

export async function comparePage(frame) {
  const params = frame.query();
  const [one, two] = await Promise.all(["a", "b"].map((name) => get("runs/" + segment(params.get(name) || "0"), {}, frame.signal)));
  frame.title(t("compare"));
  const title = (run) => h("a", { to: "/run/" + run.summary.id }, run.summary.function + " #" + run.summary.id);
  const titles = [title(one), title(two)];
  const swapped = "/compare?a=" + two.summary.id + "&b=" + one.summary.id;
  show(frame.main,
    h("a.back", { to: "/runs" }, icon("left"), t("nav.runs")),
    h("div.head", h("h1", t("compare.title")), h("div.actions", h("a.button", { to: swapped }, t("compare.swap")))),
    h("div.stack", facts(one, two, [title(one), title(two)]),
      h("section.card", h("div.title", h("h2", t("run.answer"))), diffTable(titles, [["", pretty(one.value ?? one.answer ?? ""), pretty(two.value ?? two.answer ?? "")]])),
      h("section.card", h("div.title", h("h2", t("compare.asked"))), diffTable([title(one), title(two)], parts(one, two)))));
  frame.keys([["u", () => frame.go("/runs")]]);
}

// A table with a column for each run; differences are marked, for numbers with the amount.
function facts(one, two, titles) {
  const a = one.summary;
  const b = two.summary;
  const rows = [
    ["column.status", statusBadge(a.status), statusBadge(b.status), a.status === b.status],
    ["column.seconds", seconds(a.seconds), seconds(b.seconds), null, a.seconds, b.seconds],
    ["column.tokens.in", count(a.input_tokens), count(b.input_tokens), null, a.input_tokens, b.input_tokens],
    ["column.tokens.out", count(a.output_tokens), count(b.output_tokens), null, a.output_tokens, b.output_tokens],
    ["column.cost", usd(a.cost), usd(b.cost), null, a.cost, b.cost],
    ["column.model", a.model, b.model, a.model === b.model],
    ["fact.version", a.version.slice(0, 8), b.version.slice(0, 8), a.version === b.version],
    ["fact.mode", one.output_mode, two.output_mode, one.output_mode === two.output_mode],
    ["compare.notable", h("span", marks(a)), h("span", marks(b)), true],
    ["column.time", moment(a.started), moment(b.started), true],
  ];
  return h("section.card.scroll", h("table.table", h("thead", h("tr", h("th"), h("th", titles[0]), h("th", titles[1]), h("th.number", t("compare.change")))),
    h("tbody", rows.map(([key, left, right, same, from, to]) => {
      const isOther = same === null ? from !== to : !same;
      return h("tr", h("th", { scope: "row" }, t(key)), h("td", left), h("td", { class: isOther ? "changed" : "" }, right), h("td.number.quiet", same === null ? change(from, to) : ""));
    }))));
}

export function change(from, to) {
  if (from === null || to === null || from === undefined || to === undefined || from === to) return "";
  if (!from) return "";
  const share = (to - from) / from;
  return (share > 0 ? "+" : "−") + Math.abs(share * 100).toFixed(Math.abs(share) < 0.1 ? 1 : 0) + " %";
}

function parts(one, two) {
  const messages = (run) => (messagesOf(run.turns[0]?.request) || run.messages || []).map((message) => "[" + message.role + "]\n" + pretty(message.content ?? "")).join("\n\n");
  const others = (run) => {
    const { messages: _, input: __, contents: ___, ...rest } = run.turns[0]?.request ?? {};
    return pretty(rest);
  };
  return [
    [t("run.arguments"), pretty(one.arguments ?? ""), pretty(two.arguments ?? "")],
    [t("view.messages"), messages(one), messages(two)],
    [t("compare.request"), others(one), others(two)],
    [t("view.text"), pretty(one.answer ?? ""), pretty(two.answer ?? "")],
  ];
}

// For the page of a function: runs of two versions with the same arguments.
export async function sameInputs(frame, box, name, before, after) {
  const { pairs } = await get("functions/" + segment(name) + "/same", { before, after }, frame.signal);
  if (!pairs.length) {
    show(box, h("p.faint.under", t("same.none")));
    return;
  }
  const mean = (at, read) => {
    const known = pairs.map((pair) => read(pair[at])).filter((value) => value !== null);
    return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
  };
  const row = (key, shown, read) => h("div", h("dt", t(key)), h("dd", shown(mean(0, read)) + " → " + shown(mean(1, read)), " ", h("span.quiet", change(mean(0, read), mean(1, read)))));
  const ordered = [...pairs].sort(([, , one], [, , two]) => Number(one) - Number(two));
  show(box, h("div.body.stack",
    h("dl.facts", h("div", h("dt", t("same.inputs")), h("dd", count(pairs.length))), h("div", h("dt", t("same.values")), h("dd", count(pairs.filter(([, , same]) => same).length))),
      h("div", h("dt", t("column.errors")), h("dd", [0, 1].map((at) => count(pairs.filter((pair) => pair[at].status === "error").length)).join(" → "))),
      row("column.seconds", seconds, (run) => run.seconds), row("column.tokens", (value) => count(value && Math.round(value)), (run) => run.input_tokens + run.output_tokens), row("column.cost", usd, (run) => run.cost)),
    h("div.scroll", h("table.table", h("thead", h("tr", ["run.arguments", "function.before", "function.after", "same.same"].map((key) => h("th", t(key).replace(/[:：]$/, ""))))),
      h("tbody", ordered.slice(0, 50).map(([one, two, same]) => h("tr", h("td.wrap", firstLine(two.question, 120)), h("td.wrap", { class: one.status === "error" ? "bad" : "" }, firstLine(answerOf(one), 120)), h("td.wrap", { class: two.status === "error" ? "bad" : same ? "" : "changed" }, firstLine(answerOf(two), 120)),
        h("td.nowrap", h("a", { to: "/compare?a=" + one.id + "&b=" + two.id }, t(same ? "same.yes" : "compare"))))))))));
}
