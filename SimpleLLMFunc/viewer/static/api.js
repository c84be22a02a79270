// Requests for data. The token comes from the fragment of the address, which no server sees, and is sent as a header.

const KEY = "simplellmfunc-token " + location.pathname;

let token = take();

function take() {
  const match = /^#token=([A-Za-z0-9_-]+)$/.exec(location.hash);
  if (match) {
    try {
      localStorage.setItem(KEY, match[1]);
    } catch {
      // Without storage in the browser the token lasts as long as the tab.
    }
    // Removes the token from the address bar, the history and screenshots.
    history.replaceState(null, "", location.pathname + location.search);
    return match[1];
  }
  try {
    return localStorage.getItem(KEY) || "";
  } catch {
    return "";
  }
}

export function retake() {
  if (/^#token=/.test(location.hash)) token = take();
}

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function ask(path, { query, body, signal } = {}) {
  const given = Object.entries(query || {}).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const address = "api/" + path + (given.length ? "?" + new URLSearchParams(given) : "");
  const headers = {};
  if (token) headers["X-SimpleLLMFunc-Token"] = token;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const reply = await fetch(address, {
    method: body === undefined ? "GET" : "POST",
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    signal,
    cache: "no-store",
    credentials: "same-origin",
    redirect: "error",
  });
  if (reply.ok) return reply;
  let why = reply.statusText;
  try {
    why = (await reply.json()).error || why;
  } catch {
    // Not a response of ours: show the status.
  }
  throw new Refused(reply.status, why);
}

export async function get(path, query, signal) {
  return (await ask(path, { query, signal })).json();
}

export async function blob(path, query, signal) {
  return (await ask(path, { query, signal })).blob();
}

export async function post(path, body, signal) {
  return (await ask(path, { body, signal })).json();
}

// Yields each line of a response as it arrives.
export async function* lines(path, body, signal) {
  const reply = await ask(path, { body, signal });
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const part of parts) if (part) yield JSON.parse(part);
  }
  if (rest) yield JSON.parse(rest);
}

export const segment = encodeURIComponent;
