// How entities of a text came about, asked for when somebody wants to know.

import { fetchTrace } from "./client.js";
import { LOWEST_SCORE } from "./search.js";
import { countCharacters, paragraphAround, sentenceAround } from "./words.js";

const LONGEST = 5000;
const SAME_SCORE = 0.005;

// The entity among what was traced in the stretch of the text that begins at character `base`.
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
  const asked = new Map();

  const traceOf = ([from, to]) => {
    const key = `${from}:${to}`;
    if (!asked.has(key)) {
      const answer = fetchTrace(text.slice(from, to), Math.min(LOWEST_SCORE, threshold));
      answer.catch(() => asked.delete(key)); // so that it can be tried again
      asked.set(key, answer);
    }
    return asked.get(key);
  };

  // A trace is long, so only the entity's sentence is traced. Where the server sees sentences or their
  // surroundings otherwise than this browser, the paragraph says it better. None (null) is there
  // where the model does not find it without the text around it.
  const of = async (entity) => {
    const paragraph = paragraphAround(text, entity.start, entity.end);
    const stretches = [sentenceAround(text, paragraph, entity.start, entity.end), paragraph];
    let best = null;
    for (const stretch of stretches) {
      const [from, to] = stretch;
      if (stretch === paragraph && to - from > (limits?.max_trace_chars ?? LONGEST)) break;
      const match = matchIn(await traceOf(stretch), countCharacters(text.slice(0, from)), entity);
      if (match && Math.abs(match.found.score - entity.score) < SAME_SCORE) return match;
      best ??= match;
    }
    return best;
  };

  return { of };
};
