// Reports of evaluate: scores with intervals, and two reports case by case.

import { get, segment } from "./api.js";
import { h, icon, place, show } from "./dom.js";
import { count, firstLine, pretty, seconds, usd } from "./format.js";
import { t } from "./i18n.js";
import { textOrJson } from "./messages.js";

export async function reportsPage(frame) {
  frame.title(t("nav.reports"));
  const { reports } = await get("reports", {}, frame.signal);
  if (!reports.length) {
    show(frame.main, h("div.card.empty", h("h2", t("reports.none")), h("p", t("reports.none.text")), h("pre.mono", "simplellmfunc view runs.sqlite --report new.json --report old.json")));
    return;
  }
  const good = reports.filter((report) => !report.problem);
  const names = [...new Set(good.flatMap((report) => Object.keys(report.scores)))];
  const compare = (first) => good.length > 1 && h("select", { "aria-label": t("function.compare"), onchange: (event) => event.target.value && frame.go("/report/" + first.number + "?with=" + event.target.value) },
    h("option", { value: "" }, t("function.compare")), good.filter((other) => other !== first).map((other) => h("option", { value: String(other.number) }, other.file)));
  show(frame.main, h("div.head", h("h1", t("nav.reports"))),
    h("div.card.scroll", h("table.table", h("thead", h("tr", ["report.file", "column.function", "column.model"].map((key) => h("th", t(key))), names.map((name) => h("th", name)), ["report.cases", "column.errors", "column.seconds", "column.cost"].map((key) => h("th.number", t(key))), h("th"))),
      h("tbody", reports.map((report) => report.problem
        ? h("tr", h("td", report.file), h("td.bad", { colspan: String(names.length + 7) }, report.problem))
        : h("tr", h("td.name", h("a", { to: "/report/" + report.number }, report.file)), h("td", report.name, " ", h("code.faint", report.version.slice(0, 8))), h("td", report.model),
          names.map((name) => h("td", interval(report.scores[name]))),
          h("td.number", count(report.cases)), h("td.number", count(report.failed)), h("td.number", seconds(report.seconds)), h("td.number", usd(report.cost)), h("td", compare(report))))))));
}

// A score with its interval, as a number and as a bar.
function interval(score) {
  if (!score) return h("span.faint", "–");
  const from = Math.max(Math.min(score.low, 1), 0) * 100;
  const to = Math.max(Math.min(score.high, 1), 0) * 100;
  return h("div.interval", h("span.number", score.mean.toFixed(3)), h("div.track", place(h("div.bar"), from, Math.max(to - from, 1)), place(h("div.mark"), Math.max(Math.min(score.mean, 1), 0) * 100)), h("span.faint.small", score.low.toFixed(2) + " – " + score.high.toFixed(2)));
}

export async function reportPage(frame, number) {
  const other = frame.query().get("with");
  const { first, second, differences, cases } = await get("reports/" + segment(number), { with: other }, frame.signal);
  frame.title(first.file);
  const names = Object.keys(second ? differences : first.scores);
  const state = { shown: second && cases.some((each) => each.change) ? "changed" : "all" };
  const list = h("ul.rows");
  const pick = h("select", { "aria-label": t("report.which"), onchange: (event) => { state.shown = event.target.value; draw(); } },
    (second ? ["changed", "worse", "better", "failed", "all"] : ["failed", "all"]).map((name) => h("option", { value: name, selected: state.shown === name }, t("report." + name))));
  show(frame.main,
    h("a.back", { to: "/reports" }, icon("left"), t("nav.reports")),
    h("div.head", h("div", h("h1", first.file, second && " → " + second.file), h("p.quiet", [first, second].filter(Boolean).map((report) => report.name + " · " + report.model + " · " + report.version.slice(0, 8)).join(" → "))), second && h("div.actions", h("a.button", { to: "/report/" + other + "?with=" + number }, t("compare.swap")))),
    h("div.stack", h("section.card.scroll", second ? differencesTable() : scoresTable()),
      h("section.card", h("div.title", h("h2", t("report.cases")), h("div.actions", pick)), list)));
  draw();

  function scoresTable() {
    return h("table.table", h("tbody", names.map((name) => h("tr", h("th", { scope: "row" }, name), h("td", interval(first.scores[name])), h("td.quiet.small", first.scores[name].method)))));
  }

  function differencesTable() {
    return h("table.table", h("thead", h("tr", h("th"), h("th.number", first.file), h("th.number", second.file), h("th.number", t("compare.change")), h("th", t("report.interval")), h("th.number", t("report.better")), h("th.number", t("report.worse")), h("th.number", t("report.p")))),
      h("tbody", names.map((name) => {
        const each = differences[name];
        const isSure = each.p < 0.05;
        return h("tr", h("th", { scope: "row" }, name), ...[each.first, each.second].map((value) => h("td.number", value.toFixed(3))),
          h("td.number", { class: !isSure ? "" : each.difference < 0 ? "bad" : "good" }, (each.difference > 0 ? "+" : "") + each.difference.toFixed(3)), h("td.nowrap.quiet", each.low.toFixed(3) + " – " + each.high.toFixed(3)), h("td.number", count(each.better)), h("td.number", count(each.worse)), h("td.number", each.p < 0.001 ? "<0.001" : each.p.toFixed(3)));
      })));
  }

  function draw() {
    const fits = { all: () => true, changed: (each) => each.change !== 0, worse: (each) => each.change < 0, better: (each) => each.change > 0, failed: (each) => each.outcomes.some((some) => some.some((outcome) => outcome.error)) }[state.shown];
    const found = cases.filter(fits);
    show(list, found.slice(0, 200).map(caseView), !found.length && h("li.empty", t("maps.no.rows")), found.length > 200 && h("li.under.faint", t("fall.more", { count: found.length - 200 })));
  }

  function caseView(each) {
    const column = (at, title) => h("div", h("h3", title), h("p.small.quiet", names.map((name, number) => name + " " + (each.scores[at][number] ?? "–")).join(" · ")),
      each.outcomes[at].map((outcome) => h("div", outcome.error ? h("p.bad", outcome.error) : textOrJson(outcome.value), Object.entries(outcome.notes).map(([name, note]) => h("p.small.quiet", name + ": " + note)))));
    return h("li", h("details", h("summary", each.change !== 0 && h("span.tag", { class: each.change < 0 ? "bad" : "accent" }, t(each.change < 0 ? "report.worse" : "report.better")), " ", h("code.faint", each.id.slice(0, 12)), " ", firstLine(pretty(each.arguments), 140), each.tags.map((tag) => [" ", h("span.tag", tag)])),
      h("div.two.inner", h("div", h("h3", t("run.arguments")), textOrJson(each.arguments)), h("div", h("h3", t("report.expected")), textOrJson(each.expected))),
      h("div.inner", { class: second ? "two" : "" }, column(0, first.file), second && column(1, second.file))));
  }
}
