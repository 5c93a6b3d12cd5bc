// Pure functions of texts and spans. Spans are half-open. The server counts characters (code points),
// the browser counts UTF-16 units.

const ASTRAL = /[\ud800-\udbff][\udc00-\udfff]/;

// A function that converts a position in characters to one in units.
export const unitsOf = (text) => {
  if (!ASTRAL.test(text)) return (place) => place;
  const starts = [];
  let unit = 0;
  for (const character of text) {
    starts.push(unit);
    unit += character.length;
  }
  starts.push(unit);
  return (place) => starts[Math.min(place, starts.length - 1)];
};

export const countCharacters = (text) => {
  if (!ASTRAL.test(text)) return text.length;
  let count = 0;
  for (const _ of text) count += 1;
  return count;
};

// The layer of each extent [start, end): overlapping extents are on different layers, the outer nearer
// to the text, with as few layers as possible.
export const layersOf = (extents) => {
  const order = extents.map((_, i) => i).sort((a, b) =>
    extents[a][0] - extents[b][0] || extents[b][1] - extents[a][1] || a - b);
  const ends = []; // end of the last extent of each layer
  const found = new Array(extents.length);
  for (const i of order) {
    const [start, end] = extents[i];
    let layer = ends.findIndex((free) => free <= start);
    if (layer < 0) layer = ends.length;
    ends[layer] = end;
    found[i] = layer;
  }
  return found;
};

// Groups of spans that overlap, in order: [{start, end, members}].
export const clustersOf = (spans) => {
  const sorted = [...spans].sort((a, b) => a.start - b.start || b.end - a.end);
  const clusters = [];
  for (const span of sorted) {
    const last = clusters.at(-1);
    if (last && span.start < last.end) {
      last.end = Math.max(last.end, span.end);
      last.members.push(span);
    } else clusters.push({ start: span.start, end: span.end, members: [span] });
  }
  return clusters;
};

const PAUSE = /\s+|[。！？](?!\s)/g;
const STOPPED = /[.!?…。！？؟"'”’)\]]/;

// Splits a text into blocks for the layout: at the end of a line or, in a very long line, after a
// sentence or at least after a word; never inside one of the spans.
export const blocksOf = (text, spans, longest = 1500) => {
  const busy = clustersOf(spans);
  const blocks = [];
  let at = 0;
  let begin = 0;
  const isFree = (place) => {
    while (at < busy.length && busy[at].end <= place) at += 1;
    return at >= busy.length || busy[at].start >= place;
  };
  const isGood = (pause, place, length) => pause.includes("\n")
    || (length >= longest && STOPPED.test(text[place - pause.length - 1] + pause))
    || length >= 2 * longest;
  for (const { index, 0: pause } of text.matchAll(PAUSE)) {
    const place = index + pause.length;
    if (!isGood(pause, place, place - begin) || !isFree(place)) continue;
    blocks.push([begin, place]);
    begin = place;
  }
  if (begin < text.length) blocks.push([begin, text.length]);
  return blocks;
};

// Splits a long text into portions, one per request. A blank line always ends a sentence, so that a
// split there changes no entities; only a text without blank lines is split elsewhere.
export const portionsOf = (text, longest) => {
  const portions = [];
  let begin = 0;
  while (text.length - begin > longest) {
    const window = text.slice(begin, begin + longest);
    const lastOf = (pattern) => [...window.matchAll(pattern)].at(-1);
    const found = lastOf(/\n\s*\n/g) ?? lastOf(/\n/g) ?? lastOf(/(?<=[.!?。！？؟])\s+/g) ?? lastOf(/\s+/g);
    let length = found ? found.index + found[0].length : longest;
    if (/[\ud800-\udbff]/.test(text[begin + length - 1])) length -= 1; // never inside a character
    portions.push([begin, begin + Math.max(1, length)]);
    begin += Math.max(1, length);
  }
  portions.push([begin, text.length]);
  return portions;
};

// The paragraph of a span: the text between two blank lines.
export const paragraphAround = (text, start, end) => {
  const before = [...text.slice(0, start).matchAll(/\n[^\S\n]*\n/g)].at(-1);
  const after = /\n[^\S\n]*\n/.exec(text.slice(end));
  return [before ? before.index + before[0].length : 0, after ? end + after.index : text.length];
};

// The sentences of [from, to) that a span overlaps, as the browser splits them; all of [from, to) if
// the browser cannot.
export const sentenceAround = (text, [from, to], start, end) => {
  if (!("Segmenter" in Intl)) return [from, to];
  const segments = new Intl.Segmenter(undefined, { granularity: "sentence" }).segment(text.slice(from, to));
  let [first, last] = [to, from];
  for (const { index, segment } of segments) {
    const [own, next] = [from + index, from + index + segment.length];
    if (own >= end || next <= start) continue;
    first = Math.min(first, own);
    last = Math.max(last, next);
  }
  return first < last ? [first, last] : [from, to];
};
