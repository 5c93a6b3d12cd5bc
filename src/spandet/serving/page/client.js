// Talks to the server that this page came from, and says in plain words what went wrong.

const TRIES = 6;
const LONGEST_WAIT = 30; // seconds

let token = ""; // in memory only

export const useToken = (value) => {
  token = value.trim();
};

// `kind`: "token" (one is needed, or it is wrong), "refused" (asking again will not help) or "failed".
export class Trouble extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}

const number = (value) => Number(value).toLocaleString("en");

const detailOf = async (response) => {
  try {
    const { detail, error, message } = await response.json();
    const found = detail ?? error ?? message;
    if (Array.isArray(found)) return found.map((each) => each.msg ?? String(each)).join("; ");
    return typeof found === "string" ? found : found?.message ?? "";
  } catch {
    return "";
  }
};

const because = (detail) => (detail ? ` The server says: ${detail}` : "");

const MESSAGES = {
  401: ["token", () => (token ? "The server does not accept this token." : "The server asks for an access token.")],
  403: ["token", () => "The server does not accept this token."],
  413: ["refused", (detail) => `This text is too long for the server.${because(detail)}`],
  422: ["refused", (detail) => `The server cannot read this text.${because(detail)}`],
  429: ["failed", () => "The server is still busy with other texts. Please try again in a moment."],
  503: ["failed", () => "The server is shutting down or starting. Please try again in a moment."],
  504: ["failed", (detail) => `The server took too long. A shorter text may help.${because(detail)}`],
};

const troubleOf = async (response) => {
  const detail = await detailOf(response);
  const [kind, say] = MESSAGES[response.status]
    ?? ["failed", () => `The server could not do it (error ${response.status}).${because(detail)}`];
  return new Trouble(kind, say(detail));
};

const sleep = (seconds, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, 1000 * seconds);
  signal?.addEventListener("abort", () => {
    clearTimeout(timer);
    reject(signal.reason);
  }, { once: true });
});

// Counts down aloud, so that nobody wonders why nothing happens.
const wait = async (seconds, { signal, onWait }) => {
  for (let left = Math.ceil(seconds); left > 0; left -= 1) {
    onWait?.(left);
    await sleep(Math.min(1, seconds), signal);
  }
  onWait?.(0);
};

const send = async (path, options, signal) => {
  const headers = { Accept: "application/json" };
  if (options.body) headers["Content-Type"] = "application/json";
  if (token) headers.Authorization = `Bearer ${token}`;
  try {
    return await fetch(path, { ...options, headers, signal, credentials: "omit", cache: "no-store" });
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw new Trouble("failed", "The server does not answer. Is it still running, and are you connected?");
  }
};

const ask = async (path, options, { signal, onWait } = {}) => {
  for (let tries = 1; ; tries += 1) {
    const response = await send(path, options, signal);
    if (response.status === 429 && tries < TRIES) {
      const seconds = Number(response.headers.get("Retry-After")) || 2 ** tries;
      await wait(Math.min(seconds, LONGEST_WAIT), { signal, onWait });
      continue;
    }
    if (!response.ok) throw await troubleOf(response);
    try {
      return await response.json();
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      throw new Trouble("failed", "The answer of the server broke off or is no JSON.");
    }
  }
};

const post = (path, body, options) => ask(path, { method: "POST", body: JSON.stringify(body) }, options);

export const fetchModel = (options) => ask("v1/model", {}, options);

export const fetchEntities = async (text, minScore, options) => {
  const answer = await post("v1/entities", { text, min_score: minScore }, options);
  return answer.documents[0].entities;
};

export const fetchTrace = (text, minScore, options) => post("v1/trace", { text, min_score: minScore }, options);

// A text file as text; throws Trouble where it is none.
export const readTextFile = async (file, longest) => {
  if (file.size > 4 * longest) {
    throw new Trouble("refused", `${file.name} is too long: ${number(longest)} characters are the most.`);
  }
  const bytes = await file.arrayBuffer();
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!text.includes("\0")) return text;
  } catch {
    // Said below.
  }
  throw new Trouble("refused", `${file.name} is no text file in UTF-8.`);
};
