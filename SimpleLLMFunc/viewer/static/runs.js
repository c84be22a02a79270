// The list of runs: search, filters, pages, live updates.

import { blob, get } from "./api.js";
import { filterBar, isNarrowed, paramsOf, queryOf, stateOf } from "./filters.js";
import { h, icon, save, show } from "./dom.js";
import { clock, count, firstLine, moment, oneLine, seconds, short, usd } from "./format.js";
import { t } from "./i18n.js";
import { addToCases, markTags } from "./verdicts.js";

const PAGE = 50;
const SORTED = { seconds: "seconds", tokens: "tokens", cost: "cost", time: "started" };

export function statusBadge(status) {
  const kind = { ok: "ok", error: "error", running: "running", cancelled: "", lost: "" }[status] ?? "";
  return h("span.badge", { class: kind }, t("status." + status));
}

export function answerOf(run) {
  return run.status === "error" ? run.error + (run.error_text ? ": " + run.error_text : "") : run.answer;
}

export async function runsPage(frame) {
  frame.title(t("nav.runs"));
  let state = stateOf(frame.query());
  let before = []; // the cursors of earlier pages, to go back
  let page = null;
  let selected = -1;
  let seq = 0;

  const filters = filterBar({ change: (given) => take({ ...state, ...given }), replace: take });
  const news = h("div.news", { "aria-live": "polite" });
  const picked = new Map(); // runs that are ticked, by id
  const choice = h("div.choice", { role: "region", "aria-label": t("picked"), hidden: true });
  const body = h("div");
  show(frame.main, h("h1.offscreen", t("nav.runs")), filters.box, news, choice, body);
  filters.draw(state);

  await Promise.all([load(""), choose()]);
  poll();

  frame.keys([
    ["/", () => filters.find.focus()],
    ["j", () => move(1)],
    ["k", () => move(-1)],
    ["ArrowDown", () => move(1)],
    ["ArrowUp", () => move(-1)],
    ["Enter", () => open()],
    ["n", () => page?.next && next()],
    ["p", () => before.length && previous()],
    ["x", () => body.querySelectorAll("tbody .tick")[Math.max(selected, 0)]?.click()],
  ]);

  async function choose() {
    filters.draw(state, await get("filters", { function: state.function }, frame.signal));
  }

  async function take(wanted) {
    if (wanted.function !== state.function) wanted.version = "";
    const isOther = wanted.function !== state.function;
    state = wanted;
    frame.requery(paramsOf(state));
    before = [];
    filters.draw(state);
    await Promise.all([load(""), isOther && choose()]);
  }

  function sortBy(name) {
    const isSame = (state.sort || "started") === name;
    take({ ...state, sort: name === "started" ? "" : name, ascending: isSame && !state.ascending ? "1" : "" });
  }

  async function load(after) {
    try {
      const fresh = await get("runs", { ...queryOf(state), limit: PAGE, after }, frame.signal);
      page = { ...fresh, after, total: fresh.total ?? page?.total ?? null };
    } catch (error) {
      if (frame.signal.aborted) return;
      show(body, h("div.card.empty", h("h2", t("error.title")), h("p", error.message)));
      return;
    }
    seq = page.seq;
    selected = -1;
    show(news);
    draw();
  }

  function next() {
    before.push(page.after);
    load(page.next);
  }

  function previous() {
    load(before.pop());
  }

  function draw() {
    if (!page.runs.length) {
      const isFiltered = isNarrowed(state);
      show(body, h("div.card.empty",
        h("h2", t(isFiltered ? "runs.none" : "runs.empty")),
        h("p", t(isFiltered ? "runs.none.text" : "runs.empty.text")),
        !isFiltered && h("pre.mono", "SIMPLELLMFUNC_TRACE=runs.sqlite python my_script.py\nsimplellmfunc view runs.sqlite")));
      return;
    }
    const rows = page.runs.map(row);
    const first = before.length * PAGE + 1;
    const total = page.total === null ? "" : page.total >= 10000 ? count(10000) + "+" : count(page.total);
    show(body,
      h("div.card", h("table.table.cards", 
        h("thead", h("tr", h("th.ticks", h("span.offscreen", t("picked"))), ["status", "function", "answer", "seconds", "tokens", "cost", "model", "time"].map(heading))),
        h("tbody", rows))),
      h("div.pager",
        h("span", t("runs.shown", { first: count(first), last: count(first + rows.length - 1), total })),
        h("span.space"),
        h("select", { "aria-label": t("export"), onchange: (event) => download(event.target) }, h("option", { value: "" }, t("export")), ["csv", "jsonl", "parquet"].map((form) => h("option", { value: form }, "." + form))),
        h("button", { disabled: !before.length, onclick: previous }, icon("left"), t("runs.newer")),
        h("button", { disabled: !page.next, onclick: next }, t("runs.older"), icon("right"))));
    mark();
  }

  function heading(name) {
    const key = SORTED[name];
    const kind = ["seconds", "tokens", "cost"].includes(name) ? "number" : "";
    if (!key) return h("th", { class: kind }, t("column." + name));
    const isSorted = (state.sort || "started") === key;
    const way = state.ascending ? "ascending" : "descending";
    return h("th", { class: kind, "aria-sort": isSorted ? way : null },
      h("button.sort", { title: t("sort"), onclick: () => sortBy(key) }, t("column." + name), h("span", { "aria-hidden": "true" }, isSorted ? (state.ascending ? " ↑" : " ↓") : "")));
  }

  function row(run, at) {
    const noted = [...marks(run), ...markTags(run).flatMap((mark) => [mark, " "])];
    return h("tr.link", { "data-at": at, tabIndex: 0, onclick: (event) => { if (!event.target.closest("a, input")) { selected = at; open(); } }, onfocus: () => { selected = at; mark(); },
      onkeydown: (event) => { if (event.key === "Enter" && event.target === event.currentTarget) { event.stopPropagation(); selected = at; open(); } } },
      h("td.ticks", h("input.tick", { type: "checkbox", checked: picked.has(run.id), "aria-label": t("pick", { run: run.id }), onchange: (event) => pick(run, event.target.checked) })),
      h("td", statusBadge(run.status)),
      h("td.name", h("a", { to: "/run/" + run.id }, run.function || "–")),
      h("td.text", h("div.line", { class: run.status === "error" ? "bad" : "", title: oneLine(answerOf(run), 400) }, firstLine(answerOf(run) || run.question)), answerOf(run) && run.question && h("div.line.asked", { title: oneLine(run.question, 400) }, firstLine(run.question)), noted.length > 0 && h("div.marks", noted)),
      h("td.number", { "data-label": "" }, seconds(run.seconds)),
      h("td.number", { "data-label": t("column.tokens") }, short(run.input_tokens) + " + " + short(run.output_tokens)),
      h("td.number", { "data-label": run.cost === null ? null : "" }, run.cost === null ? h("span.faint", "–") : usd(run.cost)),
      h("td.nowrap.quiet", run.model),
      h("td.nowrap.quiet", { title: moment(run.started) }, clock(run.started)));
  }

  function pick(run, is) {
    if (is) picked.set(run.id, run);
    else picked.delete(run.id);
    choice.hidden = picked.size === 0;
    const [one, two] = picked.keys();
    show(choice, h("strong", t("picked.count", { count: picked.size })),
      picked.size === 2 && h("a.button", { to: "/compare?a=" + one + "&b=" + two }, t("compare")),
      frame.info.cases && h("button", { onclick: () => addToCases(frame, [...picked.values()]) }, t("cases.add")),
      h("button", { onclick: () => { picked.clear(); choice.hidden = true; draw(); } }, t("picked.none")));
  }

  async function download(select) {
    const form = select.value;
    select.value = "";
    frame.note(t("export.begun"));
    try {
      save("runs." + form, await blob("export/" + form, queryOf(state), frame.signal));
    } catch (error) {
      frame.note(error.message);
    }
  }

  function mark() {
    for (const line of body.querySelectorAll("tbody tr")) {
      line.setAttribute("aria-selected", String(Number(line.dataset.at) === selected));
    }
  }

  function move(step) {
    const lines = body.querySelectorAll("tbody tr");
    if (!lines.length) return;
    selected = Math.min(Math.max(selected + step, 0), lines.length - 1);
    lines[selected].focus();
    lines[selected].scrollIntoView({ block: "nearest" });
    mark();
  }

  function open() {
    const run = page?.runs[selected];
    if (!run) return false;
    frame.go("/run/" + run.id);
  }

  // Polls for changes: visible rows are redrawn, new ones are announced, or put on top.
  async function poll() {
    let pause = 1500;
    while (!frame.signal.aborted) {
      await new Promise((done) => setTimeout(done, pause));
      if (frame.signal.aborted) return;
      if (document.hidden) continue;
      try {
        const fresh = await get("changes", { since: seq }, frame.signal);
        pause = 1500;
        if (fresh.runs.length) apply(fresh);
        seq = Math.max(seq, fresh.seq);
      } catch (error) {
        if (error.status === 401) return;
        pause = Math.min(pause * 2, 30000);
      }
    }
  }

  function apply(fresh) {
    const shown = new Map((page?.runs || []).map((run, at) => [run.id, at]));
    let isNew = false;
    for (const run of fresh.runs) {
      if (!shown.has(run.id)) {
        isNew = true;
        continue;
      }
      const at = shown.get(run.id);
      page.runs[at] = run;
      const old = body.querySelector(`tr[data-at="${at}"]`);
      if (old) {
        const had = old === document.activeElement;
        const line = row(run, at);
        old.replaceWith(line);
        if (had) line.focus();
      }
    }
    mark();
    if (!isNew) return;
    // The list does not move while the user scrolls, searches or selects.
    if (!before.length && selected < 0 && window.scrollY < 200 && !state.sort && !state.ascending) load("");
    else if (!news.childElementCount) {
      news.append(h("button", { onclick: () => { before = []; load(""); } }, t("runs.new")));
    }
  }
}

// The badges of a run; `explained` adds the meaning of each, where there is room.
export function marks(run, explained) {
  const about = (key, name) => (explained ? explained(name, key) : name);
  return [
    run.kind && run.kind !== "function" && h("span.tag", t("kind." + run.kind)),
    run.reasks > 0 && h("span.tag.warn", { title: explained ? null : t("help.reasks") }, about("reasks", t("mark.reasks", { count: run.reasks }))),
    run.repairs > 0 && h("span.tag", { title: explained ? null : t("help.repairs") }, about("repairs", t("mark.repairs", { count: run.repairs }))),
    run.failed_tries > 0 && h("span.tag.warn", { title: explained ? null : t("help.tries") }, about("tries", t("mark.tries", { count: run.failed_tries }))),
    run.tool_calls > 0 && h("span.tag.tool", t("mark.tools", { count: run.tool_calls })),
    run.cached && h("span.tag.accent", { title: explained ? null : t("help.cached") }, about("cached", t("mark.cached"))),
  ].filter(Boolean).flatMap((mark) => [mark, " "]);
}
