// The texts of the page, one table for each language.

const KEY = "simplellmfunc-language";
export const LANGUAGES = { en: "English", zh: "中文" };

let words = new Map();
let current = "en";

export function language() {
  return current;
}

function wanted() {
  let kept = null;
  try {
    kept = localStorage.getItem(KEY);
  } catch {
    // Without storage in the browser.
  }
  if (kept && Object.hasOwn(LANGUAGES, kept)) return kept;
  return (navigator.language || "en").toLowerCase().startsWith("zh") ? "zh" : "en";
}

export async function speak(name = wanted()) {
  const reply = await fetch("lang/" + name + ".json", { cache: "no-cache" });
  words = new Map(Object.entries(await reply.json()));
  current = name;
  document.documentElement.lang = name === "zh" ? "zh-CN" : "en";
}

export async function choose(name) {
  try {
    localStorage.setItem(KEY, name);
  } catch {
    // Without storage: lasts until the page is closed.
  }
  await speak(name);
}

// t("more", {count: 3}): a text may hold {count}, and {count:character|characters} for singular and plural.
export function t(key, given) {
  const text = words.get(key) ?? key;
  if (!given) return text;
  return text.replace(/\{(\w+)(?::([^{}|]*)\|([^{}|]*))?\}/g, (whole, name, one, many) => {
    if (!Object.hasOwn(given, name)) return whole;
    const value = String(given[name]);
    if (one === undefined) return value;
    return value === "1" ? one : many;
  });
}
