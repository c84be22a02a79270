// Calls that wait for an answer, with their arguments: approve, refuse, or answer with a text.

import { get, post } from "./api.js";
import { h, show } from "./dom.js";
import { ago } from "./format.js";
import { t } from "./i18n.js";
import { textOrJson } from "./messages.js";

export async function waitingPage(frame) {
  frame.title(t("nav.waiting"));
  const body = h("div.stack", { role: "list" });
  show(frame.main, h("div.head", h("h1", t("nav.waiting"))), body);
  let shown = "";
  await refresh();
  (async () => {
    while (!frame.signal.aborted) {
      await new Promise((done) => setTimeout(done, 2500));
      if (!document.hidden && !frame.signal.aborted) await refresh().catch(() => {});
    }
  })();

  async function refresh() {
    const { journals } = await get("waiting", {}, frame.signal);
    const now = JSON.stringify(journals);
    if (now === shown) return; // keeps the text that the user is typing
    shown = now;
    const cards = journals.flatMap((journal) => [
      ...(journal.problem ? [h("div.card", h("div.body", h("h2", journal.name), h("p.bad", journal.problem)))] : []),
      ...journal.waiting.map((call) => card(journal, call)),
    ]);
    show(body, cards.length ? cards : h("div.card.empty", h("h2", t("waiting.none")), h("p", t(journals.length ? "waiting.none.text" : "waiting.no.journal")),
      !journals.length && h("pre.mono", "simplellmfunc view runs.sqlite --journal orders.sqlite")));
  }

  function card(journal, call) {
    const isConfirm = call.why === "confirm";
    const text = h("textarea", { rows: 2, "aria-label": t(isConfirm ? "waiting.text" : "waiting.result"), placeholder: t(isConfirm ? "waiting.text" : "waiting.result") });
    const buttons = isConfirm
      ? [button("waiting.approve", () => ({ answer: true }), "first"), button("waiting.refuse", () => ({ answer: false })), button("waiting.send", () => ({ answer: text.value }))]
      : [button("waiting.again", () => ({ run_again: true })), button("waiting.send", () => ({ result: text.value }))];
    return h("div.card", { role: "listitem" }, h("div.body.stack",
      h("div.head.tight", h("h2", call.tool), h("span.tag", call.key), h("span.quiet.small.end", ago(call.since))),
      h("p", t(isConfirm ? "waiting.may" : "waiting.unknown")),
      textOrJson(JSON.stringify(call.arguments)), text, h("div.head.tight", buttons)));

    function button(name, said, kind) {
      const made = h("button" + (kind ? "." + kind : ""), { onclick: send }, t(name));
      return made;

      async function send() {
        const answer = said();
        if (answer.answer === "" || answer.result === "") {
          text.focus();
          return;
        }
        made.disabled = true;
        try {
          await post("waiting/" + journal.number, { key: call.key, call_id: call.call_id, ...answer }, frame.signal);
          frame.note(t("waiting.answered"));
        } catch (error) {
          frame.note(error.message);
        }
        shown = "";
        await refresh();
      }
    }
  }
}
