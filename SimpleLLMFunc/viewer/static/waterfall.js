// A run on its time axis: requests, failed attempts, rejected answers, tools.

import { h, place } from "./dom.js";
import { count, oneLine, seconds } from "./format.js";
import { t } from "./i18n.js";

const MOST = 200;

// The runs inside a run, each below its parent.
function rowsBelow(run, tree, go) {
  const under = new Map();
  for (const each of tree) under.set(each.parent, [...(under.get(each.parent) || []), each]);
  const rowsOfOne = (each, level) => [
    {
      kind: each.status === "error" || each.status === "lost" ? "wrong" : "run", level, label: each.function, start: each.started - run.summary.started, length: each.seconds ?? 0, seconds: each.seconds,
      title: oneLine([each.model, t("fall.tokens", { input: count(each.input_tokens), output: count(each.output_tokens) }), each.answer].filter(Boolean).join(" · "), 300),
      act: () => go("/run/" + each.id),
    },
    ...(under.get(each.trace_id) || []).flatMap((child) => rowsOfOne(child, level + 1)),
  ];
  const first = under.get(run.summary.trace_id) || [];
  return {
    ofCall: (call) => first.filter((each) => each.parent_call === call.call_id).flatMap((each) => rowsOfOne(each, 2)),
    others: () => first.filter((each) => !run.tool_calls.some((call) => call.call_id === each.parent_call)).flatMap((each) => rowsOfOne(each, 1)),
  };
}

function rowsOf(run, tree, go) {
  const below = rowsBelow(run, tree, go);
  const rows = [];
  const rejected = new Map(run.reviews.filter((review) => !review.accepted).map((review) => [review.turn, review]));
  for (const turn of run.turns) {
    const tries = run.tries.filter((each) => each.turn === turn.turn && (each.at < turn.started + (turn.seconds ?? Infinity) + 1e-6) && each.at >= turn.started - 1e-6);
    const end = turn.seconds ?? Math.max(0, ...tries.map((each) => each.at - turn.started), (run.summary.seconds ?? 0) - turn.started);
    const review = rejected.get(turn.turn);
    const isWrong = turn.reply === null && turn.seconds === null && run.summary.status !== "running";
    rows.push({
      kind: review ? "reask" : isWrong ? "wrong" : "model",
      label: review ? t("fall.rejected", { turn: turn.turn }) : t("fall.request", { turn: turn.turn }),
      start: turn.started, length: end, mark: turn.first_chunk_seconds === null ? null : turn.started + turn.first_chunk_seconds,
      target: "turn-" + turn.number,
      title: [turn.model, seconds(turn.seconds), t("fall.tokens", { input: count(turn.input_tokens), output: count(turn.output_tokens) }), turn.finish_reason].filter(Boolean).join(" · "),
      seconds: turn.seconds,
    });
    for (const each of tries) {
      rows.push({
        kind: "wrong", deep: true, label: t("fall.try", { error: each.status || each.error }), start: each.at, length: 0,
        title: oneLine([each.model, each.error, each.text, each.pause !== null && t("fall.pause", { seconds: seconds(each.pause) })].filter(Boolean).join(" · "), 400),
        seconds: null, target: "turn-" + turn.number,
      });
      if (each.pause) rows.push({ kind: "try", deep: true, label: t("fall.waiting"), start: each.at, length: each.pause, seconds: each.pause, title: "", target: "turn-" + turn.number });
    }
    const isLast = !run.turns.some((other) => other.turn === turn.turn && other.number > turn.number);
    if (!isLast) continue;
    for (const call of run.tool_calls.filter((each) => each.turn === turn.turn)) {
      rows.push({
        kind: call.failed ? "wrong" : "tool", deep: true, label: call.name, start: call.started, length: call.seconds ?? 0, seconds: call.seconds,
        title: oneLine(JSON.stringify(call.arguments), 300), target: "tool-" + call.number,
      });
      rows.push(...below.ofCall(call));
    }
  }
  rows.push(...below.others());
  return rows;
}

// `tree`: the runs inside it; `go` opens one.
export function waterfall(run, tree, go) {
  const all = rowsOf(run, tree, go);
  const rows = all.slice(0, MOST);
  const total = Math.max(run.summary.seconds ?? 0, ...rows.map((row) => row.start + row.length), 1e-6);
  const ticks = ticksOf(total);
  return h("div",
    h("div.fall", { role: "list", "aria-label": t("fall.title") },
      h("div.axis", { "aria-hidden": "true" }, h("span"), h("div.ticks", ticks.map((at) => place(h("span", seconds(at)), (at / total) * 100))), h("span")),
      rows.map((row) => bar(row, total))),
    all.length > MOST && h("p.faint.small.under", t("fall.more", { count: all.length - MOST })),
    h("div.legend",
      ["model", "tool", "run", "reask", "wrong", "try"].filter((kind) => rows.some((row) => row.kind === kind)).map((kind) => h("span", h("i." + kind), t("legend." + kind))),
      rows.some((row) => row.mark !== null && row.mark !== undefined) && h("span", t("legend.first"))));
}

function bar(row, total) {
  const left = Math.min((row.start / total) * 100, 99.6);
  const width = Math.max(Math.min((row.length / total) * 100, 100 - left), 0.25);
  const track = h("div.track", place(h("div.bar"), left, width));
  if (row.mark !== null && row.mark !== undefined) {
    const mark = h("div.mark");
    mark.style.left = (row.mark / total) * 100 + "%";
    track.append(mark);
  }
  const label = h("div.label", h("i"), h("span", row.label));
  if (row.level) label.style.paddingLeft = Math.min(row.level, 6) * 16 + "px";
  const jump = row.act || (() => {
    const target = document.getElementById(row.target);
    if (!target) return;
    target.scrollIntoView({ behavior: "smooth", block: "start" });
    target.focus({ preventScroll: true });
  });
  return h("div.row.link", {
    class: row.kind + (row.deep ? " deep" : ""), role: "listitem", tabIndex: 0, title: row.title, onclick: jump,
    onkeydown: (event) => { if (event.key === "Enter") jump(); },
  }, label, track, h("div.number.small.quiet", seconds(row.seconds)));
}

function ticksOf(total) {
  const raw = total / (window.innerWidth < 760 ? 3 : 6);
  const base = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * base).find((size) => size >= raw);
  const ticks = [];
  for (let at = 0; at <= total * (window.innerWidth < 760 ? 0.72 : 0.9); at += step) ticks.push(at);
  return [...ticks, total];
}
