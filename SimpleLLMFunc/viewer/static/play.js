// The playground: a function with arguments, in one column or two, and over a set of cases.

import { get, segment } from "./api.js";
import { caseSet } from "./caseset.js";
import { h, icon, show } from "./dom.js";
import { formOf } from "./form.js";
import { t } from "./i18n.js";
import { omitted } from "./messages.js";
import { columnOf, compared } from "./variant.js";

export function notAllowed(frame) {
  show(frame.main, h("div.card.empty", h("h2", t("play.off")), h("p", t("play.off.text")), h("pre.mono", "simplellmfunc view runs.sqlite --allow-run my_module")));
}

export async function playgroundPage(frame) {
  frame.title(t("nav.play"));
  if (!frame.info.functions) return notAllowed(frame);
  const { functions } = await get("play", {}, frame.signal);
  show(frame.main, h("div.head", h("h1", t("nav.play"))), h("div.pick", functions.map((each) =>
    each.problem
      ? h("div.card", h("div.body", h("h2.quiet", each.name), h("p.faint", each.problem)))
      : h("a.card", { to: "/play/" + segment(each.name) }, h("h2", each.name), h("code.small.quiet", each.signature), h("p", each.docstring)))));
}

export async function playPage(frame, name) {
  frame.title(name);
  if (!frame.info.functions) return notAllowed(frame);
  const { functions, models } = await get("play", {}, frame.signal);
  const made = functions.find((each) => each.name === name);
  if (!made || made.problem) {
    show(frame.main, h("div.card.empty", h("h2", t("play.unknown")), h("p", made ? made.problem : name)));
    return;
  }
  let earlier = null; // {value, title, seconds, tokens, cost}
  let given = null;
  const from = frame.query().get("run");
  if (from) {
    const run = await get("runs/" + segment(from), {}, frame.signal).catch(() => null);
    if (run) {
      if (run.arguments && typeof run.arguments === "object" && !omitted(run.arguments)) given = run.arguments;
      earlier = {
        value: run.value ?? parsed(run.answer), title: t("play.earlier.run", { run: run.summary.id }), seconds: run.summary.seconds,
        tokens: run.summary.input_tokens + run.summary.output_tokens, cost: run.summary.cost, version: run.summary.version,
      };
    }
  }
  const form = formOf(made.schema, given);
  const start = h("button.first", { type: "submit" }, icon("play"), t("play.run"));
  const stop = h("button", { type: "button", hidden: true, onclick: () => running?.abort() }, icon("stop"), t("play.stop"));
  const second = h("button", { type: "button", onclick: () => setColumns(columns.length === 1 ? 2 : 1) });
  const area = h("div");
  const between = h("div");
  const columns = [columnOf(frame, made, models, "", earlier)];
  let running = null;

  const asked = h("section.card", h("div.title", h("h2", t("run.arguments"))), h("div.body",
    h("form.form", { onsubmit: (event) => { event.preventDefault(); run(); }, onkeydown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); } } },
      form.box,
      h("div.row", start, stop, h("button", { type: "button", onclick: preview }, t("play.preview")), h("span.faint.small", h("kbd", "Ctrl"), " ", h("kbd", "Enter"))))));
  show(frame.main,
    h("a.back", { to: "/play" }, icon("left"), t("nav.play")),
    h("div.head", h("div", h("h1", made.name), h("code.small.quiet", made.signature)), h("div.actions", second)),
    earlier && earlier.version && earlier.version !== made.version && h("div.hint", t("play.changed")),
    h("div.stack", area, between, caseSet(frame, made, () => columns)));
  setColumns(1);

  function setColumns(many) {
    while (columns.length > many) columns.pop();
    while (columns.length < many) columns.push(columnOf(frame, made, models, "B", null));
    columns[0].name(many === 2 ? "A" : "");
    show(second, t(many === 2 ? "play.one.column" : "play.two.columns"));
    show(between);
    if (many === 1) show(area, h("div.two", asked, columns[0].box));
    else show(area, h("div.stack", asked, h("div.two", columns.map((column) => column.box))));
  }

  // The arguments from the form; null where a field cannot be read, and then the form says which.
  function read() {
    try {
      return { values: form.read(), changes: columns.map((column) => column.change()) };
    } catch {
      return null;
    }
  }

  async function preview() {
    const given = read();
    if (given) await Promise.all(columns.map((column, at) => column.preview(given.values, given.changes[at])));
  }

  async function run() {
    const given = running ? null : read();
    if (!given) return;
    running = new AbortController();
    frame.signal.addEventListener("abort", () => running?.abort());
    start.disabled = true;
    stop.hidden = false;
    show(between);
    const { signal } = running;
    const answers = await Promise.all(columns.map((column, at) => column.run(given.values, given.changes[at], signal)));
    running = null;
    start.disabled = false;
    stop.hidden = true;
    if (answers.length === 2 && answers.every(Boolean)) show(between, compared({ ...answers[0], title: "A" }, { ...answers[1], title: "B" }));
  }
}

function parsed(text) {
  if (typeof text !== "string") return text;
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" ? value : text;
  } catch {
    return text;
  }
}
