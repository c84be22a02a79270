// Maps over rows: progress, failures by kind, and the rows.

import { get, segment } from "./api.js";
import { h, icon, show } from "./dom.js";
import { ago, count, moment, oneLine, percent, seconds, short, usd } from "./format.js";
import { t } from "./i18n.js";
import { rowKeys } from "./functions.js";
import { textOrJson } from "./messages.js";

export async function mapsPage(frame) {
  frame.title(t("nav.maps"));
  const { maps } = await get("maps", {}, frame.signal);
  if (!maps.length) {
    show(frame.main, h("div.card.empty", h("h2", t("maps.none")), h("p", t("maps.none.text")), h("pre.mono", "simplellmfunc view runs.sqlite --checkpoint run.sqlite")));
    return;
  }
  const body = h("div.stack");
  show(frame.main, h("div.head", h("h1", t("nav.maps"))), body);
  draw(maps);
  frame.keys(rowKeys(frame.main));
  again(frame, 2500, async () => draw((await get("maps", {}, frame.signal)).maps));

  function draw(found) {
    show(body, found.map((map) => h("a.card.plainlink", { to: "/map/" + map.number }, h("div.body.stack",
      h("div.head.tight", h("h2", map.name), map.functions.map((name) => h("span.tag", name)), map.writer && h("span.badge.running", t("maps.running")), h("span.quiet.small.end", map.latest ? ago(map.latest) : "")),
      map.problem ? h("p.faint", map.problem) : progress(map)))));
  }
}

function progress(map) {
  const all = map.values + map.errors;
  // Where the number of rows is unknown, the bar shows only values and errors.
  const known = map.progress;
  const share = known ? known.share * 100 : 100;
  const done = h("span.done");
  const failed = h("span.failed");
  done.style.width = (all ? (map.values / all) * share : 0) + "%";
  failed.style.width = (all ? (map.errors / all) * share : 0) + "%";
  return h("div.stack.close", h("div.meter", { role: "img", "aria-label": t("maps.counts", { values: count(map.values), errors: count(map.errors) }) }, done, failed),
    h("p.quiet", t("maps.counts", { values: count(map.values), errors: count(map.errors) }), map.errors > 0 && h("span.bad", " (" + percent(map.errors / all) + ")")),
    known && h("p.quiet.small", t("maps.far", { share: Math.floor(share), done: count(known.done), total: count(known.total) }), known.seconds_left !== null && ", " + t("maps.left", { time: seconds(known.seconds_left) })));
}

async function again(frame, pause, work) {
  while (!frame.signal.aborted) {
    await new Promise((done) => setTimeout(done, pause));
    if (frame.signal.aborted) return;
    if (document.hidden) continue;
    try {
      await work();
    } catch {
      // Retried after the same pause.
    }
  }
}

export async function mapPage(frame, number) {
  let map = await get("maps/" + segment(number), {}, frame.signal);
  frame.title(map.name);
  const state = { error: "", before: [] };
  const top = h("div.stack");
  const rows = h("div");
  show(frame.main,
    h("a.back", { to: "/maps" }, icon("left"), t("nav.maps")),
    h("div.head", h("div", h("h1", map.name), h("p.faint.small.mono", map.path))),
    h("div.stack", top, rows));
  frame.keys([["u", () => frame.go("/maps")], ["n", () => rows.querySelector("[data-next]:not(:disabled)")?.click()], ["p", () => rows.querySelector("[data-previous]:not(:disabled)")?.click()]]);
  drawTop();
  await load(null);
  again(frame, 2500, async () => {
    const fresh = await get("maps/" + segment(number), {}, frame.signal);
    const isSame = fresh.values === map.values && fresh.errors === map.errors && fresh.writer === map.writer;
    map = fresh;
    if (isSame) return;
    drawTop();
    if (!state.before.length && !rows.querySelector("details[open]")) await load(null);
  });

  function drawTop() {
    if (map.problem) {
      show(top, h("div.hint", map.problem));
      return;
    }
    const most = Math.max(1, ...map.kinds.map((each) => each.count));
    const tokens = map.versions.reduce((sum, each) => sum + each.input_tokens + each.output_tokens, 0);
    // A sum without the unknown parts would be too low.
    const costs = map.versions.filter((each) => each.values + each.errors > 0).map((each) => each.cost);
    const pace = map.began && map.latest > map.began ? (map.values + map.errors) / ((map.latest - map.began) / 60) : null;
    show(top,
      h("section.card", h("div.body.stack", progress(map), h("dl.facts",
        [[t("maps.state"), map.writer ? h("span", h("span.badge.running", t("maps.running")), " ", h("span.quiet.small", map.writer)) : t("maps.still")],
          [t("maps.pace"), pace === null ? "–" : t("maps.per.minute", { count: pace < 10 ? pace.toFixed(1) : count(Math.round(pace)) })],
          [t("column.tokens"), short(tokens)], [t("column.cost"), costs.length && !costs.includes(null) ? usd(costs.reduce((sum, cost) => sum + cost, 0)) : "–"],
          [t("maps.began"), moment(map.began)], [t("maps.latest"), moment(map.latest)]]
          .map(([name, value]) => h("div", h("dt", name), h("dd", value)))))),
      map.kinds.length > 0 && h("section.card", h("div.title", h("h2", t("maps.failures"))), h("div.body", h("ul.kinds", map.kinds.map((each) => {
        const bar = h("div.bar");
        bar.style.width = (each.count / most) * 100 + "%";
        return h("li", h("a", { to: "/map/" + number, onclick: (event) => { event.preventDefault(); state.error = each.kind; state.before = []; load(null); } }, each.kind), h("div", bar), h("span.number", count(each.count)));
      })))),
      map.versions.length > 1 && h("section.card.scroll", h("table.table", h("thead", h("tr", ["maps.version", "column.model", "maps.values", "column.errors", "column.tokens", "column.cost", "maps.began"].map((key) => h("th", t(key))))),
        h("tbody", map.versions.map((each) => h("tr", h("td.name", each.name), h("td", each.model), h("td", count(each.values)), h("td", count(each.errors)), h("td", short(each.input_tokens + each.output_tokens)), h("td", usd(each.cost)), h("td.nowrap.quiet", moment(each.began))))))));
  }

  async function load(before) {
    const query = { error: state.error, before: before ?? "" };
    let page;
    try {
      page = await get("maps/" + segment(number) + "/rows", query, frame.signal);
    } catch (error) {
      show(rows, h("div.hint", error.message));
      return;
    }
    const pick = h("select", { "aria-label": t("maps.failures"), onchange: (event) => { state.error = event.target.value; state.before = []; load(null); } },
      h("option", { value: "", selected: !state.error }, t("maps.all")), h("option", { value: "*", selected: state.error === "*" }, t("maps.failed")),
      map.kinds.map((each) => h("option", { value: each.kind, selected: state.error === each.kind }, each.kind)));
    show(rows,
      h("section.card", h("div.title", h("h2", t("maps.rows")), h("div.actions", pick)),
        page.rows.length ? h("ul.rows", page.rows.map(rowView)) : h("div.empty", h("p", t("maps.no.rows")))),
      h("div.pager", h("span.space"),
        h("button", { "data-previous": true, disabled: !state.before.length, onclick: () => load(state.before.pop() || null) }, icon("left"), t("runs.newer")),
        h("button", { "data-next": true, disabled: page.next === null, onclick: () => { state.before.push(before); load(page.next); } }, t("runs.older"), icon("right"))));
  }

  function rowView(row) {
    const shown = row.error ? row.message : typeof row.value === "string" ? row.value : JSON.stringify(row.value);
    return h("li", h("details", h("summary", h("span.number.faint", "#" + row.id), " ", row.error ? h("span.tag.bad", row.error) : "", row.damaged && h("span.tag.bad", t("maps.damaged")), " ", h("span", { class: row.error ? "bad" : "" }, oneLine(shown, 180))),
      h("div.two.inner", h("div", h("h3", t("maps.given")), textOrJson(row.given)), h("div", h("h3", t(row.error ? "maps.error" : "maps.value")), textOrJson(row.error ? row.message : row.value))),
      h("p.faint.small.inner", moment(row.at), " · ", t("play.tokens", { tokens: count(row.input_tokens + row.output_tokens) }), row.cost === null ? "" : " · " + usd(row.cost))));
  }
}
