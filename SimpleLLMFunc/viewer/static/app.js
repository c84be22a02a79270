// The entry point: the frame, the routes (#/runs, #/run/12, …), the keyboard.

import { get, Refused, retake } from "./api.js";
import { append, h, icon, show } from "./dom.js";
import { choose, language, LANGUAGES, speak, t } from "./i18n.js";
import { runsPage } from "./runs.js";
import { runPage } from "./run.js";
import { functionPage, functionsPage } from "./functions.js";
import { playPage, playgroundPage } from "./play.js";
import { chatPage, chatsPage } from "./chat.js";
import { mapPage, mapsPage } from "./maps.js";
import { comparePage } from "./compare.js";
import { reportPage, reportsPage } from "./reports.js";
import { sessionPage, sessionsPage } from "./sessions.js";
import { waitingPage } from "./waiting.js";

const PLACES = [
  ["runs", /^\/(?:runs(?:\?.*)?)?$/, runsPage],
  ["runs", /^\/run\/([^/?]+)$/, runPage],
  ["runs", /^\/compare\?.*$/, comparePage],
  ["reports", /^\/reports$/, reportsPage],
  ["reports", /^\/report\/(\d+)(?:\?.*)?$/, reportPage],
  ["sessions", /^\/sessions$/, sessionsPage],
  ["sessions", /^\/session\/([^/?]+)$/, sessionPage],
  ["functions", /^\/functions$/, functionsPage],
  ["functions", /^\/function\/([^/?]+)$/, functionPage],
  ["play", /^\/play$/, playgroundPage],
  ["play", /^\/play\/([^/?]+)(?:\?.*)?$/, playPage],
  ["chat", /^\/chat$/, chatsPage],
  ["chat", /^\/chat\/([^/?]+)$/, chatPage],
  ["maps", /^\/maps$/, mapsPage],
  ["maps", /^\/map\/(\d+)$/, mapPage],
  ["waiting", /^\/waiting$/, waitingPage],
];
const TABS = [["runs", "/runs", "1"], ["sessions", "/sessions", "2"], ["functions", "/functions", "3"], ["play", "/play", "4"], ["chat", "/chat", "5"], ["maps", "/maps", "6"], ["reports", "/reports", "7"], ["waiting", "/waiting", "w"]];
const THEMES = ["auto", "light", "dark"];

const main = document.getElementById("main");
let leave = null; // stops the timers of the current page
let info = null;
let keysOfPage = new Map();

// --- arguments of pages ---
const frame = {
  main,
  title(text) {
    document.title = text ? text + " · SimpleLLMFunc" : "SimpleLLMFunc";
  },
  go(place) {
    location.hash = place;
  },
  query() {
    return new URLSearchParams(location.hash.split("?")[1] || "");
  },
  // Changes the address without reloading the page.
  requery(params) {
    const text = params.toString();
    const place = (location.hash.split("?")[0] || "#/runs") + (text ? "?" + text : "");
    history.replaceState(null, "", location.pathname + location.search + place);
    main.dataset.place = place.slice(1);
  },
  note(text) {
    const line = h("div", text);
    document.getElementById("notes").append(line);
    setTimeout(() => line.remove(), 2600);
  },
  keys(pairs) {
    keysOfPage = new Map(pairs);
  },
  get info() {
    return info;
  },
};

function kept(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // Without storage: lasts until the page is closed.
  }
}

// --- frame ---
function theme() {
  return THEMES.includes(document.documentElement.dataset.theme) ? document.documentElement.dataset.theme : "auto";
}

function setTheme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  keep("simplellmfunc-theme", name);
  document.dispatchEvent(new Event("theme"));
}

function drawTop(current) {
  const picture = document.createElement("img");
  picture.src = "icon.svg";
  picture.alt = "";
  const next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length];
  const other = language() === "en" ? "zh" : "en";
  show(
    document.getElementById("top"),
    append(h("a.brand", { to: "/runs" }), [picture, "SimpleLLMFunc"]),
    h("nav.nav", { "aria-label": t("nav.label") },
      TABS.filter(([name]) => name !== "reports" || info?.reports || current === name).map(([name, place]) => h("a", { to: place, "aria-current": name === current ? "page" : null }, t("nav." + name)))),
    h("div.tools",
      h("button.plain", { lang: other, onclick: () => choose(other).then(route), title: t("top.language") }, LANGUAGES[other]),
      h("button.plain", { "aria-label": t("top.theme." + theme()), title: t("top.theme." + theme()), onclick: () => { setTheme(next); drawTop(current); } },
        icon({ auto: "auto", light: "sun", dark: "moon" }[theme()])),
      h("button.plain", { "aria-label": t("keys.title"), title: t("keys.title") + " (?)", onclick: showKeys }, icon("help"))),
  );
}

function showKeys() {
  if (document.querySelector("dialog[open]")) return;
  const rows = [["1 – 7", "keys.tabs"], ["/", "keys.search"], ["j  k", "keys.move"], ["Enter", "keys.open"], ["n  p", "keys.page"], ["x", "keys.pick"], ["u", "keys.up"], ["c", "keys.test"], ["Ctrl Enter", "keys.send"], ["t", "keys.theme"], ["?", "keys.help"]];
  const box = h("dialog", { "aria-label": t("keys.title") },
    h("h2", t("keys.title")),
    h("dl.keys", rows.map(([keys, text]) => [h("dt", keys.split("  ").map((key) => [h("kbd", key), " "])), h("dd", t(text))])),
    h("button", { onclick: () => box.close() }, t("close")));
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}

function isTyping(target) {
  return target.closest("input, textarea, select, [contenteditable]") !== null;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") for (const open of document.querySelectorAll("details.term[open]")) open.open = false;
  if (isTyping(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const act = keysOfPage.get(event.key);
  if (act) {
    if (act(event) !== false) event.preventDefault();
    return;
  }
  const tab = TABS.find(([, , key]) => key === event.key);
  if (tab) frame.go(tab[1]);
  else if (event.key === "?") showKeys();
  else if (event.key === "t") setTheme(THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]), route.tab && drawTop(route.tab);
  else return;
  event.preventDefault();
});

// --- places ---
async function route() {
  if (leave) leave.abort();
  const mine = (leave = new AbortController());
  keysOfPage = new Map();
  const place = location.hash.slice(1) || "/";
  const found = PLACES.map(([tab, pattern, page]) => [tab, pattern.exec(place), page]).find(([, match]) => match);
  route.tab = found ? found[0] : "";
  drawTop(route.tab);
  main.setAttribute("aria-busy", "true");
  main.dataset.place = place; // the route that is loading; main is busy until it is shown
  try {
    if (!found) throw new Refused(404, t("error.place", { place: readable(place) }));
    const isFirst = info === null;
    info = await get("info", {}, mine.signal);
    if (isFirst && info.reports) drawTop(route.tab);
    const [, match, page] = found;
    await page({ ...frame, get info() { return info; }, signal: mine.signal }, ...match.slice(1).map(decodeURIComponent));
  } catch (error) {
    if (!mine.signal.aborted) failed(error);
  } finally {
    if (leave === mine) main.removeAttribute("aria-busy"); // not for a route that was left meanwhile
  }
}

function readable(place) {
  try {
    return decodeURI(place);
  } catch {
    return place; // an invalid % escape
  }
}

function failed(error) {
  if (error instanceof Refused && error.status === 401) {
    show(main, h("div.card.empty", h("h2", t("token.title")), h("p", t("token.text"))));
    return;
  }
  frame.title(t("error.title"));
  const isGone = error instanceof TypeError && /fetch|network|load/i.test(error.message);
  const said = isGone ? t("error.gone") : error.message;
  show(main, h("div.card.empty", h("h2", t("error.title")), h("p", said)));
}

document.addEventListener("note", (event) => frame.note(event.detail));
document.addEventListener("click", (event) => {
  for (const open of document.querySelectorAll("details.term[open]")) if (!open.contains(event.target)) open.open = false;
});
setTheme(kept("simplellmfunc-theme") || "auto");
window.addEventListener("hashchange", () => {
  for (const box of document.querySelectorAll("dialog[open]")) box.close(); // it was about the place that is left
  retake();
  main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
  route();
});
await speak();
await route();
