// Elements without markup: text of models, tools and users becomes text nodes only.

const PROPERTIES = new Set(["value", "checked", "disabled", "selected", "hidden", "open", "readOnly", "tabIndex"]);
const ADDRESSES = new Set(["href", "src", "action", "formaction", "srcdoc", "style"]);

// h("button.small", {onclick: save, title: "…"}, "Save", icon)
export function h(name, given, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  const isProps = given && typeof given === "object" && !(given instanceof Node) && !Array.isArray(given);
  if (isProps) setProps(element, given);
  else if (given !== undefined) children.unshift(given);
  append(element, children);
  return element;
}

function setProps(element, props) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "to") element.setAttribute("href", "#" + value); // a route of this page, never an address
    else if (name === "class") element.className = [element.className, value].filter(Boolean).join(" ");
    else if (PROPERTIES.has(name)) element[name] = value;
    else if (ADDRESSES.has(name)) throw new TypeError(name + " is not set here");
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export function show(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

// A position on the time axis; the content security policy allows a script to set a style, but no style in markup.
export function place(element, left, width) {
  element.style.left = left + "%";
  if (width !== undefined) element.style.width = width + "%";
  return element;
}

const SVG = "http://www.w3.org/2000/svg";
const ICONS = {
  search: "M10.5 3a7.5 7.5 0 1 1 0 15 7.5 7.5 0 0 1 0-15zM16 16l5 5",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  play: "M7 4l13 8-13 8z",
  stop: "M6 6h12v12H6z",
  left: "M15 5l-7 7 7 7",
  right: "M9 5l7 7-7 7",
  moon: "M20 14A8 8 0 0 1 10 4a8 8 0 1 0 10 10z",
  sun: "M12 7a5 5 0 1 1 0 10 5 5 0 0 1 0-10zM12 1v3M12 20v3M1 12h3M20 12h3M4 4l2 2M18 18l2 2M20 4l-2 2M6 18l-2 2",
  auto: "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18zM12 3v18",
  help: "M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4M12 18v.5",
  thumb: "M7 11v9H4v-9zM7 11l4-8a2 2 0 0 1 2 2v4h5a2 2 0 0 1 2 2.3l-1 6.7a2 2 0 0 1-2 2H7",
  down: "M12 4v12M6 11l6 6 6-6M4 20h16",
  tool: "M14 6a4 4 0 0 1 5-3l-2.5 2.5 2 2L21 5a4 4 0 0 1-5 5L8 18a2 2 0 1 1-3-3z",
};

export function icon(name) {
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("viewBox", "0 0 24 24");
  picture.setAttribute("class", "icon");
  picture.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  picture.append(path);
  return picture;
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without the clipboard API (no secure context): select and copy.
    const area = h("textarea.offscreen", { value: text, readOnly: true });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

// Saves a file from the browser; no request is sent.
export function save(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
