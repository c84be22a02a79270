// The cases of a function, run in every column of the playground: right answers, seconds, cost.

import { get, lines, segment } from "./api.js";
import { h, icon, show } from "./dom.js";
import { count, firstLine, pretty, seconds, usd } from "./format.js";
import { t } from "./i18n.js";

const MOST = 200;
const AT_A_TIME = 3; // in each column

const isJudged = (each) => Object.hasOwn(each, "expected");

// Equal JSON for objects with the same keys in any order.
function canonical(value) {
  if (Array.isArray(value)) return "[" + value.map(canonical).join(",") + "]";
  if (value && typeof value === "object") return "{" + Object.keys(value).sort().map((key) => JSON.stringify(key) + ":" + canonical(value[key])).join(",") + "}";
  return JSON.stringify(value) ?? "null";
}

function argumentsOf(given, made) {
  if (given && typeof given === "object" && !Array.isArray(given)) return given;
  const names = Object.keys(made.schema?.properties || {});
  return Object.fromEntries((Array.isArray(given) ? given : [given]).map((value, at) => [names[at], value]));
}

export function caseSet(frame, made, columnsNow) {
  const box = h("div");
  if (!frame.info.cases) return box;
  get("cases/" + segment(made.function), {}, frame.signal).then(({ cases }) => {
    if (cases.length) draw(cases.slice(0, MOST));
  }).catch((error) => !frame.signal.aborted && show(box, h("div.hint", error.message)));

  function draw(cases) {
    let running = null;
    const table = h("div.scroll");
    const said = h("div.row", { role: "status" });
    const go = h("button.first", { onclick: start }, icon("play"), t("caseset.run", { count: cases.length }));
    const stop = h("button", { hidden: true, onclick: () => running?.abort() }, icon("stop"), t("play.stop"));
    show(box, h("section.card", h("div.title", h("h2", t("report.cases")), h("span.quiet.small", t("caseset.about")), h("div.actions", go, stop)), h("div.body", said), table));

    async function start() {
      const columns = columnsNow();
      let changes;
      try {
        changes = columns.map((column) => column.change());
      } catch {
        return;
      }
      running = new AbortController();
      const { signal } = running;
      frame.signal.addEventListener("abort", () => running?.abort());
      go.disabled = true;
      stop.hidden = false;
      const names = columns.length === 2 ? ["A", "B"] : [t("play.answer")];
      const cells = cases.map(() => columns.map(() => h("td.wrap", "…")));
      show(table, h("table.table", h("thead", h("tr", h("th", t("run.arguments")), h("th", t("report.expected")), names.map((name) => h("th", name)))),
        h("tbody", cases.map((each, at) => h("tr", h("td.wrap", firstLine(pretty(each.args), 120)), h("td.wrap", isJudged(each) ? firstLine(pretty(each.expected), 120) : "–"), cells[at])))));
      const sums = columns.map(() => ({ right: 0, judged: 0, done: 0, errors: 0, seconds: 0, cost: 0 }));
      const tell = () => show(said, sums.map((sum, at) => h("span", h("strong", names[at] + ": "), t("caseset.sum", { right: sum.right, judged: sum.judged, errors: sum.errors, seconds: seconds(sum.done ? sum.seconds / sum.done : null), cost: usd(sum.cost) }))));
      const work = columns.flatMap((_, at) => {
        const waiting = cases.map((each, number) => [each, number]);
        return Array.from({ length: AT_A_TIME }, async () => {
          for (let next = waiting.shift(); next && !signal.aborted; next = waiting.shift()) {
            await one(next[0], changes[at], cells[next[1]][at], sums[at], signal);
            tell();
          }
        });
      });
      await Promise.all(work);
      for (const cell of cells.flat()) if (cell.textContent === "…") cell.textContent = "–";
      running = null;
      go.disabled = false;
      stop.hidden = true;
    }
  }

  async function one(each, change, cell, sum, signal) {
    try {
      for await (const line of lines("play/" + segment(made.name), { arguments: argumentsOf(each.args, made), change }, signal)) {
        if (line.type !== "done" && line.type !== "error") continue;
        const isError = line.type === "error";
        const isRight = !isError && isJudged(each) && canonical(line.value) === canonical(each.expected);
        sum.done += 1;
        sum.errors += isError;
        sum.judged += isJudged(each);
        sum.right += isRight;
        sum.seconds += line.seconds ?? 0;
        sum.cost += line.cost ?? 0;
        const text = isError ? line.error + ": " + line.message : pretty(line.value);
        show(cell, isJudged(each) && h("span.tag", { class: isRight ? "accent" : "bad" }, t(isRight ? "caseset.right" : "caseset.wrong")), " ",
          line.trace_id ? h("a", { to: "/run/" + segment(line.trace_id) }, firstLine(text, 120)) : firstLine(text, 120));
      }
    } catch (error) {
      if (!signal.aborted) show(cell, h("span.bad", error.message));
    }
  }

  return box;
}
