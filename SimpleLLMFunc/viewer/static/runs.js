// The list of runs: search, filters, pages, and what is new while one looks.

import { get } from "./api.js";
import { h, icon, show } from "./dom.js";
import { clock, count, moment, oneLine, seconds, short, usd } from "./format.js";
import { t } from "./i18n.js";

const PAGE = 50;
const SPANS = { hour: 3600, day: 86400, week: 7 * 86400, month: 30 * 86400 };
const FIELDS = ["text", "function", "version", "model", "status", "span", "session"];

export function statusBadge(status) {
  const kind = { ok: "ok", error: "error", running: "running", cancelled: "", lost: "" }[status] ?? "";
  return h("span.badge", { class: kind }, t("status." + status));
}

export function answerOf(run) {
  return run.status === "error" ? run.error + (run.error_text ? ": " + run.error_text : "") : run.answer;
}

export async function runsPage(frame) {
  frame.title(t("nav.runs"));
  const params = frame.query();
  const state = Object.fromEntries(FIELDS.map((name) => [name, params.get(name) || ""]));
  let before = []; // the pages gone through, to come back
  let page = null;
  let selected = -1;
  let seq = 0;

  const find = h("input", { type: "search", value: state.text, placeholder: t("runs.search"), "aria-label": t("runs.search") });
  const filters = h("div.filters");
  const news = h("div.news", { "aria-live": "polite" });
  const body = h("div");
  show(frame.main, h("h1.offscreen", t("nav.runs")), filters, news, body);

  const choices = await get("filters", { function: state.function }, frame.signal);
  drawFilters(choices);
  await load("");
  poll();

  frame.keys([
    ["/", () => find.focus()],
    ["j", () => move(1)],
    ["k", () => move(-1)],
    ["ArrowDown", () => move(1)],
    ["ArrowUp", () => move(-1)],
    ["Enter", () => open()],
    ["n", () => page?.next && next()],
    ["p", () => before.length && previous()],
  ]);

  function drawFilters({ functions, models, versions, statuses }) {
    const pick = (name, values, labels) =>
      h("select", { "aria-label": t("runs." + name), onchange: (event) => change(name, event.target.value) },
        h("option", { value: "", selected: !state[name] }, t("runs.any." + name)),
        values.map((value, at) => h("option", { value, selected: state[name] === value }, labels ? labels[at] : value)));
    let waiting;
    find.oninput = () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => change("text", find.value.trim()), 220);
    };
    show(filters,
      h("div.find", icon("search"), find),
      pick("function", functions),
      state.function && pick("version", versions, versions.map((version) => version.slice(0, 8))),
      pick("model", models),
      pick("status", statuses, statuses.map((status) => t("status." + status))),
      pick("span", Object.keys(SPANS), Object.keys(SPANS).map((name) => t("span." + name))),
      state.session && h("button", { title: t("runs.session.away"), onclick: () => { change("session", ""); drawFilters({ functions, models, versions, statuses }); } }, t("runs.session", { session: oneLine(state.session, 40) }), " ×"));
  }

  function query() {
    const { span, ...rest } = state;
    return { ...rest, since: span ? Math.floor(Date.now() / 1000) - SPANS[span] : "", limit: PAGE };
  }

  async function change(name, value) {
    if (state[name] === value) return;
    state[name] = value;
    if (name === "function") {
      state.version = "";
      drawFilters(await get("filters", { function: value }, frame.signal));
    }
    const params = new URLSearchParams(FIELDS.filter((field) => state[field]).map((field) => [field, state[field]]));
    frame.requery(params);
    before = [];
    await load("");
    if (name === "text") find.focus();
  }

  async function load(after) {
    try {
      const fresh = await get("runs", { ...query(), after }, frame.signal);
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
      const isFiltered = FIELDS.some((name) => state[name]);
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
        h("thead", h("tr", ["status", "function", "answer", "seconds", "tokens", "cost", "model", "time"].map((name) =>
          h("th", { class: ["seconds", "tokens", "cost"].includes(name) ? "number" : "" }, t("column." + name))))),
        h("tbody", rows))),
      h("div.pager",
        h("span", t("runs.shown", { first: count(first), last: count(first + rows.length - 1), total })),
        h("span.space"),
        h("button", { disabled: !before.length, onclick: previous }, icon("left"), t("runs.newer")),
        h("button", { disabled: !page.next, onclick: next }, t("runs.older"), icon("right"))));
    mark();
  }

  function row(run, at) {
    const noted = marks(run);
    return h("tr.link", { "data-at": at, tabIndex: 0, onclick: (event) => { if (!event.target.closest("a")) { selected = at; open(); } }, onfocus: () => { selected = at; mark(); },
      onkeydown: (event) => { if (event.key === "Enter" && event.target === event.currentTarget) { event.stopPropagation(); selected = at; open(); } } },
      h("td", statusBadge(run.status)),
      h("td.name", h("a", { to: "/run/" + run.id }, run.function || "–")),
      h("td.text", h("div.line", { class: run.status === "error" ? "bad" : "", title: oneLine(answerOf(run), 400) }, oneLine(answerOf(run) || run.question, 200)), answerOf(run) && run.question && h("div.line.asked", { title: oneLine(run.question, 400) }, oneLine(run.question, 200)), noted.length > 0 && h("div.marks", noted)),
      h("td.number", { "data-label": "" }, seconds(run.seconds)),
      h("td.number", { "data-label": t("column.tokens") }, short(run.input_tokens) + " + " + short(run.output_tokens)),
      h("td.number", { "data-label": run.cost === null ? null : "" }, run.cost === null ? h("span.faint", "–") : usd(run.cost)),
      h("td.nowrap.quiet", run.model),
      h("td.nowrap.quiet", { title: moment(run.started) }, clock(run.started)));
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

  // What changed since the page was read: lines that are shown are drawn anew, new ones are announced, or put on top.
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
    // Nothing moves under the hand of somebody who reads on, searches or goes through the list.
    if (!before.length && selected < 0 && window.scrollY < 200) load("");
    else if (!news.childElementCount) {
      news.append(h("button", { onclick: () => { before = []; load(""); } }, t("runs.new")));
    }
  }
}

export function marks(run) {
  return [
    run.kind && run.kind !== "function" && h("span.tag", t("kind." + run.kind)),
    run.reasks > 0 && h("span.tag.warn", { title: t("mark.reasks.title") }, t("mark.reasks", { count: run.reasks })),
    run.repairs > 0 && h("span.tag", { title: t("mark.repairs.title") }, t("mark.repairs", { count: run.repairs })),
    run.failed_tries > 0 && h("span.tag.warn", t("mark.tries", { count: run.failed_tries })),
    run.tool_calls > 0 && h("span.tag.tool", t("mark.tools", { count: run.tool_calls })),
    run.cached && h("span.tag.accent", t("mark.cached")),
  ].filter(Boolean).flatMap((mark) => [mark, " "]);
}
