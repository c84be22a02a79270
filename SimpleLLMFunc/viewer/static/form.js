// A form made from the JSON Schema of a function's parameters.

import { h } from "./dom.js";
import { t } from "./i18n.js";

function resolved(schema, root) {
  let found = schema;
  for (let depth = 0; depth < 8 && found && typeof found.$ref === "string"; depth += 1) {
    const name = found.$ref.split("/").pop();
    const all = root.$defs || {};
    found = Object.hasOwn(all, name) ? { ...all[name], ...found, $ref: undefined } : {};
  }
  return found || {};
}

// The only type other than null, if there is exactly one.
function kindOf(schema, root) {
  const plain = resolved(schema, root);
  const options = plain.anyOf || plain.oneOf;
  if (Array.isArray(options)) {
    const others = options.map((each) => resolved(each, root)).filter((each) => each.type !== "null");
    const isOptional = others.length < options.length;
    if (others.length === 1) return { ...plain, anyOf: undefined, ...others[0], isOptional };
    return { type: "json", isOptional };
  }
  if (Array.isArray(plain.type)) {
    const others = plain.type.filter((each) => each !== "null");
    return { ...plain, type: others.length === 1 ? others[0] : "json", isOptional: others.length < plain.type.length };
  }
  return plain;
}

function fieldOf(name, schema, root, given, isRequired) {
  const kind = kindOf(schema, root);
  const id = "field-" + name;
  const start = given !== undefined ? given : schema.default !== undefined ? schema.default : kind.default;
  const wrong = h("span.wrong", { id: id + "-wrong", hidden: true });
  const shared = { id, name, "aria-describedby": id + "-wrong" };
  let input;
  let read;
  if (Array.isArray(kind.enum)) {
    input = h("select", shared, (!isRequired || start === null || start === undefined || kind.isOptional) && h("option", { value: "", selected: start === undefined || start === null }, "–"),
      kind.enum.map((value, at) => h("option", { value: String(at), selected: JSON.stringify(value) === JSON.stringify(start) }, String(value))));
    read = () => (input.value === "" ? absent() : kind.enum[Number(input.value)]);
  } else if (kind.type === "boolean" && !kind.isOptional) {
    input = h("input", { ...shared, type: "checkbox", checked: start === true });
    read = () => input.checked;
  } else if (kind.type === "integer" || kind.type === "number") {
    input = h("input", { ...shared, inputmode: "decimal", autocomplete: "off", value: start === undefined || start === null ? "" : String(start) });
    read = () => {
      const text = input.value.trim();
      if (text === "") return absent();
      const value = Number(text);
      if (!Number.isFinite(value) || (kind.type === "integer" && !Number.isInteger(value))) throw new Error(t(kind.type === "integer" ? "form.integer" : "form.number"));
      return value;
    };
  } else if (kind.type === "string") {
    const text = typeof start === "string" ? start : "";
    input = kind.format && kind.format !== "multiline"
      ? h("input", { ...shared, value: text, placeholder: kind.format, autocomplete: "off" })
      : h("textarea", { ...shared, rows: Math.min(12, Math.max(text === "" ? 3 : 1, Math.ceil(text.length / 64), text.split("\n").length)), value: text });
    read = () => (input.value === "" && (kind.isOptional || (!isRequired && start === undefined)) ? absent() : input.value);
  } else {
    const text = start === undefined ? "" : JSON.stringify(start, null, 2);
    input = h("textarea.mono", { ...shared, rows: Math.min(16, Math.max(3, text.split("\n").length)), value: text, spellcheck: "false", placeholder: "JSON" });
    read = () => {
      if (input.value.trim() === "") return absent();
      try {
        return JSON.parse(input.value);
      } catch (error) {
        throw new Error(t("form.json") + " " + error.message);
      }
    };
  }
  // An empty field: the function's default, or null where the type allows it.
  function absent() {
    if (kind.isOptional && isRequired) return null;
    if (isRequired) throw new Error(t("form.required"));
    return undefined;
  }
  const about = schema.description || kind.description;
  const label = h("label", { for: id }, name, h("span.type", typeText(kind), !isRequired && " · " + t("form.optional")));
  const isLine = input.type === "checkbox";
  const box = isLine
    ? h("div.field", h("div.field.line", input, label), about && h("span.about", about), wrong)
    : h("div.field", label, about && h("span.about", about), input, wrong);
  return {
    name, box,
    read() {
      wrong.hidden = true;
      try {
        return read();
      } catch (error) {
        wrong.textContent = error.message;
        wrong.hidden = false;
        input.focus();
        throw error;
      }
    },
  };
}

function typeText(kind) {
  if (Array.isArray(kind.enum)) return "enum";
  const text = kind.type === "array" ? "list" : kind.type === "object" ? kind.title || "object" : kind.type || "any";
  return kind.isOptional ? text + " | null" : text;
}

export function formOf(schema, given) {
  const properties = Object.entries((schema && schema.properties) || {});
  const required = new Set((schema && schema.required) || []);
  const fields = properties.map(([name, each]) =>
    fieldOf(name, each, schema, given && Object.hasOwn(given, name) ? given[name] : undefined, required.has(name)));
  return {
    box: h("div.form", fields.length ? fields.map((field) => field.box) : h("p.faint", t("form.none"))),
    // Returns the arguments; throws, and marks the field, where one cannot be read.
    read() {
      const values = fields.map((field) => [field.name, field.read()]).filter(([, value]) => value !== undefined);
      return Object.fromEntries(values);
    },
  };
}
