// Two texts side by side, line against line, and word against word inside a changed line.

import { h } from "./dom.js";
import { t } from "./i18n.js";

const MOST = 3000;
const AROUND = 3;

// The longest common subsequence, without the common beginning and end.
export function steps(before, after, same = (a, b) => a === b) {
  let head = 0;
  while (head < before.length && head < after.length && same(before[head], after[head])) head += 1;
  let tail = 0;
  while (tail < before.length - head && tail < after.length - head && same(before[before.length - 1 - tail], after[after.length - 1 - tail])) tail += 1;
  const a = before.slice(head, before.length - tail);
  const b = after.slice(head, after.length - tail);
  const found = [];
  for (let at = 0; at < head; at += 1) found.push(["=", at, at]);
  if (a.length * b.length > MOST * MOST) {
    a.forEach((_, at) => found.push(["-", head + at, null]));
    b.forEach((_, at) => found.push(["+", null, head + at]));
  } else {
    const width = b.length + 1;
    const lengths = new Uint32Array((a.length + 1) * width);
    for (let i = a.length - 1; i >= 0; i -= 1) {
      for (let j = b.length - 1; j >= 0; j -= 1) {
        lengths[i * width + j] = same(a[i], b[j]) ? lengths[(i + 1) * width + j + 1] + 1 : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
      }
    }
    let i = 0;
    let j = 0;
    while (i < a.length || j < b.length) {
      if (i < a.length && j < b.length && same(a[i], b[j])) found.push(["=", head + i++, head + j++]);
      else if (i < a.length && (j === b.length || lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) found.push(["-", head + i++, null]);
      else found.push(["+", null, head + j++]);
    }
  }
  for (let at = tail; at > 0; at -= 1) found.push(["=", before.length - at, after.length - at]);
  return found;
}

function words(text) {
  return text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) || [];
}

function marked(text, other, kind) {
  const mine = words(text);
  const theirs = words(other);
  if (mine.length > 400 || theirs.length > 400) return [text];
  const kept = new Set(steps(mine, theirs).filter(([sign]) => sign === "=").map(([, at]) => at));
  if (kept.size * 3 < mine.length) return [text]; // too different to mark words
  const parts = [];
  mine.forEach((word, at) => {
    const isKept = kept.has(at) || !word.trim();
    const last = parts[parts.length - 1];
    if (last && last.kept === isKept) last.text += word;
    else parts.push({ kept: isKept, text: word });
  });
  return parts.map((part) => (part.kept ? part.text : h("mark." + kind, part.text)));
}

// Rows of a table with four cells: number, line, number, line.
export function diffRows(before, after, isWhole = false) {
  const left = before === "" ? [] : before.split("\n");
  const right = after === "" ? [] : after.split("\n");
  const found = steps(left, right);
  const pairs = [];
  for (let at = 0; at < found.length; ) {
    if (found[at][0] === "=") {
      pairs.push(["=", found[at][1], found[at][2]]);
      at += 1;
      continue;
    }
    const removed = [];
    const added = [];
    for (; at < found.length && found[at][0] !== "="; at += 1) (found[at][0] === "-" ? removed : added).push(found[at]);
    for (let row = 0; row < Math.max(removed.length, added.length); row += 1) {
      pairs.push(["~", removed[row] ? removed[row][1] : null, added[row] ? added[row][2] : null]);
    }
  }
  const changed = pairs.map(([sign]) => sign !== "=");
  const isNear = pairs.map((_, at) => isWhole || changed.slice(Math.max(0, at - AROUND), at + AROUND + 1).some(Boolean));
  const rows = [];
  for (let at = 0; at < pairs.length; at += 1) {
    if (!isNear[at]) {
      let end = at;
      while (end < pairs.length && !isNear[end]) end += 1;
      if (end - at > 1) {
        rows.push(h("tr.skip", h("td", { colspan: 4 }, t("diff.same", { count: end - at }))));
        at = end - 1;
        continue;
      }
    }
    const [sign, i, j] = pairs[at];
    const a = i === null ? null : left[i];
    const b = j === null ? null : right[j];
    const isBoth = sign === "~" && a !== null && b !== null;
    rows.push(h("tr",
      h("td.at", a === null ? "" : i + 1), h("td", { class: a === null ? "none" : sign === "~" ? "del" : "" }, a === null ? "" : isBoth ? marked(a, b, "del") : a),
      h("td.at", b === null ? "" : j + 1), h("td", { class: b === null ? "none" : sign === "~" ? "add" : "" }, b === null ? "" : isBoth ? marked(b, a, "add") : b)));
  }
  return rows;
}

// Several named parts, each as [name, before, after].
export function diffTable(titles, parts) {
  return h("div.scroll", h("table.diff",
    h("colgroup", h("col.at"), h("col"), h("col.at"), h("col")),
    h("thead", h("tr", h("th", { colspan: 2 }, titles[0]), h("th", { colspan: 2 }, titles[1]))),
    h("tbody", parts.map(([name, before, after]) => [
      name && h("tr.part", h("td", { colspan: 4 }, name, before === after && h("span.faint", " · " + t("diff.unchanged")))),
      before === after ? h("tr.skip", h("td", { colspan: 4 }, before === "" ? t("diff.empty") : t("diff.same", { count: before.split("\n").length }))) : diffRows(before, after),
    ]))));
}
