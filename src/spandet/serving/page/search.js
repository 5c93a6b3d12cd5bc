// All entities of a text, however long it is.

import { fetchEntities } from "./client.js";
import { countCharacters, portionsOf, unitsOf } from "./words.js";

const PORTION = 20_000; // a longer text is asked for in portions, so that there is progress to see

export const LOWEST_SCORE = 0.05; // what a slider can reach without asking again

// The server's entity, counted in this browser's units of the whole text.
const received = (entity, units, base, baseCharacters) => {
  const moved = (spans) => spans.map((span) => span.map((place) => baseCharacters + place));
  const pieces = (entity.fragments ?? [[entity.start, entity.end]])
    .map(([start, end]) => [base + units(start), base + units(end)]);
  const [[start, end]] = moved([[entity.start, entity.end]]);
  const { label, score, text } = entity;
  return { label, score, text, pieces, start: pieces[0][0], end: pieces.at(-1)[1],
    characters: { start, end, ...(entity.fragments && { fragments: moved(entity.fragments) }) } };
};

// `onProgress` hears how much is done, where there is more than one portion.
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
