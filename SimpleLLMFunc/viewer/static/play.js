// The playground: a function, its arguments, and the answer as it comes, beside the earlier one.

import { get, lines, post, segment } from "./api.js";
import { diffTable } from "./diff.js";
import { append, h, icon, show } from "./dom.js";
import { formOf } from "./form.js";
import { count, pretty, seconds, usd } from "./format.js";
import { t } from "./i18n.js";
import { copyButton, jsonView, messagesView, omitted, repairsView, textOrJson, violationsView } from "./messages.js";

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
  const { functions } = await get("play", {}, frame.signal);
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
  const output = h("div.stack");
  const start = h("button.first", { type: "submit" }, icon("play"), t("play.run"));
  const stop = h("button", { type: "button", hidden: true, onclick: () => running?.abort() }, icon("stop"), t("play.stop"));
  let running = null;

  show(frame.main,
    h("a.back", { to: "/play" }, icon("left"), t("nav.play")),
    h("div.head", h("div", h("h1", made.name), h("code.small.quiet", made.signature))),
    earlier && earlier.version && earlier.version !== made.version && h("div.hint", t("play.changed")),
    h("div.two",
      h("section.card", h("div.title", h("h2", t("run.arguments"))), h("div.body",
        h("form.form", { onsubmit: (event) => { event.preventDefault(); run(); }, onkeydown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); } } },
          made.docstring && h("details", h("summary", t("part.docstring")), h("div.said.quiet", made.docstring)),
          form.box,
          h("div.row", start, stop, h("button", { type: "button", onclick: preview }, t("play.preview")), h("span.faint.small", h("kbd", "Ctrl"), " ", h("kbd", "Enter")))))),
      output));
  if (earlier) show(output, answerCard(earlier.title, earlier));
  else show(output, h("div.card.empty", h("p", t("play.none"))));

  async function preview() {
    let values;
    try {
      values = form.read();
    } catch {
      return;
    }
    try {
      const shown = await post("play/" + segment(name) + "/preview", { arguments: values }, frame.signal);
      if (shown.failed) return show(output, problem(shown.failed));
      show(output, h("section.card", h("div.title", h("h2", t("play.preview.title")),
        h("span.quiet.small", t("play.preview.tokens", { tokens: count(shown.input_tokens) }), shown.cost === null ? "" : " · " + usd(shown.cost), " · ", shown.output_mode),
        h("div.actions", copyButton(shown.curl, t("run.copy.curl"), frame))),
        h("div.body", messagesView(shown.messages), shown.tools && h("details", h("summary", t("part.tools")), jsonView(shown.tools)), shown.response_format && h("details", h("summary", t("turn.format")), jsonView(shown.response_format)))));
    } catch (error) {
      show(output, problem({ error: "", message: error.message }));
    }
  }

  async function run() {
    if (running) return;
    let values;
    try {
      values = form.read();
    } catch {
      return;
    }
    running = new AbortController();
    frame.signal.addEventListener("abort", () => running?.abort());
    start.disabled = true;
    stop.hidden = false;
    const steps = h("div.steps");
    const live = h("div.live", { "aria-live": "polite" });
    const began = performance.now();
    const watch = h("span.quiet.small");
    const tick = setInterval(() => { watch.textContent = seconds((performance.now() - began) / 1000); }, 100);
    const card = h("section.card", h("div.title", h("h2", t("play.answer")), h("span.badge.running", t("status.running")), watch), h("div.body", steps, live));
    show(output, card, earlier && answerCard(earlier.title, earlier));
    let text = "";
    try {
      for await (const line of lines("play/" + segment(name), { arguments: values }, running.signal)) {
        if (line.type === "TurnStarted") {
          text = "";
          live.textContent = "";
          if (line.turn > 1) steps.append(h("div.quiet.small", t("play.turn", { turn: line.turn })));
        } else if (line.type === "text") {
          text += line.text;
          live.append(line.text);
        } else if (line.type === "ToolCallStarted") steps.append(h("div", h("span.tag.tool", line.name), " ", h("code.small.quiet", line.arguments)));
        else if (line.type === "ToolCallFinished") steps.append(h("div.small", { class: line.failed ? "bad" : "quiet" }, line.name + " → " + pretty(line.content).slice(0, 400)));
        else if (line.type === "done") finished(line);
        else if (line.type === "error") show(output, problem(line), earlier && answerCard(earlier.title, earlier));
      }
    } catch (error) {
      if (running.signal.aborted) show(output, h("div.card.empty", h("p", t("play.stopped")), text && h("p.faint", text.slice(0, 400))), earlier && answerCard(earlier.title, earlier));
      else show(output, problem({ error: "", message: error.message }), earlier && answerCard(earlier.title, earlier));
    } finally {
      clearInterval(tick);
      running = null;
      start.disabled = false;
      stop.hidden = true;
    }

    function finished(line) {
      const now = { value: line.value, title: t("play.answer"), seconds: line.seconds, tokens: line.usage.input_tokens + line.usage.output_tokens, cost: line.cost, repairs: line.repairs, attempts: line.attempts, trace: line.trace_id };
      show(output, answerCard(now.title, now), earlier && compared(earlier, now));
      earlier = { ...now, title: t("play.earlier"), repairs: [], attempts: [], trace: now.trace };
    }
  }

  function answerCard(title, answer) {
    const rejected = (answer.attempts || []).filter((attempt) => attempt.violations.length);
    return h("section.card", h("div.title", h("h2", title), h("span.quiet.small", [seconds(answer.seconds), t("play.tokens", { tokens: count(answer.tokens) }), usd(answer.cost)].filter((part) => part && part !== "–").join(" · ")),
      answer.trace && h("div.actions", h("a.button", { to: "/run/" + segment(answer.trace) }, t("play.open")))),
      h("div.body.stack",
        answer.repairs?.length > 0 && repairsView(answer.repairs),
        rejected.map((attempt) => h("details", h("summary", t("turn.rejected")), violationsView(attempt.violations), h("pre.code", attempt.text))),
        textOrJson(answer.value)));
  }

  function compared(before, after) {
    const one = pretty(before.value ?? "");
    const two = pretty(after.value ?? "");
    return h("section.card", h("div.title", h("h2", t("play.compare")), one === two && h("span.tag", t("play.same"))),
      h("div.body", changes(before, after)),
      diffTable([before.title, after.title], [["", one, two]]));
  }

  function changes(before, after) {
    const pair = (key, value, shown) => before[value] !== null && before[value] !== undefined && after[value] !== null &&
      h("div", h("dt", t(key)), h("dd", shown(before[value]) + " → " + shown(after[value])));
    return h("dl.facts", pair("column.seconds", "seconds", seconds), pair("column.tokens", "tokens", count), pair("column.cost", "cost", usd));
  }

  function problem(error) {
    return append(h("div.problem", { role: "alert" }), [error.error && h("strong", error.error + ": "), error.message, error.violations?.length > 0 && violationsView(error.violations)]);
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
