// Entities of a text of any length, and traces of its entities.

import { fetchEntities, fetchTrace } from "./client.js";
import { countCharacters, paragraphAround, portionsOf, sentenceAround, unitsOf } from "./spans.js";

const PORTION = 20_000; // longer texts are sent in portions, to show progress
const MAX_TRACE_CHARS = 5000; // if the server has no limit
const SAME_SCORE = 0.005;

export const LOWEST_SCORE = 0.05; // entities above it are loaded, so that the slider needs no request

// An entity of the response, with positions in UTF-16 units of the whole text.
const received = (entity, units, base, baseCharacters) => {
  const shifted = (spans) => spans.map((span) => span.map((place) => baseCharacters + place));
  const fragments = (entity.fragments ?? [[entity.start, entity.end]])
    .map(([start, end]) => [base + units(start), base + units(end)]);
  const [[start, end]] = shifted([[entity.start, entity.end]]);
  const { label, score, text } = entity;
  return { label, score, text, fragments, start: fragments[0][0], end: fragments.at(-1)[1],
    characters: { start, end, ...(entity.fragments && { fragments: shifted(entity.fragments) }) } };
};

// `onProgress` is called before each of several portions.
export const search = async (text, { threshold, limits }, { onProgress, ...options }) => {
  const longest = Math.min(PORTION, limits?.max_text_chars ?? PORTION);
  const found = [];
  let characters = 0;
  for (const [start, end] of portionsOf(text, longest)) {
    if (text.length > longest) onProgress(start, text.length);
    const portion = text.slice(start, end);
    const units = unitsOf(portion);
    const entities = await fetchEntities(portion, Math.min(LOWEST_SCORE, threshold), options);
    for (const entity of entities) found.push(received(entity, units, start, characters));
    characters += countCharacters(portion);
  }
  return found;
};

// The entity in the trace of the passage that begins at character `base`; null if it is not there.
const matchIn = (traced, base, entity) => {
  const { start, end } = entity.characters;
  for (const sentence of traced.sentences) {
    const startOf = (word) => base + sentence.char_starts[word];
    const endOf = (word) => startOf(word) + countCharacters(sentence.words[word]);
    const found = sentence.found.find((each) =>
      each.label === entity.label && startOf(each.start) === start && endOf(each.end - 1) === end);
    if (found) return { sentence, found, characters: [...traced.text] };
  }
  return null;
};

export const createTraces = (text, { threshold, limits }) => {
  const requested = new Map(); // by passage

  const traceOf = ([from, to]) => {
    const key = `${from}:${to}`;
    if (!requested.has(key)) {
      const response = fetchTrace(text.slice(from, to), Math.min(LOWEST_SCORE, threshold));
      response.catch(() => requested.delete(key)); // so that it can be tried again
      requested.set(key, response);
    }
    return requested.get(key);
  };

  // A trace is long, so only the entity's sentence is traced. If the score differs from that in the
  // whole text (other sentence boundaries, missing context), its paragraph is traced. The result is
  // null if the model does not find the entity without the rest of the text.
  const of = async (entity) => {
    const paragraph = paragraphAround(text, entity.start, entity.end);
    const passages = [sentenceAround(text, paragraph, entity.start, entity.end), paragraph];
    let best = null;
    for (const passage of passages) {
      const [from, to] = passage;
      if (passage === paragraph && to - from > (limits?.max_trace_chars ?? MAX_TRACE_CHARS)) break;
      const match = matchIn(await traceOf(passage), countCharacters(text.slice(0, from)), entity);
      if (match && Math.abs(match.found.score - entity.score) < SAME_SCORE) return match;
      best ??= match;
    }
    return best;
  };

  return { of };
};
