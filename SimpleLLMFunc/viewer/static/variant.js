// One column of the playground: the changes to the source, and the answer as it comes.

import { lines, post, segment } from "./api.js";
import { diffTable } from "./diff.js";
import { append, h, show } from "./dom.js";
import { count, pretty, seconds, usd } from "./format.js";
import { t } from "./i18n.js";
import { copyButton, jsonView, messagesView, repairsView, textOrJson, violationsView } from "./messages.js";

const MODES = ["auto", "native", "tool", "prompt"];

// made: the function; models: names of models in its module; earlier: an answer to compare with.
export function columnOf(frame, made, models, label, earlier) {
  const output = h("div.stack");
  const heading = h("h2");
  const id = "variant-" + (label || "A");
  const known = h("datalist", { id: id + "-models" }, models.map((value) => h("option", { value })), ["openai:", "anthropic:", "gemini:", "local"].map((value) => h("option", { value })));
  const inputs = {
    docstring: h("textarea", { id: id + "-docstring", rows: Math.min(12, Math.max(3, made.docstring.split("\n").length + 1)), value: made.docstring, oninput: tell }),
    model: h("input", { id: id + "-model", list: known.id, placeholder: made.model || t("variant.own"), autocomplete: "off", oninput: tell }),
    temperature: h("input", { id: id + "-temperature", inputmode: "decimal", value: made.temperature ?? "", autocomplete: "off", oninput: tell }),
    output_mode: h("select", { id: id + "-output_mode", onchange: tell }, [...new Set([...MODES, made.output_mode])].map((value) => h("option", { value, selected: made.output_mode === value }, value))),
    examples: h("textarea.mono", { id: id + "-examples", rows: 2, spellcheck: "false", placeholder: '[{"args": {…}, "value": …}]', oninput: tell }),
  };
  const told = h("span.tag.warn", { hidden: true });
  const wrong = h("span.wrong", { role: "alert" });
  const panel = h("details", h("summary", t("variant.change"), " ", told), h("div.form.inner",
    Object.entries(inputs).map(([name, input]) => h("div.field", h("label", { for: input.id }, t("variant." + name)), input)), known, wrong,
    h("div.row", copyButton(patch, t("variant.patch"), frame), h("button", { type: "button", onclick: reset }, t("variant.reset")))));
  const box = h("div.stack", h("section.card", h("div.title", heading, panel)), output);
  name(label);
  if (earlier) show(output, answerCard(earlier.title, earlier));
  else show(output, h("div.card.empty", h("p", t("play.none"))));

  function name(text) {
    show(heading, text);
    heading.hidden = !text;
  }

  function reset() {
    for (const [field, input] of Object.entries(inputs)) input.value = field === "examples" || field === "model" ? "" : made[field] ?? "";
    tell();
  }

  function tell() {
    let fields = [];
    try {
      fields = Object.keys(change());
    } catch {
      fields = ["…"];
    }
    told.hidden = !fields.length;
    show(told, t("variant.changed", { count: fields.length }));
  }

  // Returns the changes to the source; throws, and shows why, where a field cannot be read.
  function change() {
    wrong.textContent = "";
    const found = {};
    if (inputs.docstring.value.trim() !== made.docstring.trim()) found.docstring = inputs.docstring.value;
    if (inputs.model.value.trim()) found.model = inputs.model.value.trim();
    const temperature = inputs.temperature.value.trim();
    if (temperature !== String(made.temperature ?? "")) found.temperature = temperature === "" ? null : Number(temperature);
    if (inputs.output_mode.value !== made.output_mode) found.output_mode = inputs.output_mode.value;
    if (Number.isNaN(found.temperature)) return said(t("form.number"));
    if (inputs.examples.value.trim()) {
      try {
        found.examples = JSON.parse(inputs.examples.value);
      } catch (error) {
        return said(t("form.json") + " " + error.message);
      }
    }
    return found;
  }

  function said(text) {
    wrong.textContent = text;
    panel.open = true;
    throw new Error(text);
  }

  async function patch() {
    try {
      return (await post("play/" + segment(made.name) + "/patch", { change: change() }, frame.signal)).text;
    } catch (error) {
      wrong.textContent = error.message;
    }
  }

  async function preview(values, changes) {
    try {
      const shown = await post("play/" + segment(made.name) + "/preview", { arguments: values, change: changes }, frame.signal);
      if (shown.failed) return show(output, problem(shown.failed));
      show(output, h("section.card", h("div.title", h("h2", t("play.preview.title")),
        h("span.quiet.small", t("play.preview.tokens", { tokens: count(shown.input_tokens) }), shown.cost === null ? "" : " · " + usd(shown.cost), " · ", shown.output_mode),
        h("div.actions", copyButton(shown.curl, t("run.copy.curl"), frame))),
        h("div.body", messagesView(shown.messages), shown.tools && h("details", h("summary", t("part.tools")), jsonView(shown.tools)), shown.response_format && h("details", h("summary", t("turn.format")), jsonView(shown.response_format)))));
    } catch (error) {
      show(output, problem({ error: "", message: error.message }));
    }
  }

  // Returns the answer; null without one.
  async function run(values, changes, signal) {
    const steps = h("div.steps");
    const live = h("div.live", { "aria-live": "polite" });
    const began = performance.now();
    const watch = h("span.quiet.small");
    const tick = setInterval(() => { watch.textContent = seconds((performance.now() - began) / 1000); }, 100);
    const before = () => earlier && answerCard(earlier.title, earlier);
    show(output, h("section.card", h("div.title", h("h2", t("play.answer")), h("span.badge.running", t("status.running")), watch), h("div.body", steps, live)), before());
    let text = "";
    let answer = null;
    try {
      for await (const line of lines("play/" + segment(made.name), { arguments: values, change: changes }, signal)) {
        if (line.type === "TurnStarted") {
          text = "";
          live.textContent = "";
          if (line.turn > 1) steps.append(h("div.quiet.small", t("play.turn", { turn: line.turn })));
        } else if (line.type === "text") {
          text += line.text;
          live.append(line.text);
        } else if (line.type === "ToolCallStarted") steps.append(h("div", h("span.tag.tool", line.name), " ", h("code.small.quiet", line.arguments)));
        else if (line.type === "ToolCallFinished") steps.append(h("div.small", { class: line.failed ? "bad" : "quiet" }, line.name + " → " + pretty(line.content).slice(0, 400)));
        else if (line.type === "done") answer = finished(line);
        else if (line.type === "error") show(output, problem(line), before());
      }
    } catch (error) {
      if (signal.aborted) show(output, h("div.card.empty", h("p", t("play.stopped")), text && h("p.faint", text.slice(0, 400))), before());
      else show(output, problem({ error: "", message: error.message }), before());
    } finally {
      clearInterval(tick);
    }
    return answer;
  }

  function finished(line) {
    const now = { value: line.value, title: t("play.answer"), seconds: line.seconds, tokens: line.usage.input_tokens + line.usage.output_tokens, cost: line.cost, repairs: line.repairs, attempts: line.attempts, trace: line.trace_id };
    show(output, answerCard(now.title, now), earlier && compared(earlier, now));
    earlier = { ...now, title: t("play.earlier"), repairs: [], attempts: [] };
    return now;
  }

  return { box, name, change, preview, run };
}

function answerCard(title, answer) {
  return h("section.card", h("div.title", h("h2", title), h("span.quiet.small", [seconds(answer.seconds), t("play.tokens", { tokens: count(answer.tokens) }), usd(answer.cost)].filter((part) => part && part !== "–").join(" · ")),
    answer.trace && h("div.actions", h("a.button", { to: "/run/" + segment(answer.trace) }, t("play.open")))),
    h("div.body.stack",
      answer.repairs?.length > 0 && repairsView(answer.repairs),
      rejected(answer.attempts),
      textOrJson(answer.value)));
}

// The rejected answers, with their violations.
function rejected(attempts, isOpen) {
  return (attempts || []).filter((attempt) => attempt.violations.length).map((attempt) =>
    h("details", { open: isOpen }, h("summary", t("turn.rejected")), violationsView(attempt.violations), h("pre.code", { tabIndex: 0 }, pretty(attempt.text ?? ""))));
}

export function compared(before, after) {
  const one = pretty(before.value ?? "");
  const two = pretty(after.value ?? "");
  const pair = (key, value, shown) => before[value] !== null && before[value] !== undefined && after[value] !== null &&
    h("div", h("dt", t(key)), h("dd", shown(before[value]) + " → " + shown(after[value])));
  return h("section.card", h("div.title", h("h2", t("play.compare")), one === two && h("span.tag", t("play.same"))),
    h("div.body", h("dl.facts", pair("column.seconds", "seconds", seconds), pair("column.tokens", "tokens", count), pair("column.cost", "cost", usd))),
    diffTable([before.title, after.title], [["", one, two]]));
}

// The error, the rejected answers, and a link to the stored run.
function problem(error) {
  return h("div.stack", append(h("div.problem", { role: "alert" }), [error.error && h("strong", error.error + ": "), error.message, error.violations?.length > 0 && violationsView(error.violations)]),
    error.attempts?.length > 0 && h("section.card", h("div.title", h("h2", t("play.attempts", { count: error.attempts.length })), error.trace_id && h("div.actions", h("a.button", { to: "/run/" + segment(error.trace_id) }, t("play.open")))),
      h("div.body.stack", rejected(error.attempts, true))),
    !error.attempts?.length && error.trace_id && h("div.row", h("a.button", { to: "/run/" + segment(error.trace_id) }, t("play.open"))));
}
