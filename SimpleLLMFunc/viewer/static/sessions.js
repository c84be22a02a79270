// The list of sessions, and one session as a conversation, each answer with its run.

import { get, segment } from "./api.js";
import { h, show } from "./dom.js";
import { ago, clock, count, firstLine, moment, seconds, short, usd } from "./format.js";
import { rowKeys } from "./functions.js";
import { t } from "./i18n.js";
import { omitted, textOrJson } from "./messages.js";
import { answerOf, marks, statusBadge } from "./runs.js";
import { markTags } from "./verdicts.js";

export async function sessionsPage(frame) {
  frame.title(t("nav.sessions"));
  const rows = h("tbody");
  const more = h("button", { onclick: () => load(rows.lastChild?.dataset.latest) }, t("runs.older"));
  const pager = h("div.pager", h("span.space"), more);
  show(frame.main, h("div.head", h("h1", t("nav.sessions"))),
    h("div.card", h("table.table.cards", h("thead", h("tr", ["session", "first", "user", "runs", "errors", "tokens", "cost", "last"].map((name) =>
      h("th", { class: ["runs", "errors", "tokens", "cost"].includes(name) ? "number" : "" }, t("column." + name))))), rows)), pager);
  frame.keys(rowKeys(frame.main));
  await load();

  async function load(before) {
    const { sessions } = await get("sessions", { before }, frame.signal);
    more.disabled = sessions.length < 50;
    pager.hidden = more.disabled && before === undefined;
    rows.append(...sessions.map(row));
    if (!rows.childElementCount) show(frame.main, h("div.head", h("h1", t("nav.sessions"))), h("div.card.empty", h("h2", t("sessions.empty")), h("p", t("sessions.empty.text")), h("pre.mono", 'with watching(session_id="…"):')));
  }

  function row(each) {
    const place = "/session/" + segment(each.session);
    const cell = (name, value) => h("td.number", { "data-label": t("column." + name) }, value);
    return h("tr.link", { tabIndex: 0, "data-latest": each.latest, onclick: () => frame.go(place), onkeydown: (event) => { if (event.key === "Enter") frame.go(place); } },
      h("td.name", h("a", { to: place }, each.session)),
      h("td.text", h("div.line", firstLine(each.question)), h("div.line.asked", each.functions.split(",").join(", "))),
      h("td.quiet", each.user), cell("runs", count(each.runs)), cell("errors", each.errors ? h("span.bad", count(each.errors)) : "0"),
      cell("tokens", short(each.input_tokens + each.output_tokens)), cell("cost", usd(each.cost)),
      h("td.nowrap.quiet", { title: moment(each.latest) }, ago(each.latest)));
  }
}

export async function sessionPage(frame, name) {
  frame.title(name);
  let page = await get("sessions/" + segment(name), {}, frame.signal);
  const runs = [...page.runs];
  while (page.next && runs.length < 1000) {
    page = await get("sessions/" + segment(name), { after: page.next }, frame.signal);
    runs.push(...page.runs);
  }
  const known = new Set(runs.map(({ summary }) => summary.trace_id));
  const below = byParent(runs);
  const first = runs[0].summary;
  const last = runs[runs.length - 1].summary;
  const sum = (read) => runs.reduce((total, { summary }) => total + (read(summary) ?? 0), 0);
  show(frame.main,
    h("a.back", { to: "/sessions" }, "‹ ", t("nav.sessions")),
    h("div.head", h("div", h("h1", name), h("p.quiet", [t("function.count", { runs: count(runs.length) }), moment(first.started) + " – " + clock(last.started), last.user, t("play.tokens", { tokens: count(sum((run) => run.input_tokens + run.output_tokens)) }), runs.some(({ summary }) => summary.cost !== null) && usd(sum((run) => run.cost))].filter(Boolean).join(" · "))),
      h("div.actions", h("a.button", { to: "/runs?session=" + segment(name) }, t("function.runs")))),
    h("section.card", h("ol.talk", runs.filter(({ summary }) => !known.has(summary.parent)).map(said))),
    page.next && h("p.faint", t("sessions.cut", { count: runs.length })));

  function said({ summary, arguments: given, value, text }) {
    const children = below.get(summary.trace_id) || [];
    const answer = summary.status === "error" ? h("span.bad", answerOf(summary)) : textOrJson(text ?? value);
    return h("li.exchange",
      h("div.bubble.mine", asked(given)),
      h("div.bubble", { class: summary.status === "error" ? "wrong" : "" }, answer),
      h("p.small.quiet.under", h("a", { to: "/run/" + summary.id }, summary.function), " ", summary.status !== "ok" && statusBadge(summary.status), " ", clock(summary.started) + " · " + seconds(summary.seconds), " ", marks(summary), markTags(summary),
        children.length > 0 && h("details", h("summary", t("sessions.parts", { count: children.length })), h("ul", children.map((child) => h("li", h("a", { to: "/run/" + child.summary.id }, child.summary.function), " ", seconds(child.summary.seconds), " ", firstLine(answerOf(child.summary), 90)))))));
  }
}

function byParent(runs) {
  const found = new Map();
  for (const run of runs) found.set(run.summary.parent, [...(found.get(run.summary.parent) || []), run]);
  return found;
}

// The message of a run: the arguments without the history.
function asked(given) {
  if (!given || typeof given !== "object" || omitted(given)) return textOrJson(given);
  const isHistory = (name, value) => Array.isArray(value) && (name === "history" || name === "chat_history" || value.some((each) => each && each.role));
  const others = Object.entries(given).filter(([name, value]) => !isHistory(name, value) && value !== null && !(Array.isArray(value) && !value.length));
  return textOrJson(others.length === 1 ? others[0][1] : Object.fromEntries(others));
}
