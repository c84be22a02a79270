// Marks of runs: thumb, score, tags, comment; and runs that become cases of an evaluation.

import { post } from "./api.js";
import { h, icon, show } from "./dom.js";
import { count, pretty } from "./format.js";
import { t } from "./i18n.js";
import { textOrJson } from "./messages.js";

export function thumbIcon(thumb) {
  const picture = icon("thumb");
  picture.classList.add(thumb);
  return picture;
}

// The mark of a run in a list.
export function markTags(run) {
  return [
    run.thumb && h("span.tag", { class: run.thumb === "up" ? "accent" : "bad", title: run.comment || null }, thumbIcon(run.thumb), h("span.offscreen", t("thumb." + run.thumb))),
    run.score !== null && h("span.tag.accent", t("mark.score", { score: count(run.score) })),
    run.tags.map((tag) => h("span.tag.accent", tag)),
    run.comment && !run.thumb && h("span.tag", { title: run.comment }, t("mark.comment")),
  ].flat().filter(Boolean);
}

// The card to mark a run; every change is saved at once.
export function markCard(frame, run) {
  const { summary } = run;
  const mark = { thumb: summary.thumb, score: summary.score, comment: summary.comment, tags: [...summary.tags] };
  const thumbs = h("div.row");
  const chips = h("div.row");
  const wrong = h("span.bad.small", { role: "alert" });

  async function keep(given) {
    Object.assign(mark, given);
    wrong.textContent = "";
    try {
      Object.assign(summary, await post("runs/" + summary.id + "/mark", mark, frame.signal));
      draw();
    } catch (error) {
      wrong.textContent = error.message;
    }
  }

  function draw() {
    const focused = document.activeElement?.dataset?.thumb;
    show(thumbs, ["up", "down"].map((thumb) => h("button", { "data-thumb": thumb, "aria-pressed": String(mark.thumb === thumb), "aria-label": t("thumb." + thumb), title: t("thumb." + thumb), onclick: () => keep({ thumb: mark.thumb === thumb ? "" : thumb }) }, thumbIcon(thumb))));
    if (focused) thumbs.querySelector(`[data-thumb=${focused}]`).focus();
    show(chips, mark.tags.map((tag) => h("button.chip", { title: t("mark.tag.away"), onclick: () => keep({ tags: mark.tags.filter((each) => each !== tag) }) }, tag, " ×")));
  }

  const score = h("input", { type: "number", step: "any", id: "mark-score", value: mark.score ?? "", onchange: (event) => keep({ score: event.target.value === "" ? null : Number(event.target.value) }) });
  const comment = h("input", { id: "mark-comment", value: mark.comment, maxlength: 10000, onchange: (event) => keep({ comment: event.target.value.trim() }) });
  const tag = h("input", { id: "mark-tag", maxlength: 100, placeholder: t("mark.tag"), "aria-label": t("mark.tag"), onkeydown: (event) => {
    const text = event.target.value.trim();
    if (event.key !== "Enter" || !text) return;
    event.preventDefault();
    event.target.value = "";
    keep({ tags: [...new Set([...mark.tags, text])] });
  } });
  draw();
  return h("section.card", h("div.body.row.verdict", h("h2", t("mark")), thumbs,
    h("div.row.tight", h("label.quiet.small", { for: score.id }, t("mark.score.name")), score), h("div.row.tight", chips, tag),
    h("div.row.tight.wide", h("label.quiet.small", { for: comment.id }, t("mark.comment")), comment), wrong));
}

// A dialog to correct the value of a run before it becomes a case; several runs are added unchanged.
export function addToCases(frame, runs) {
  const one = runs.length === 1 ? runs[0] : null;
  const value = one && (one.value ?? one.answer ?? "");
  const isText = typeof value === "string";
  const area = one && h("textarea.mono", { rows: Math.min(14, Math.max(4, pretty(value).split("\n").length)), value: pretty(value), spellcheck: "false", id: "case-value" });
  const said = h("p.small", { role: "status" });
  const add = h("button.first", { type: "submit" }, t("cases.add"));
  const box = h("dialog.large", { "aria-label": t("cases.title") }, h("form.stack", { onsubmit: (event) => { event.preventDefault(); send(); } },
    h("h2", t("cases.title")), h("p.quiet.small", t("cases.about")),
    one ? [h("details", h("summary", t("run.arguments")), textOrJson(one.arguments)), h("label", { for: area.id }, t("cases.expected")), area] : h("p", t("cases.several", { count: runs.length })),
    said, h("div.row", add, h("button", { type: "button", onclick: () => box.close() }, t("close")))));
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();

  async function send() {
    let expected;
    if (one) {
      try {
        expected = isText ? area.value : JSON.parse(area.value);
      } catch (error) {
        said.textContent = t("form.json") + " " + error.message;
        return;
      }
    }
    try {
      const sent = one ? [{ run: one.summary.id, expected }] : runs.map((run) => ({ run: run.id }));
      const { written, skipped } = await post("cases", { runs: sent }, frame.signal);
      show(said, written.map(({ path, count: many }) => h("div", t("cases.written", { count: many, path }))), skipped.map(({ run, why }) => h("div.bad", "#" + run + ": " + why)));
      add.hidden = written.length > 0;
    } catch (error) {
      said.textContent = error.message;
    }
  }
}
