// The way of an entity: a sentence in which bars move from stage to stage, as in `spandet trace`.

import { layersOf } from "./words.js";
import { nameWidth } from "./sheet.js";

const STAGE_MILLISECONDS = 900;
const JUMP_MILLISECONDS = 350;
const LETTER = 8; // pixels
const FOUND = "found";
const WIDEST_SPACE = 10; // pixels between two words of one bar
const LEFTWARDS = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/;

const calm = matchMedia("(prefers-reduced-motion: reduce)");
const smooth = (part) => part * part * (3 - 2 * part);

const make = (tag, className, ...content) => {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...content);
  return made;
};

// How much a stage believed in the label that came of it.
const belief = (step, label) => step.label_probs?.[label] ?? step.score ?? 1;

// The stages of each piece of an entity; most have one piece. The last stage is what came of it.
export const tracksOf = (found) => {
  const pieces = found.fragments ?? [[found.start, found.end]];
  return [found, ...(found.more ?? [])].map(({ steps, no_entity, label_probs }, i) => {
    const [start, end] = pieces[i] ?? pieces.at(-1);
    return [...steps, { stage: FOUND, start, end, score: found.score, no_entity, label_probs }];
  });
};

// Words with what stands between them.
const wordsOf = (sentence, characters) => {
  const spans = sentence.words.map((word) => make("span", "w", word));
  const content = spans.flatMap((span, i) => {
    const end = sentence.char_starts[i] + [...sentence.words[i]].length;
    const gap = characters.slice(end, sentence.char_starts[i + 1] ?? end).join("");
    return [span, gap && (/^\s*$/.test(gap) ? " " : gap)];
  });
  return { spans, content };
};

// Which layer each entity's bar moves on, so that none meets another at any stage.
const layout = (sentence, ways) => {
  const edges = [0];
  for (const word of sentence.words) edges.push(edges.at(-1) + word.length + 1);
  const column = (place) => {
    const inside = Math.max(0, Math.min(place, sentence.words.length));
    const word = Math.min(Math.floor(inside), sentence.words.length - 1);
    return edges[word] + (inside - word) * (edges[word + 1] - edges[word]);
  };
  const extents = ways.map(({ found, tracks }) => {
    const name = Math.ceil(nameWidth(found.label) / LETTER);
    const places = tracks.flat().map(({ start, end }) => [column(Math.min(start, end)), column(Math.max(start, end))]);
    return [Math.min(...places.map(([start]) => start)),
      Math.max(...places.map(([start, end]) => Math.max(end, start + name)))];
  });
  return layersOf(extents);
};

// The boxes of a word: several where a line ends inside it.
const measure = (place, spans) => {
  const box = place.getBoundingClientRect();
  const boxes = spans.map((span) => [...span.getClientRects()].map(({ left, right, bottom }) =>
    ({ left: left - box.left, right: right - box.left, base: bottom - box.top })));
  return { boxes, width: box.width };
};

// The part of a word from one share of its width to another, in its own reading direction.
const partsOf = (boxes, word, from, to) => {
  const total = boxes.reduce((sum, { left, right }) => sum + right - left, 0);
  const leftwards = LEFTWARDS.test(word);
  let passed = 0;
  return boxes.flatMap(({ left, right, base }) => {
    const start = Math.max(0, from * total - passed);
    const end = Math.min(right - left, to * total - passed);
    passed += right - left;
    if (end <= start) return [];
    return [leftwards ? { left: right - end, right: right - start, base }
      : { left: left + start, right: left + end, base }];
  });
};

// What a span of words covers, line by line; its ends may lie inside words.
const coveredBy = (boxes, words, start, end) => {
  const covered = [];
  for (let i = Math.floor(start); i < Math.min(end, words.length); i += 1) {
    for (const part of partsOf(boxes[i], words[i], Math.max(0, start - i), Math.min(1, end - i))) {
      const last = covered.at(-1);
      const near = last && Math.abs(last.base - part.base) < 4
        && part.left - last.right < WIDEST_SPACE && last.left - part.right < WIDEST_SPACE;
      if (near) {
        last.left = Math.min(last.left, part.left);
        last.right = Math.max(last.right, part.right);
      } else covered.push({ ...part });
    }
  }
  return covered;
};

// A name stands in its bar or, where it is longer, after it; at the end of a line before it.
const beside = (name, before, width, room) => {
  if (name <= width) return 0;
  return before + width + name <= room ? width : -Math.min(name, before);
};

// Shows `chosen`, one of the entities found in a sentence; `onStage` hears which stage is shown.
export const createWay = ({ sentence, characters, chosen, hueOf, onStage }) => {
  const place = make("p", "words way");
  place.dir = "auto";
  place.lang = "";
  const last = tracksOf(chosen)[0].length - 1;
  let position = last;
  let ways = [];
  let spans = [];
  let boxes = [];
  let width = 0;
  let leftwards = false;

  const pieceOf = (way, number, className) => {
    way.pieces[number] ??= place.appendChild(make("div", "", make("span", "name", make("bdi", "", way.found.label))));
    const piece = way.pieces[number];
    piece.className = `${className}${way.found === chosen ? " on" : " other"}`;
    piece.style.setProperty("--hue", hueOf(way.found.label));
    piece.setAttribute("aria-hidden", "true"); // the table says it all
    piece.hidden = false;
    return piece;
  };

  const draw = (way, from, to, sure, used, className = "bar") => {
    const start = Math.max(0, Math.min(from, to, sentence.words.length - 0.1));
    const end = Math.min(sentence.words.length, Math.max(from, to, start + 0.1));
    const step = parseFloat(getComputedStyle(place).getPropertyValue("--step"));
    const covered = coveredBy(boxes, sentence.words, start, end);
    covered.forEach(({ left, right, base }, i) => {
      const piece = pieceOf(way, used, className);
      const wide = Math.max(4, right - left);
      const before = leftwards ? width - left - wide : left;
      piece.classList.toggle("starts", i === 0);
      piece.classList.toggle("ends", i === covered.length - 1);
      piece.style.left = `${left}px`;
      piece.style.width = `${wide}px`;
      piece.style.top = `${base + way.layer * step}px`;
      piece.style.setProperty("--sure", (0.25 + 0.75 * sure).toFixed(3));
      piece.firstChild.hidden = used > 0;
      piece.firstChild.style.insetInlineStart = `${beside(nameWidth(way.found.label), before, wide, width)}px`;
      used += 1;
    });
    return used;
  };

  // Between two stages bars are in between; pieces are linked in the end.
  const drawWay = (way) => {
    let used = 0;
    way.tracks.forEach((stages, i) => {
      const at = Math.min(position, stages.length - 1);
      const [from, to] = [stages[Math.floor(at)], stages[Math.ceil(at)]];
      const mix = (one, other) => one + (at % 1) * (other - one);
      const sure = mix(belief(from, way.found.label), belief(to, way.found.label));
      used = draw(way, mix(from.start, to.start), mix(from.end, to.end), sure, used);
      const next = way.tracks[i + 1]?.at(-1);
      if (next && at === stages.length - 1 && to.end < next.start) {
        used = draw(way, to.end, next.start, sure, used, "link");
      }
    });
    for (const piece of way.pieces.slice(used)) piece.hidden = true;
  };

  const show = (wanted) => {
    position = Math.max(0, Math.min(last, wanted));
    ways.forEach(drawWay);
    onStage(Math.round(position), position, Boolean(ticking));
  };

  const lay = () => {
    ({ boxes, width } = measure(place, spans));
    leftwards = getComputedStyle(place).direction === "rtl";
    ways.forEach(drawWay);
  };

  const showAll = (all) => {
    const shown = all ? [chosen, ...sentence.found.filter((each) => each !== chosen)] : [chosen];
    ways = shown.map((found) => ({ found, tracks: tracksOf(found), pieces: [] }));
    layout(sentence, ways).forEach((layer, i) => { ways[i].layer = layer; });
    place.style.setProperty("--n", 1 + Math.max(...ways.map(({ layer }) => layer)));
    const words = wordsOf(sentence, characters);
    spans = words.spans;
    place.replaceChildren(...words.content);
    lay();
  };

  let ticking = 0;

  const halt = () => {
    cancelAnimationFrame(ticking);
    ticking = 0;
    onStage(Math.round(position), position, false);
  };

  // Calls `move` with 0 to 1 as time goes by.
  const animate = (milliseconds, move) => {
    cancelAnimationFrame(ticking);
    const began = performance.now();
    const tick = () => {
      const part = Math.min(1, (performance.now() - began) / milliseconds);
      if (part < 1) ticking = requestAnimationFrame(tick);
      move(part);
      if (part >= 1) halt();
    };
    ticking = requestAnimationFrame(tick);
  };

  // Every stage comes to rest before the next begins; who wants no motion sees the stages alone.
  const play = () => {
    const from = position >= last ? 0 : Math.floor(position);
    animate(Math.max(1, last - from) * STAGE_MILLISECONDS, (part) => {
      const time = from + part * (last - from);
      const moved = calm.matches ? 0 : smooth(Math.min(1, (time % 1) / 0.75));
      show(Math.floor(time) + moved);
    });
    if (position >= last) show(0);
  };

  let heading = last; // where the keys are on the way to
  const goTo = (to) => {
    const from = position;
    heading = Math.max(0, Math.min(last, to));
    if (calm.matches) {
      halt();
      show(heading);
    } else animate(JUMP_MILLISECONDS, (part) => show(from + smooth(part) * (heading - from)));
  };

  const observer = new ResizeObserver(() => lay());
  observer.observe(place);
  const leave = () => {
    observer.disconnect();
    cancelAnimationFrame(ticking);
  };

  return {
    place, showAll, show, play, goTo, halt, leave, last,
    isPlaying: () => Boolean(ticking),
    step: (by) => goTo((ticking ? heading : Math.round(position)) + by),
  };
};
