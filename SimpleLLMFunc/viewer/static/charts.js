// Lines over time, one for each version, drawn by uPlot; its colours are those of the page.

import { h } from "./dom.js";

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

// title; times in seconds; lines: [{label, values, colour}]; shown(value) gives the text of a value.
export function chart(frame, { title, times, lines, shown, bars }) {
  const figure = h("div.figure");
  const tip = h("div.tip", { hidden: true });
  const box = h("div.card.chart", h("h3", title), figure);
  figure.append(tip);
  let plot = null;

  function draw() {
    if (plot) plot.destroy();
    const width = Math.max(figure.clientWidth, 120);
    const axis = { stroke: ink("--ink-3"), grid: { stroke: ink("--line"), width: 1 }, ticks: { stroke: ink("--line"), width: 1 }, font: "11px system-ui" };
    const isSparse = times.length <= 40;
    plot = new window.uPlot({
      width, height: 190, padding: [10, 12, 0, 0],
      legend: { show: false },
      cursor: { points: { size: 7 }, y: false, drag: { x: false, y: false } },
      scales: { x: { time: true, range: (_, least, most) => (least === most ? [least - 1800, most + 1800] : [least, most]) }, y: { range: (_, least, most) => [0, most > 0 ? most * 1.12 : 1] } },
      axes: [{ ...axis, space: 64 }, { ...axis, size: 62, values: (_, values) => values.map((value) => shown(value)) }],
      series: [{}, ...lines.map((line) => ({
        label: line.label, stroke: line.colour, width: 2, spanGaps: true, points: { show: isSparse, size: 5, fill: line.colour },
        ...(bars ? { paths: window.uPlot.paths.bars({ size: [0.7, 40] }), fill: line.colour, points: { show: false } } : {}),
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
    tip.textContent = said.map(([label, value]) => (label ? label + ": " : "") + shown(value)).join("   ");
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
