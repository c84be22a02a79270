// One run: metrics, time axis, answer, and every request with its reply.

import { get, segment } from "./api.js";
import { h, icon, save, show } from "./dom.js";
import { ago, count, moment, percent, pretty, seconds, usd } from "./format.js";
import { t } from "./i18n.js";
import { isMarkdown, setMarkdown } from "./markdown.js";
import { copyButton, copyIcon, jsonView, messagesView, messageView, omitted, repairsView, tabs, term, textOrJson, violationsView } from "./messages.js";
import { formatOf, messagesOf, toolNamesOf } from "./spoken.js";
import { marks, statusBadge } from "./runs.js";
import { addToCases, markCard } from "./verdicts.js";
import { waterfall } from "./waterfall.js";

export async function runPage(frame, id) {
  let run = await get("runs/" + segment(id), {}, frame.signal);
  let tree = await below();
  frame.title(run.summary.function);
  const playable = frame.info.can_run && run.summary.kind === "function" ? await get("play", {}, frame.signal) : { functions: [] };
  draw();
  frame.keys([
    ["u", () => frame.go("/runs")],
    ["c", () => frame.main.querySelector("[data-test]")?.click()],
  ]);
  if (run.summary.status === "running") follow();

  function draw() {
    show(frame.main, head(), h("div.stack", ...parts()));
  }

  async function below() {
    return run.children.length ? (await get("runs/" + segment(id) + "/tree", {}, frame.signal)).runs : [];
  }

  function head() {
    const { summary } = run;
    const fits = playable.functions.find((each) => each.function === summary.function && !each.problem);
    const test = copyButton(async () => taken("test"), t("run.copy.test"), frame);
    test.dataset.test = "";
    return h("div",
      h("a.back", { to: "/runs" }, icon("left"), t("nav.runs")),
      h("div.head",
        h("div", h("h1", summary.function || summary.trace_id, " ", statusBadge(summary.status)),
          h("div.quiet", moment(summary.started), " · ", ago(summary.started), " ", marks(summary, term))),
        h("div.actions",
          h("button", { "aria-pressed": String(isMarkdown()), title: t("markdown.title"), onclick: () => { setMarkdown(!isMarkdown()); draw(); } }, t("markdown")),
          fits && h("a.button", { to: "/play/" + segment(fits.name) + "?run=" + summary.id }, icon("play"), t("run.again")),
          frame.info.cases && summary.kind === "function" && h("button", { onclick: () => addToCases(frame, [run]) }, t("cases.add")),
          h("button", { onclick: async () => { const text = await taken("html"); if (text) save("run-" + summary.id + ".html", new Blob([text], { type: "text/html" })); } }, icon("down"), t("run.html")),
          ["function", "chat"].includes(summary.kind) && test)));
  }

  async function taken(what, query) {
    try {
      return (await get("runs/" + segment(id) + "/" + what, query, frame.signal)).text;
    } catch (error) {
      frame.note(error.message);
    }
  }

  function parts() {
    const { summary } = run;
    return [
      facts(),
      markCard(frame, run),
      run.incomplete && h("div.hint", t("run.incomplete")),
      summary.status === "error" && h("div.problem", h("strong", summary.error), summary.error_text ? ": " + summary.error_text : ""),
      summary.status === "lost" && h("div.hint", t("run.lost")),
      run.turns.length > 0 && h("section.card", h("div.title", h("h2", t("fall.title"))), waterfall(run, tree, frame.go)),
      h("div.two", asked(), answered()),
      ...run.turns.map(turnCard),
      run.tool_calls.length > 0 && toolsCard(),
      run.messages.length > 0 && h("section.card", h("div.title", h("h2", t("run.conversation"))), h("div.body", h("details", h("summary", t("run.messages", { count: run.messages.length })), messagesView(run.messages)))),
      related(),
    ];
  }

  function facts() {
    const { summary } = run;
    const version = summary.version && h("a.mono", { to: "/function/" + segment(summary.function) }, summary.version.slice(0, 8));
    const pairs = [
      ["column.seconds", seconds(summary.seconds), true],
      ["column.tokens", count(summary.input_tokens) + " + " + count(summary.output_tokens), true],
      ["column.cost", usd(summary.cost), true],
      ["column.model", [summary.model, summary.provider].filter(Boolean).join(" · ")],
      ["fact.version", version && [version, " ", term("?", "version")]],
      ["fact.mode", run.output_mode && (["native", "tool", "prompt"].includes(run.output_mode) ? term(run.output_mode, run.output_mode) : run.output_mode)],
      ["fact.first", summary.first_chunk_seconds === null ? null : seconds(summary.first_chunk_seconds)],
      ["fact.cached", summary.cached_tokens ? count(summary.cached_tokens) + " (" + percent(summary.cached_tokens / Math.max(summary.input_tokens, 1)) + ")" : null],
      ["fact.reasoning", summary.reasoning_tokens ? count(summary.reasoning_tokens) : null],
      ["fact.session", summary.session && h("a.mono", { to: "/session/" + segment(summary.session) }, summary.session)],
      ["fact.user", summary.user && h("a", { to: "/runs?user=" + segment(summary.user) }, summary.user)],
      ["fact.trace", h("code.small", summary.trace_id)],
    ];
    return h("section.card", h("div.body", h("dl.facts", pairs.filter(([, value]) => value !== null && value !== "" && value !== undefined).map(([name, value, isBig]) =>
      h("div", h("dt", t(name)), h("dd", { class: isBig ? "big" : "" }, value))))));
  }

  function asked() {
    const given = run.arguments;
    const isPlain = given && typeof given === "object" && !Array.isArray(given) && !omitted(given);
    return h("section.card", h("div.title", h("h2", t("run.arguments"))),
      h("div.body", isPlain && Object.keys(given).length
        ? h("dl.stack", Object.entries(given).map(([name, value]) => h("div", h("dt.named", h("code.quiet", name), copyIcon(() => pretty(value), name)), h("dd", textOrJson(value)))))
        : given ? jsonView(given) : h("p.faint", t("run.no.arguments"))));
  }

  function answered() {
    const { summary } = run;
    const last = run.reviews[run.reviews.length - 1];
    const body = h("div.body.stack");
    const value = run.value ?? null;
    const drawValue = () => show(body, notes(), value !== null && !omitted(value) ? textOrJson(value) : run.answer === null || run.answer === "" ? h("p.faint", t(summary.status === "running" ? "run.not.yet" : "run.no.answer")) : textOrJson(run.answer));
    const drawText = () => show(body, notes(), omitted(run.answer) ? jsonView(run.answer) : h("pre.code", String(run.answer ?? "")));
    function notes() {
      return last && (last.repairs.length > 0 || last.violations.length > 0) && h("div",
        last.violations.length > 0 && violationsView(last.violations), last.repairs.length > 0 && repairsView(last.repairs));
    }
    drawValue();
    return h("section.card",
      h("div.title", h("h2", t("run.answer")), last && !last.repairs.length && last.accepted && h("span.tag", t("run.strict")),
        h("div.actions", tabs([[t("view.value"), drawValue], [t("view.text"), drawText]], t("run.answer")), copyIcon(() => pretty(value ?? run.answer ?? ""), t("run.answer")))),
      body);
  }

  function turnCard(turn) {
    const body = h("div");
    const review = run.reviews.find((each) => each.turn === turn.turn);
    const isLast = !run.turns.some((other) => other.turn === turn.turn && other.number > turn.number);
    const drawMessages = () => show(body, h("div.sides", h("div", h("h3", t("turn.request")), requestMessages(turn)), h("div", h("h3", t("turn.reply")), replyMessages(turn), isLast && review && judged(review))));
    const drawRaw = () => show(body, h("div.sides", h("div", h("h3", t("turn.request")), turn.request === null ? h("p.faint", t("turn.untold")) : jsonView(turn.request)), h("div", h("h3", t("turn.reply")), turn.reply === null ? h("p.faint", t("turn.none")) : jsonView(turn.reply))));
    drawMessages();
    return h("section.card.turn", { id: "turn-" + turn.number, tabIndex: -1 },
      h("div.title", h("h2", t("turn.title", { turn: turn.turn })),
        h("span.quiet.small", [turn.model, seconds(turn.seconds), t("fall.tokens", { input: count(turn.input_tokens), output: count(turn.output_tokens) }), usd(turn.cost) === "–" ? "" : usd(turn.cost), turn.finish_reason].filter(Boolean).join(" · ")),
        turn.tries > 1 && h("span.tag.warn", t("mark.tries", { count: turn.tries - 1 })),
        isLast && review && !review.accepted && h("span.tag.warn", t("turn.rejected")),
        turn.cached && h("span.tag.accent", t("mark.cached")),
        h("div.actions", tabs([[t("view.messages"), drawMessages], [t("view.json"), drawRaw]], t("turn.title", { turn: turn.turn })),
          turn.url && copyButton(() => taken("curl", { number: turn.number }), t("run.copy.curl"), frame))),
      body);
  }

  function requestMessages(turn) {
    const request = turn.request;
    if (request === null) return h("p.faint", t("turn.untold"));
    const messages = omitted(request) ? null : messagesOf(request);
    if (!messages) return jsonView(request);
    const before = run.turns.filter((other) => other.number < turn.number && messagesOf(other.request)).pop();
    const known = before ? sameHead(messagesOf(before.request), messages) : 0;
    const [tools, format] = [toolNamesOf(request), formatOf(request)];
    return h("div",
      known > 0 && h("details", h("summary", t("turn.as.before", { count: known })), messagesView(messages.slice(0, known))),
      messagesView(messages.slice(known)),
      tools.length > 0 && h("p.small.quiet", t("turn.tools"), " ", tools.map((name) => [h("span.tag.tool", String(name)), " "])),
      format && h("details", h("summary", t("turn.format")), jsonView(format)));
  }

  function replyMessages(turn) {
    if (turn.reply === null) return h("p.faint", t(run.summary.status === "running" ? "run.not.yet" : "turn.none"));
    const choices = turn.reply && Array.isArray(turn.reply.choices) ? turn.reply.choices : null;
    if (!choices || omitted(turn.reply)) return jsonView(turn.reply);
    return h("ol.messages", choices.map((choice) => messageView({ role: "assistant", ...(choice.message || {}) })));
  }

  function judged(review) {
    return (review.violations.length > 0 || review.repairs.length > 0) && h("div.stack",
      review.violations.length > 0 && violationsView(review.violations), review.repairs.length > 0 && repairsView(review.repairs));
  }

  function toolsCard() {
    return h("section.card", h("div.title", h("h2", t("run.tools"))), h("div.body.stack", run.tool_calls.map((call) =>
      h("div.turn", { id: "tool-" + call.number, tabIndex: -1 },
        h("div.role", h("span.tag.tool", call.name), " ", call.failed && h("span.tag.bad", t("run.tool.failed")), " ", h("span.quiet.small", seconds(call.seconds))),
        h("div.two", textOrJson(call.arguments), h("div.message.tool", textOrJson(call.content ?? null)))))));
  }

  function related() {
    const lines = [run.parent_run && [t("run.part.of"), run.parent_run], ...run.children.map((child) => [t("run.began"), child])].filter(Boolean);
    return lines.length > 0 && h("section.card", h("div.title", h("h2", t("run.related"))), h("div.body", h("ul.stack", lines.map(([label, other]) =>
      h("li", h("span.quiet", label + " "), h("a", { to: "/run/" + other.id }, other.function), " ", statusBadge(other.status), " ", h("span.quiet", seconds(other.seconds)))))));
  }

  async function follow() {
    let { seq } = run.summary;
    while (!frame.signal.aborted && run.summary.status === "running") {
      await new Promise((done) => setTimeout(done, 1200));
      if (document.hidden) continue;
      try {
        const fresh = await get("runs/" + segment(id), {}, frame.signal);
        if (fresh.summary.seq === seq && fresh.summary.status === "running") continue;
        seq = fresh.summary.seq;
        run = fresh;
        tree = await below();
        draw();
      } catch (error) {
        if (error.status) return; // refused, or deleted; without a status the server may come back
      }
    }
  }
}

function sameHead(before, now) {
  let known = 0;
  while (known < before.length && known < now.length && JSON.stringify(before[known]) === JSON.stringify(now[known])) known += 1;
  return known;
}
