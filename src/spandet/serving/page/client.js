// Requests to the server of this page, with retries and readable error messages.

const TRIES = 6;
const MAX_WAIT = 30; // seconds

let token = ""; // in memory only

export const useToken = (value) => {
  token = value.trim();
};

// `kind`: "token" (missing or wrong), "refused" (a retry will not help) or "failed".
export class RequestError extends Error {
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

const reason = (detail) => (detail ? ` Message of the server: ${detail}` : "");

const MESSAGES = {
  401: ["token", () => (token ? "The server does not accept this token." : "The server requires an access token.")],
  403: ["token", () => "The server does not accept this token."],
  413: ["refused", (detail) => `The text is too long for the server.${reason(detail)}`],
  422: ["refused", (detail) => `The server refused the text.${reason(detail)}`],
  429: ["failed", () => "The server is busy with other texts. Please try again in a moment."],
  503: ["failed", () => "The server is starting or stopping. Please try again in a moment."],
  504: ["failed", (detail) => `The server took too long. Try a shorter text.${reason(detail)}`],
};

const errorOf = async (response) => {
  const detail = await detailOf(response);
  const [kind, message] = MESSAGES[response.status]
    ?? ["failed", () => `The request failed (error ${response.status}).${reason(detail)}`];
  return new RequestError(kind, message(detail));
};

const sleep = (seconds, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, 1000 * seconds);
  signal?.addEventListener("abort", () => {
    clearTimeout(timer);
    reject(signal.reason);
  }, { once: true });
});

// Calls `onWait` every second with the seconds left.
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
    throw new RequestError("failed", "The server does not respond. Is it running, and are you connected?");
  }
};

const request = async (path, options, { signal, onWait } = {}) => {
  for (let tries = 1; ; tries += 1) {
    const response = await send(path, options, signal);
    if (response.status === 429 && tries < TRIES) {
      const seconds = Number(response.headers.get("Retry-After")) || 2 ** tries;
      await wait(Math.min(seconds, MAX_WAIT), { signal, onWait });
      continue;
    }
    if (!response.ok) throw await errorOf(response);
    try {
      return await response.json();
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      throw new RequestError("failed", "The response of the server is incomplete or not JSON.");
    }
  }
};

const post = (path, body, options) => request(path, { method: "POST", body: JSON.stringify(body) }, options);

export const fetchModel = (options) => request("v1/model", {}, options);

export const fetchEntities = async (text, minScore, options) => {
  const { documents } = await post("v1/entities", { text, min_score: minScore }, options);
  return documents[0].entities;
};

export const fetchTrace = (text, minScore, options) => post("v1/trace", { text, min_score: minScore }, options);

// The content of a text file; throws a RequestError for other files.
export const readTextFile = async (file, maxChars) => {
  if (file.size > 4 * maxChars) {
    throw new RequestError("refused", `${file.name} is too long: the maximum is ${number(maxChars)} characters.`);
  }
  const bytes = await file.arrayBuffer();
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!text.includes("\0")) return text;
  } catch {
    // The error below.
  }
  throw new RequestError("refused", `${file.name} is not a text file in UTF-8.`);
};
