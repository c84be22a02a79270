// Filters and order of the list of runs: fields, address, and the views that the browser stores.

import { h, icon, show } from "./dom.js";
import { oneLine } from "./format.js";
import { t } from "./i18n.js";

const KEY = "simplellmfunc-views";
const SPANS = { hour: 3600, day: 86400, week: 7 * 86400, month: 30 * 86400 };
const BAR = ["text", "function", "version", "model", "status", "span"];
const TEXTS = ["session", "user", "error", "tag"];
const FLAGS = ["asked_again", "repaired", "failed_tries", "marked"];
const RANGES = [["min_seconds", "max_seconds"], ["min_cost", "max_cost"], ["since", "until"]];
const MORE = [...TEXTS, "thumb", ...FLAGS, ...RANGES.flat()];
const FIELDS = [...BAR, ...MORE, "sort", "ascending"];

export function stateOf(params) {
  return Object.fromEntries(FIELDS.map((name) => [name, params.get(name) || ""]));
}

export function paramsOf(state) {
  return new URLSearchParams(FIELDS.filter((name) => state[name]).map((name) => [name, state[name]]));
}

export function isNarrowed(state) {
  return [...BAR, ...MORE].some((name) => state[name]);
}

// The query for the server: times in seconds since the epoch.
export function queryOf({ span, since, until, ...rest }) {
  const epoch = (text) => (text ? new Date(text).getTime() / 1000 || "" : "");
  return { ...rest, since: epoch(since) || (span ? Math.floor(Date.now() / 1000) - SPANS[span] : ""), until: epoch(until) };
}

function keptViews() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) || [];
  } catch {
    return [];
  }
}

function keepViews(views) {
  try {
    localStorage.setItem(KEY, JSON.stringify(views));
  } catch {
    // Without storage in the browser.
  }
}

// bar: the fields above the list. `change(given)` sets some values; `replace(state)` sets the whole state.
export function filterBar({ change, replace }) {
  const find = h("input", { type: "search", placeholder: t("runs.search"), "aria-label": t("runs.search") });
  const bar = h("div.filters");
  const chips = h("div.chips");
  const panel = h("div.card.more", { id: "more-filters", hidden: true });
  let state = stateOf(new URLSearchParams());
  let choices = { functions: [], models: [], versions: [], statuses: [], errors: [], users: [], sessions: [], tags: [] };
  let waiting;
  find.oninput = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => change({ text: find.value.trim() }), 220);
  };

  function pick(name, values, labels) {
    return h("select", { "aria-label": t("runs." + name), onchange: (event) => change({ [name]: event.target.value }) },
      h("option", { value: "", selected: !state[name] }, t("runs.any." + name)),
      values.map((value, at) => h("option", { value, selected: state[name] === value }, labels ? labels[at] : value)));
  }

  function field(name, input) {
    input.id = "filter-" + name;
    input.setAttribute("name", name);
    return h("div.field", h("label", { for: input.id }, t("filter." + name)), input);
  }

  function text(name, values) {
    const list = h("datalist", { id: "known-" + name }, values.map((value) => h("option", { value })));
    return [field(name, h("input", { value: state[name], list: list.id, autocomplete: "off", onchange: (event) => change({ [name]: event.target.value.trim() }) })), list];
  }

  function range(name) {
    const isTime = name === "since" || name === "until";
    const kind = isTime ? { type: "datetime-local" } : { type: "number", min: "0", step: "any" };
    return field(name, h("input", { ...kind, value: state[name], onchange: (event) => change({ [name]: event.target.value, ...(isTime ? { span: "" } : {}) }) }));
  }

  function draw() {
    const { functions, models, versions, statuses } = choices;
    const views = keptViews();
    const active = MORE.filter((name) => state[name]).length;
    if (document.activeElement !== find) find.value = state.text;
    const more = h("button", { "aria-expanded": String(!panel.hidden), "aria-controls": panel.id, onclick: () => { panel.hidden = !panel.hidden; more.setAttribute("aria-expanded", String(!panel.hidden)); if (!panel.hidden) panel.querySelector("input, select").focus(); } },
      t("filter.more"), active > 0 && h("span.count", String(active)));
    show(bar,
      h("div.find", icon("search"), find),
      pick("function", functions),
      state.function && pick("version", versions, versions.map((version) => version.slice(0, 8))),
      pick("model", models),
      pick("status", statuses, statuses.map((status) => t("status." + status))),
      pick("span", Object.keys(SPANS), Object.keys(SPANS).map((name) => t("span." + name))),
      more,
      h("select.phone", { "aria-label": t("sort"), onchange: (event) => change({ sort: event.target.value, ascending: "" }) },
        ["", "seconds", "tokens", "cost"].map((name) => h("option", { value: name, selected: state.sort === name }, t("sort.by." + (name || "started"))))),
      (views.length > 0 || isNarrowed(state) || state.sort) && h("select", { "aria-label": t("views"), onchange: (event) => view(event.target, views) },
        h("option", { value: "" }, t("views")),
        views.map((each, at) => h("option", { value: String(at) }, each.name)),
        (isNarrowed(state) || state.sort) && h("option", { value: "save" }, t("views.save")),
        views.length > 0 && h("option", { value: "away" }, t("views.away"))));
    show(panel, h("div.body.grid",
      text("session", choices.sessions), text("user", choices.users), text("error", choices.errors), text("tag", choices.tags),
      field("thumb", h("select", { onchange: (event) => change({ thumb: event.target.value }) }, ["", "up", "down"].map((value) => h("option", { value, selected: state.thumb === value }, t("thumb." + (value || "any")))))),
      FLAGS.map((name) => field(name, h("select", { onchange: (event) => change({ [name]: event.target.value }) }, [["", "flag.any"], ["1", "flag.yes"], ["0", "flag.no"]].map(([value, key]) => h("option", { value, selected: state[name] === value }, t(key)))))),
      RANGES.flat().map(range)));
    show(chips, MORE.filter((name) => state[name]).map((name) => h("button.chip", { title: t("filter.away"), onclick: () => change({ [name]: "" }) },
      t("filter." + name) + ": " + said(name, state[name]), " ×")),
    isNarrowed(state) && h("button.plain.small", { onclick: () => replace(stateOf(new URLSearchParams())) }, t("filter.none")));
  }

  function said(name, value) {
    if (FLAGS.includes(name)) return t(value === "1" ? "flag.yes" : "flag.no");
    return name === "thumb" ? t("thumb." + value) : oneLine(value.replace("T", " "), 40);
  }

  function view(select, views) {
    const chosen = select.value;
    select.value = "";
    if (chosen === "save") nameView(views);
    else if (chosen === "away") {
      keepViews([]);
      draw();
    } else if (chosen !== "") replace(stateOf(new URLSearchParams(views[Number(chosen)].query)));
  }

  function nameView(views) {
    const name = h("input", { "aria-label": t("views.name"), placeholder: t("views.name"), required: true });
    const box = h("dialog", { "aria-label": t("views.save") },
      h("form", { onsubmit: (event) => { event.preventDefault(); box.close("kept"); } }, h("h2", t("views.save")), h("div.row", name, h("button.first", { type: "submit" }, t("save")), h("button", { type: "button", onclick: () => box.close() }, t("close")))));
    box.addEventListener("close", () => {
      if (box.returnValue === "kept" && name.value.trim()) keepViews([...views.filter((each) => each.name !== name.value.trim()), { name: name.value.trim(), query: paramsOf(state).toString() }]);
      box.remove();
      draw();
    });
    document.body.append(box);
    box.showModal();
    name.focus();
  }

  return {
    find, box: h("div", bar, chips, panel),
    draw(newState, newChoices) {
      state = newState;
      choices = newChoices || choices;
      const focused = panel.contains(document.activeElement) ? document.activeElement.id : null;
      draw();
      if (focused) document.getElementById(focused)?.focus();
    },
  };
}
