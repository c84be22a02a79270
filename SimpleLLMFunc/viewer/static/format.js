// Numbers, times and sizes as people read them.

import { language, t } from "./i18n.js";

export const locale = () => (language() === "zh" ? "zh-CN" : "en-GB");

export function count(value) {
  return value === null || value === undefined ? "–" : new Intl.NumberFormat(locale()).format(value);
}

export function short(value) {
  if (value === null || value === undefined) return "–";
  if (value < 10000) return count(Math.round(value));
  return new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0.000005) return "0 ms";
  if (value < 0.01) return Number((value * 1000).toFixed(2)) + " ms";
  if (value < 1) return Math.round(value * 1000) + " ms";
  if (value < 10) return value.toFixed(2) + " s";
  if (value < 60) return value.toFixed(1) + " s";
  const whole = Math.round(value);
  if (whole < 3600) return Math.floor(whole / 60) + " min " + String(whole % 60).padStart(2, "0") + " s";
  return Math.floor(whole / 3600) + " h " + String(Math.floor((whole % 3600) / 60)).padStart(2, "0") + " min";
}

export function usd(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "$0";
  if (value < 0.001) return "$" + value.toFixed(6).replace(/0{1,3}$/, "");
  if (value < 1) return "$" + value.toFixed(4);
  return "$" + value.toFixed(2);
}

export function percent(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0 %";
  return (value * 100).toFixed(value < 0.1 ? 1 : 0) + " %";
}

export function moment(epoch) {
  if (!epoch) return "–";
  return new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeStyle: "medium" }).format(new Date(epoch * 1000));
}

export function clock(epoch) {
  if (!epoch) return "–";
  const then = new Date(epoch * 1000);
  const isToday = then.toDateString() === new Date().toDateString();
  const time = { hour: "2-digit", minute: "2-digit", second: "2-digit" };
  const day = { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" };
  return new Intl.DateTimeFormat(locale(), isToday ? time : day).format(then);
}

export function ago(epoch) {
  const gone = Date.now() / 1000 - epoch;
  if (gone < 5) return t("time.now");
  const steps = [[60, "second"], [3600, "minute"], [86400, "hour"], [Infinity, "day"]];
  const sizes = { second: 1, minute: 60, hour: 3600, day: 86400 };
  const [, unit] = steps.find(([limit]) => gone < limit);
  return new Intl.RelativeTimeFormat(locale(), { numeric: "auto" }).format(-Math.round(gone / sizes[unit]), unit);
}

export function oneLine(text, most = 160) {
  const flat = String(text ?? "").replace(/\s+/g, " ").trim();
  return flat.length > most ? flat.slice(0, most - 1) + "…" : flat;
}

// The first line that is not empty; all of a value that is not text.
export function firstLine(text, most = 200) {
  const lines = String(text ?? "").split("\n").filter((line) => line.trim());
  return oneLine(/^[[{`]/.test((lines[0] ?? "").trim()) || (lines[0] ?? "").endsWith(":") ? lines.join(" ") : lines[0], most) + (lines.length > 1 && lines[0].length < most && !/^[[{`]/.test(lines[0].trim()) && !lines[0].endsWith(":") ? " …" : "");
}

export function pretty(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
