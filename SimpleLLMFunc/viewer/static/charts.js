// Lines over time, one for each version, drawn by uPlot; its colours are those of the page.

import { h } from "./dom.js";
import { locale, moment } from "./format.js";

const LIGHT = ["#3157c9", "#c2571a", "#1f7a46", "#7a4fb3", "#a3262e", "#0f7f8c", "#8a6d00", "#5a6472"];
const DARK = ["#8fabff", "#f0a068", "#6cc792", "#c4a2ef", "#ff8f85", "#5fd0dd", "#e0c25a", "#a9b1bb"];

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
}

export function colourOf(at) {
  const colours = isDark() ? DARK : LIGHT;
  return colours[at % colours.length];
}

function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Labels of the ticks: dates in the page's language, no finer than the distance between ticks.
export function tickTexts(locale, ticks, step) {
  const day = { month: "short", day: "numeric" };
  const time = { hour: "2-digit", minute: "2-digit", ...(step < 60 ? { second: "2-digit" } : {}) };
  const fine = new Intl.DateTimeFormat(locale, step >= 300 * 86400 ? { year: "numeric" } : step >= 86400 ? day : time);
  const coarse = new Intl.DateTimeFormat(locale, step >= 86400 ? { year: "numeric" } : day);
  let before = "";
  return ticks.map((at) => {
    const moment = new Date(at * 1000);
    const under = step >= 300 * 86400 ? "" : coarse.format(moment);
    const isNew = under !== before;
    before = under;
    return fine.format(moment) + (isNew && under ? "\n" + under : "");
  });
}

// title; times in seconds; lines: [{label, values, colour}]; shown(value) returns the text of a value;
// none: text without any known value; most: upper end of the value axis.
export function chart(frame, { title, times, lines, shown, none, most: limit }) {
  const figure = h("div.figure");
  const tip = h("div.tip", { hidden: true });
  const box = h("div.card.chart", h("h3", title), figure);
  if (none && lines.every((line) => line.values.every((value) => value === null || value === undefined))) {
    figure.append(h("p.faint.none", none));
    return box;
  }
  figure.setAttribute("role", "img");
  figure.setAttribute("aria-label", title + ": " + lines.map((line) => [line.label, shown(line.values.findLast((value) => value !== null && value !== undefined) ?? null)].filter(Boolean).join(" ")).join(", "));
  figure.append(tip);
  let plot = null;

  // A few minutes around a single moment; else a margin, so that no point is on the edge.
  const [first, last] = [times[0], times[times.length - 1]];
  const air = first === last ? 150 : (last - first) * 0.03;
  const font = "11px system-ui";
  const wide = (u, texts) => {
    if (!texts) return 40;
    u.ctx.font = font;
    return Math.ceil(Math.max(...texts.map((text) => u.ctx.measureText(text ?? "").width))) + 20;
  };

  function draw() {
    if (plot) plot.destroy();
    const width = Math.max(figure.clientWidth, 120);
    const axis = { stroke: ink("--ink-3"), grid: { stroke: ink("--line"), width: 1 }, ticks: { stroke: ink("--line"), width: 1 }, font };
    const isSparse = times.length <= 40;
    plot = new window.uPlot({
      width, height: 190, padding: [10, 32, 0, 0],
      legend: { show: false },
      cursor: { points: { size: 7 }, y: false, drag: { x: false, y: false } },
      scales: { x: { time: true, range: () => [first - air, last + air] }, y: { range: (_, least, most) => [0, most > 0 ? Math.min(most * 1.12, limit ?? Infinity) : 1] } },
      axes: [
        { ...axis, space: 72, size: 46, values: (_, ticks, at, space, step) => tickTexts(locale(), ticks, step) },
        { ...axis, size: wide, values: (_, values) => values.map(shown).map((text, at, all) => (text === all[at - 1] ? "" : text)) },
      ],
      series: [{}, ...lines.map((line) => ({
        label: line.label, stroke: line.colour, width: 2, spanGaps: true, points: { show: isSparse, size: 5, fill: line.colour },
      }))],
      hooks: { setCursor: [point] },
    }, [times, ...lines.map((line) => line.values)], figure);
  }

  function point(u) {
    const at = u.cursor.idx;
    if (at === null || at === undefined || u.cursor.left < 0) {
      tip.hidden = true;
      return;
    }
    const said = lines.map((line) => [line.label, line.values[at]]).filter(([, value]) => value !== null && value !== undefined);
    if (!said.length) {
      tip.hidden = true;
      return;
    }
    tip.textContent = said.map(([label, value]) => (label ? label + ": " : "") + shown(value)).join("   ") + "   " + moment(times[at]);
    tip.hidden = false;
    tip.style.left = Math.min(Math.max(u.cursor.left, 40), Math.max(figure.clientWidth - tip.offsetWidth, 0)) + "px";
    tip.style.top = "0px";
  }

  const again = () => box.isConnected && draw();
  const observer = new ResizeObserver(again);
  document.addEventListener("theme", again, { signal: frame.signal });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again, { signal: frame.signal });
  frame.signal.addEventListener("abort", () => {
    observer.disconnect();
    if (plot) plot.destroy();
  });
  requestAnimationFrame(() => observer.observe(figure));
  return box;
}
