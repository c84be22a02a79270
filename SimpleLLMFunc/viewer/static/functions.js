// The list of functions, and one function with its versions and their metrics.

import { get, segment } from "./api.js";
import { chart, colourOf } from "./charts.js";
import { sameInputs } from "./compare.js";
import { diffTable } from "./diff.js";
import { h, icon, show } from "./dom.js";
import { ago, count, moment, percent, seconds, short, usd } from "./format.js";
import { t } from "./i18n.js";
import { jsonView } from "./messages.js";

export async function functionsPage(frame) {
  frame.title(t("nav.functions"));
  const { functions } = await get("functions", {}, frame.signal);
  if (!functions.length) {
    show(frame.main, h("div.card.empty", h("h2", t("functions.empty")), h("p", t("runs.empty.text"))));
    return;
  }
  show(frame.main, h("div.head", h("h1", t("nav.functions"))),
    h("div.card", h("table.table.cards",
      h("thead", h("tr", ["function", "versions", "runs", "errors", "reasks", "p50", "p90", "tokens", "cost", "last"].map((name) =>
        h("th", { class: ["function", "last"].includes(name) ? "" : "number" }, t("column." + name))))),
      h("tbody", functions.map((each) => {
        const m = each.metrics || {};
        return h("tr.link", { tabIndex: 0, onclick: () => frame.go("/function/" + segment(each.name)), onkeydown: (event) => { if (event.key === "Enter") frame.go("/function/" + segment(each.name)); } },
          h("td.name", h("a", { to: "/function/" + segment(each.name) }, each.name), each.kind !== "function" && [" ", h("span.tag", t("kind." + each.kind))]),
          cell("versions", count(each.versions)), cell("runs", count(each.runs)),
          cell("errors", each.errors ? h("span.bad", percent(m.error_rate ?? each.errors / each.runs)) : percent(0)),
          cell("reasks", percent(m.reask_rate)), cell("p50", seconds(m.seconds_p50)), cell("p90", seconds(m.seconds_p90)),
          cell("tokens", short((m.input_tokens || 0) + (m.output_tokens || 0))), cell("cost", usd(m.cost)),
          h("td.nowrap.quiet", { title: moment(each.last_seen) }, ago(each.last_seen)));
      })))));
  frame.keys(rowKeys(frame.main));
}

function cell(name, value) {
  return h("td.number", { "data-label": t("column." + name) }, value);
}

export function rowKeys(root) {
  const move = (step) => {
    const lines = [...root.querySelectorAll("tr.link")];
    const at = lines.indexOf(document.activeElement);
    const next = lines[Math.min(Math.max(at + step, 0), lines.length - 1)];
    if (next) next.focus();
  };
  return [["j", () => move(1)], ["k", () => move(-1)], ["ArrowDown", () => move(1)], ["ArrowUp", () => move(-1)]];
}

export async function functionPage(frame, name) {
  frame.title(name);
  const found = await get("functions/" + segment(name), {}, frame.signal);
  const { versions } = found;
  const metrics = new Map(found.metrics.map((row) => [row.version, row]));
  let after = 0;
  let before = versions.length > 1 ? 1 : null;
  const list = h("div.card.list");
  const detail = h("div.stack");
  frame.keys([["u", () => frame.go("/functions")]]);

  show(frame.main,
    h("a.back", { to: "/functions" }, icon("left"), t("nav.functions")),
    h("div.head", h("div", h("h1", name), h("p.quiet", t("function.about", { runs: count(versions.reduce((sum, each) => sum + each.runs, 0)), versions: count(versions.length) }))),
      h("div.actions", h("a.button", { to: "/runs?function=" + segment(name) }, t("function.runs")))),
    h("div.stack",
      h("div.charts", charts()),
      table(),
      h("h2", t("function.versions")),
      h("div.versions", list, detail)));
  drawList();
  drawDetail();

  function label(version) {
    return version.slice(0, 8);
  }

  function colour(version) {
    return colourOf(versions.length - 1 - versions.findIndex((each) => each.version === version));
  }

  function charts() {
    const times = [...new Set(found.series.map((row) => row.bucket))].filter((at) => at !== null).sort((a, b) => a - b);
    const order = [...versions].reverse().filter((version) => found.series.some((row) => row.version === version.version)).slice(-8);
    const lines = (value) => order.map((version) => {
      const rows = new Map(found.series.filter((row) => row.version === version.version).map((row) => [row.bucket, row]));
      return { label: label(version.version), colour: colour(version.version), values: times.map((at) => (rows.has(at) ? value(rows.get(at)) : null)) };
    });
    const each = (sum) => (row) => (row.runs ? sum(row) / row.runs : null);
    return [
      chart(frame, { title: t("chart.tokens"), times, lines: lines(each((row) => row.input_tokens + row.output_tokens)), shown: short }),
      chart(frame, { title: t("chart.cost"), times, lines: lines((row) => (row.cost === null ? null : row.cost / Math.max(row.runs - (row.cost_unknown || 0), 1))), shown: usd, none: t("chart.no.prices") }),
      chart(frame, { title: t("chart.latency"), times, lines: lines((row) => row.seconds_p50), shown: seconds }),
      chart(frame, { title: t("chart.errors"), times, lines: lines((row) => row.error_rate), shown: percent, most: 1 }),
    ];
  }

  function table() {
    const dot = (version) => {
      const mark = h("i.dot");
      mark.style.background = colour(version);
      return mark;
    };
    return h("div.card.scroll", h("table.table",
      h("thead", h("tr", ["fact.version", "column.runs", "column.errors", "column.reasks", "column.p50", "column.p90", "column.p99", "column.tokens.in", "column.tokens.out", "column.cost"].map((key, at) => h("th", { class: at ? "number" : "" }, t(key))))),
      h("tbody", versions.map((version) => {
        const m = metrics.get(version.version) || {};
        const n = Math.max(m.runs || 0, 1);
        const priced = Math.max((m.runs || 0) - (m.cost_unknown || 0), 1);
        return h("tr", h("td.nowrap", dot(version.version), h("code", label(version.version))),
          ...[count(version.runs), percent(m.error_rate), percent(m.reask_rate), seconds(m.seconds_p50), seconds(m.seconds_p90), seconds(m.seconds_p99), short((m.input_tokens || 0) / n), short((m.output_tokens || 0) / n), usd(m.cost === null || m.cost === undefined ? null : m.cost / priced)].map((value) => h("td.number", value)));
      }))),
      h("p.small.faint.under", t("function.per.run")));
  }

  function drawList() {
    const button = (version, at) => h("li", h("button", { "aria-pressed": String(at === after), onclick: () => { after = at; before = at + 1 < versions.length ? at + 1 : at > 0 ? at - 1 : null; drawList(); drawDetail(); } },
      h("code", label(version.version)), h("span.quiet.small", moment(version.first_seen)),
      h("span.small", t("function.count", { runs: count(version.runs) }), version.errors > 0 && h("span.bad", " · " + t("function.errors", { errors: count(version.errors) })))));
    show(list, h("ul", versions.map(button)));
  }

  function drawDetail() {
    const now = versions[after];
    const other = before === null ? null : versions[before];
    const pick = versions.length > 1 && h("label.quiet.small", t("function.compare"), " ",
      h("select", { onchange: (event) => { before = Number(event.target.value); drawDetail(); } },
        versions.map((version, at) => at !== after && h("option", { value: String(at), selected: at === before }, label(version.version) + " · " + moment(version.first_seen)))));
    const same = h("div");
    show(detail,
      h("section.card", h("div.title", h("h2", h("code", label(now.version))), h("span.quiet.small", t("function.seen", { first: moment(now.first_seen), last: moment(now.last_seen) })), h("div.actions", pick)),
        other
          ? diffTable([h("span", t("function.before"), " ", h("code", label(other.version))), h("span", t("function.after"), " ", h("code", label(now.version)))], parts(other, now))
          : h("div.body.stack", h("pre.code", now.signature), h("div.said", now.docstring), now.tools.length > 0 && h("details", h("summary", t("part.tools")), jsonView(now.tools)), now.schema && h("details", h("summary", t("part.types")), jsonView(now.schema)))),
      other && h("section.card.gap", h("div.title", h("h2", t("same.title"))), same));
    if (other) sameInputs(frame, same, name, other.version, now.version).catch((error) => !frame.signal.aborted && show(same, h("p.bad.under", error.message)));
  }

  function parts(one, two) {
    const json = (value) => (value === null || value === undefined || (Array.isArray(value) && !value.length) ? "" : JSON.stringify(value, null, 2));
    const signature = (text) => (text.length > 60 ? text.replace(/, (?=[*\w]+(?::| =|,|\)))/g, ",\n    ").replace(/^\(/, "(\n    ").replace(/\) ->/, "\n) ->") : text);
    return [
      [t("part.docstring"), one.docstring, two.docstring],
      [t("part.signature"), signature(one.signature), signature(two.signature)],
      [t("part.types"), json(one.schema), json(two.schema)],
      [t("part.tools"), json(one.tools), json(two.tools)],
    ];
  }
}
