// A strict subset of Markdown, as elements: headings, lists, quotes, tables, code, bold, italic. No HTML and no images;
// links are text with their address, since no link leaves the page.

import { h } from "./dom.js";

const KEY = "simplellmfunc-markdown";
const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|__([^_]+)__|\*([^*\s][^*]*)\*|(?<![\p{L}\p{N}])_([^_\s][^_]*)_(?![\p{L}\p{N}])|!?\[([^\]]*)\]\(([^)\s]*)[^)]*\)/gu;

export function isMarkdown() {
  try {
    return localStorage.getItem(KEY) === "1";
  } catch {
    return false;
  }
}

export function setMarkdown(is) {
  try {
    localStorage.setItem(KEY, is ? "1" : "");
  } catch {
    // Without storage: lasts until the page is closed.
  }
}

function inline(text, depth = 0) {
  if (depth > 4) return [text];
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > at) parts.push(text.slice(at, match.index));
    const [whole, code, bold, strong, italic, slanted, label, address] = match;
    if (code !== undefined) parts.push(h("code", code));
    else if (bold ?? strong) parts.push(h("strong", inline(bold ?? strong, depth + 1)));
    else if (italic ?? slanted) parts.push(h("em", inline(italic ?? slanted, depth + 1)));
    else parts.push(label, h("span.faint", " (" + address + ")"));
    at = match.index + whole.length;
  }
  parts.push(text.slice(at));
  return parts;
}

const STARTS = /^(?:#{1,6}\s|```|~~~|\s*[-*+]\s|\s*\d+[.)]\s|>|\|)/;

export function markdownView(text) {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const box = h("div.markdown");
  let at = 0;
  const taken = (fits) => {
    const found = [];
    while (at < lines.length && fits(lines[at])) found.push(lines[at++]);
    return found;
  };
  while (at < lines.length) {
    const line = lines[at];
    const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line);
    if (!line.trim()) at += 1;
    else if (/^(?:```|~~~)/.test(line)) {
      const fence = line.slice(0, 3);
      at += 1;
      const code = taken((each) => !each.startsWith(fence));
      at += 1;
      box.append(h("pre.code", { tabIndex: 0 }, code.join("\n")));
    } else if (heading) {
      at += 1;
      box.append(h("p.heading", { role: "heading", "aria-level": String(Math.min(heading[1].length + 2, 6)) }, inline(heading[2])));
    } else if (/^\s*(?:[-*_]\s*){3,}$/.test(line)) {
      at += 1;
      box.append(h("hr"));
    } else if (/^>/.test(line)) box.append(h("blockquote", inline(taken((each) => each.startsWith(">")).map((each) => each.replace(/^>\s?/, "")).join("\n"))));
    else if (/^\|.*\|/.test(line)) box.append(table(taken((each) => each.startsWith("|"))));
    else if (/^\s*(?:[-*+]|\d+[.)])\s/.test(line)) box.append(list(taken((each) => /^\s*(?:[-*+]|\d+[.)])\s/.test(each) || /^\s{2,}\S/.test(each))));
    else {
      const found = [lines[at++], ...taken((each) => each.trim() && !STARTS.test(each))];
      box.append(h("p", inline(found.join("\n"))));
    }
  }
  return box;
}

function list(lines) {
  const made = h(/^\s*\d/.test(lines[0]) ? "ol" : "ul");
  for (const line of lines) {
    const item = /^(\s*)(?:[-*+]|\d+[.)])\s+(.*)$/.exec(line);
    if (!item) made.lastChild?.append(" ", ...inline(line.trim()));
    else made.append(h("li", { class: item[1].length > 1 ? "deep" : "" }, inline(item[2])));
  }
  return made;
}

function table(lines) {
  const rows = lines.filter((line) => !/^\|[\s|:-]+$/.test(line)).map((line) => line.replace(/^\||\|\s*$/g, "").split("|"));
  return h("div.scroll", h("table.table", h("thead", h("tr", rows[0].map((cell) => h("th", inline(cell.trim()))))),
    h("tbody", rows.slice(1).map((row) => h("tr", row.map((cell) => h("td", inline(cell.trim()))))))));
}
