// A conversation with an @llm_chat function or the assistant.

import { get, lines, segment } from "./api.js";
import { h, icon, show } from "./dom.js";
import { pretty } from "./format.js";
import { t } from "./i18n.js";
import { notAllowed } from "./play.js";

export async function chatsPage(frame) {
  frame.title(t("nav.chat"));
  if (!frame.info.can_run) return notAllowed(frame);
  const { chats } = await get("chats", {}, frame.signal);
  if (!chats.length) {
    show(frame.main, h("div.card.empty", h("h2", t("chat.none")), h("p", t("chat.none.text"))));
    return;
  }
  show(frame.main, h("div.head", h("h1", t("nav.chat"))), h("div.pick", chats.map((each) =>
    each.problem
      ? h("div.card", h("div.body", h("h2.quiet", each.name), h("p.faint", each.problem)))
      : h("a.card", { to: "/chat/" + segment(each.name) }, h("h2", each.name), h("span.tag", t("kind." + each.kind)), h("p", each.docstring)))));
}

export async function chatPage(frame, name) {
  frame.title(name);
  if (!frame.info.can_run) return notAllowed(frame);
  const { chats } = await get("chats", {}, frame.signal);
  const chat = chats.find((each) => each.name === name && !each.problem);
  if (!chat) {
    show(frame.main, h("div.card.empty", h("h2", t("chat.none")), h("p", name)));
    return;
  }
  let session = null;
  let running = null;
  const talk = h("div.talk", { role: "log", "aria-live": "polite" });
  const box = h("textarea", { rows: 2, placeholder: t("chat.say"), "aria-label": t("chat.say"), onkeydown: (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); say(); } } });
  const send = h("button.first", { onclick: () => say() }, t("chat.send"));
  const stop = h("button", { hidden: true, onclick: () => running?.abort() }, icon("stop"), t("play.stop"));
  const hello = h("p.faint", t("chat.hello"));
  talk.append(hello);
  show(frame.main,
    h("a.back", { to: "/chat" }, icon("left"), t("nav.chat")),
    h("div.head", h("div", h("h1", name), chat.docstring && h("p.quiet", chat.docstring)),
      h("div.actions", h("button", { onclick: () => { running?.abort(); session = null; show(talk, hello); box.focus(); } }, t("chat.new")))),
    h("section.card", talk, h("div.say", box, send, stop)));
  box.focus({ preventScroll: true });

  async function say() {
    const message = box.value.trim();
    if (!message || running) return;
    hello.remove();
    box.value = "";
    running = new AbortController();
    const mine = running;
    frame.signal.addEventListener("abort", () => mine.abort());
    send.disabled = true;
    stop.hidden = false;
    const answer = h("div.bubble", "…");
    talk.append(h("div.bubble.mine", message), answer);
    answer.scrollIntoView({ block: "nearest" });
    let isEmpty = true;
    const add = (node) => {
      if (isEmpty) answer.textContent = "";
      isEmpty = false;
      answer.append(node);
    };
    try {
      for await (const line of lines("chats/" + segment(name), { message, session: session ?? undefined }, mine.signal)) {
        if (line.type === "text") add(line.text);
        else if (line.type === "ToolCallStarted") add(h("div.small", h("span.tag.tool", line.name), " ", h("code.quiet", line.arguments)));
        else if (line.type === "ToolCallFinished" && line.failed) add(h("div.small.bad", line.name + ": " + pretty(line.content).slice(0, 300)));
        else if (line.type === "sources" && line.sources.length) add(h("ol.small.quiet", line.sources.map((source) => h("li", pretty(source.title) + " — " + pretty(source.url)))));
        else if (line.type === "done") session = line.session;
        else if (line.type === "error") {
          session = line.session ?? session;
          answer.classList.add("wrong");
          add(h("div.bad", (line.error ? line.error + ": " : "") + line.message));
        }
        answer.scrollIntoView({ block: "nearest" });
      }
    } catch (error) {
      if (mine.signal.aborted) add(h("div.faint", t("play.stopped")));
      else {
        if (error.status === 404) session = null;
        answer.classList.add("wrong");
        add(h("div.bad", error.message));
      }
    } finally {
      if (running === mine) running = null;
      send.disabled = false;
      stop.hidden = true;
      box.focus({ preventScroll: true });
    }
  }
}
