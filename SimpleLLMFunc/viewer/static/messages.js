// Messages and data for people, never as markup.

import { copy, h, icon } from "./dom.js";
import { count, pretty } from "./format.js";
import { t } from "./i18n.js";
import { isMarkdown, markdownView } from "./markdown.js";

const LONG = 2400;
const LINES = 14;

export function copyButton(text, label, frame) {
  return h("button", { onclick: () => copied(text, (said) => frame.note(said)) }, icon("copy"), label);
}

async function copied(text, note) {
  const value = typeof text === "function" ? await text() : text;
  if (value === undefined) return;
  await copy(value);
  note(t("copied"));
}

// A small button next to a text.
export function copyIcon(text, what) {
  const label = t("copy", { what });
  return h("button.plain.copy", { title: label, "aria-label": label, onclick: () => copied(text, (said) => document.dispatchEvent(new CustomEvent("note", { detail: said }))) }, icon("copy"));
}

// A word with its explanation on demand.
export function term(word, key) {
  return h("details.term", h("summary", word), h("span.about", t("help." + key)));
}

export function omitted(value) {
  const about = value && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length === 1 ? value.omitted : null;
  return about && typeof about === "object" && Object.hasOwn(about, "sha256") ? about : null;
}

// JSON with a colour for each type.
export function jsonView(value) {
  const about = omitted(value);
  if (about) return h("p.faint", t("omitted", { chars: count(about.chars) }));
  const text = value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value, null, 2);
  const box = h("pre.code", { tabIndex: 0 });
  if (typeof value === "string" || text.length > 200000) {
    box.textContent = text;
    return box;
  }
  const pattern = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > at) box.append(text.slice(at, match.index));
    const kind = match[1] ? (match[2] ? "key" : "string") : "literal";
    box.append(h("span." + kind, match[1] || match[0]));
    if (match[2]) box.append(match[2]);
    at = match.index + match[0].length;
  }
  box.append(text.slice(at));
  return box;
}

// A text, indented if it is JSON.
export function textOrJson(text) {
  if (text === null || text === undefined) return h("span.faint", "–");
  if (typeof text !== "string") return jsonView(text);
  const head = text.trimStart()[0];
  if (head === "{" || head === "[") {
    try {
      return jsonView(JSON.parse(text));
    } catch {
      // Not JSON.
    }
  }
  return longText(text);
}

export function longText(text) {
  if (isMarkdown()) return markdownView(text);
  const lines = text.slice(0, LONG).split("\n");
  if (text.length <= LONG && lines.length <= LINES + 4) return h("div.said", text);
  const head = lines.slice(0, LINES).join("\n");
  const box = h("div.said", head + " …");
  const more = h("button.plain.small", { onclick: () => { box.textContent = text; more.remove(); } }, t("more", { count: count(text.length - head.length) }));
  return h("div", box, more);
}

function content(value) {
  if (value === null || value === undefined || value === "") return null;
  if (omitted(value)) return jsonView(value);
  if (typeof value === "string") return textOrJson(value);
  if (!Array.isArray(value)) return jsonView(value);
  return value.map((part) => {
    if (part && part.type === "text" && typeof part.text === "string") return longText(part.text);
    const named = part && part[part.type];
    const about = named && (named.url || named.filename || named.format);
    return h("div", h("span.tag", String((part && part.type) || "?")), " ", about ? h("code", pretty(about).slice(0, 300)) : jsonView(part));
  });
}

function toolCall(call) {
  const made = call.function || call;
  let shown = made.arguments;
  try {
    shown = JSON.stringify(JSON.parse(made.arguments), null, 1).replace(/\n\s*/g, " ");
  } catch {
    // The text of the model, unchanged.
  }
  return h("div.call", String(made.name) + "(" + pretty(shown ?? "") + ")");
}

// The copied form of a message: its text, else the whole message as JSON.
function textOf(message) {
  return typeof message.content === "string" && message.content && !message.tool_calls ? message.content : pretty(message);
}

export function messageView(message) {
  if (omitted(message) || typeof message !== "object" || message === null) return h("li.message", jsonView(message));
  const role = String(message.role || "?");
  const kind = ["system", "developer", "user", "assistant", "tool"].includes(role) ? role : "";
  const thought = message.reasoning_content || message.reasoning;
  return h("li.message", { class: kind },
    h("div.role", kind ? t("role." + kind) : role, message.name && h("code", String(message.name)), message.tool_call_id && h("code.faint", String(message.tool_call_id)), copyIcon(() => textOf(message), kind ? t("role." + kind) : role)),
    thought && h("details", h("summary", t("thoughts")), h("div.said.quiet", pretty(thought))),
    content(message.content),
    message.refusal && h("div.said.bad", pretty(message.refusal)),
    Array.isArray(message.tool_calls) && message.tool_calls.map(toolCall));
}

export function messagesView(messages) {
  if (omitted(messages)) return jsonView(messages);
  return h("ol.messages", (messages || []).map(messageView));
}

export function tabs(pairs, label) {
  const box = h("div.tabs", { role: "group", "aria-label": label });
  const buttons = pairs.map(([name, act], at) => h("button", { "aria-pressed": String(at === 0), onclick: () => choose(at) }, name));
  function choose(at) {
    buttons.forEach((button, place) => button.setAttribute("aria-pressed", String(place === at)));
    pairs[at][1]();
  }
  box.append(...buttons);
  return box;
}

export function violationsView(violations) {
  return h("ul.receipt", violations.map((each) => {
    const [path, expected, got] = Array.isArray(each) ? each : ["", pretty(each), ""];
    return h("li", h("span.tag.bad", t("violation")), h("code", path || t("whole")), h("span", t("violation.text", { expected: pretty(expected), got: pretty(got) })));
  }));
}

export function repairsView(repairs) {
  return h("ul.receipt", repairs.map((each) => {
    const [path, what] = Array.isArray(each) ? each : ["", pretty(each)];
    return h("li", h("span.tag.warn", t("repair")), h("code", path || t("whole")), h("span", pretty(what)));
  }));
}
