// The trajectory of an entity: a sentence with bars that move from stage to stage.

import { layersOf } from "./spans.js";
import { nameWidth } from "./text_view.js";

const STAGE_MILLISECONDS = 900;
const JUMP_MILLISECONDS = 350;
const LETTER = 8; // pixels
const FOUND = "found";
const WIDEST_SPACE = 10; // pixels between two words of one bar
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/;

const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
const smooth = (share) => share * share * (3 - 2 * share);

const make = (tag, className, ...content) => {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...content);
  return made;
};

// The probability of the entity's label at a stage, or the score of the stage.
const scoreOf = (step, label) => step.label_probs?.[label] ?? step.score ?? 1;

// The stages of each fragment of an entity; most entities have one. The last stage is the entity.
export const trajectoriesOf = (found) => {
  const fragments = found.fragments ?? [[found.start, found.end]];
  return [found, ...(found.more ?? [])].map(({ steps, no_entity, label_probs }, i) => {
    const [start, end] = fragments[i] ?? fragments.at(-1);
    return [...steps, { stage: FOUND, start, end, score: found.score, no_entity, label_probs }];
  });
};

// The words, and the characters between them.
const wordsOf = (sentence, characters) => {
  const spans = sentence.words.map((word) => make("span", "w", word));
  const content = spans.flatMap((span, i) => {
    const end = sentence.char_starts[i] + [...sentence.words[i]].length;
    const gap = characters.slice(end, sentence.char_starts[i + 1] ?? end).join("");
    return [span, gap && (/^\s*$/.test(gap) ? " " : gap)];
  });
  return { spans, content };
};

// The layer of each entity, so that bars overlap at no stage.
const layout = (sentence, shown) => {
  const edges = [0];
  for (const word of sentence.words) edges.push(edges.at(-1) + word.length + 1);
  const column = (place) => {
    const inside = Math.max(0, Math.min(place, sentence.words.length));
    const word = Math.min(Math.floor(inside), sentence.words.length - 1);
    return edges[word] + (inside - word) * (edges[word + 1] - edges[word]);
  };
  const extents = shown.map(({ found, trajectories }) => {
    const name = Math.ceil(nameWidth(found.label) / LETTER);
    const spans = trajectories.flat()
      .map(({ start, end }) => [column(Math.min(start, end)), column(Math.max(start, end))]);
    return [Math.min(...spans.map(([start]) => start)),
      Math.max(...spans.map(([start, end]) => Math.max(end, start + name)))];
  });
  return layersOf(extents);
};

// The boxes of each word: several if a line ends inside it.
const measure = (element, spans) => {
  const box = element.getBoundingClientRect();
  const boxes = spans.map((span) => [...span.getClientRects()].map(({ left, right, bottom }) =>
    ({ left: left - box.left, right: right - box.left, base: bottom - box.top })));
  return { boxes, width: box.width };
};

// The part of a word between two fractions of its width, in its own reading direction.
const partsOf = (boxes, word, from, to) => {
  const total = boxes.reduce((sum, { left, right }) => sum + right - left, 0);
  const leftwards = RIGHT_TO_LEFT.test(word);
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

// The boxes that a span of words covers, line by line; its boundaries may be inside words.
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

// Offset of a label from its bar: inside if it fits, otherwise after the bar; before it at the end of
// a line.
const labelOffset = (name, before, width, room) => {
  if (name <= width) return 0;
  return before + width + name <= room ? width : -Math.min(name, before);
};

// Shows `chosen`, one of the entities of a sentence; `onStage` is called with the stage that is shown.
export const createTrajectory = ({ sentence, characters, chosen, hueOf, onStage }) => {
  const element = make("p", "words trajectory");
  element.dir = "auto";
  element.lang = "";
  const last = trajectoriesOf(chosen)[0].length - 1;
  let position = last; // in stages; fractions are between two stages
  let shown = [];
  let spans = [];
  let boxes = [];
  let width = 0;
  let leftwards = false;

  const barOf = (entity, number, className) => {
    const { label } = entity.found;
    entity.bars[number] ??= element.appendChild(make("div", "", make("span", "name", make("bdi", "", label))));
    const bar = entity.bars[number];
    bar.className = `${className}${entity.found === chosen ? " on" : " other"}`;
    bar.style.setProperty("--hue", hueOf(label));
    bar.setAttribute("aria-hidden", "true"); // the table has the same content
    bar.hidden = false;
    return bar;
  };

  // Draws a span with one bar per line, from bar number `used` on; returns the next number.
  const draw = (entity, from, to, score, used, className = "bar") => {
    const start = Math.max(0, Math.min(from, to, sentence.words.length - 0.1));
    const end = Math.min(sentence.words.length, Math.max(from, to, start + 0.1));
    const step = parseFloat(getComputedStyle(element).getPropertyValue("--step"));
    const covered = coveredBy(boxes, sentence.words, start, end);
    covered.forEach(({ left, right, base }, i) => {
      const bar = barOf(entity, used, className);
      const wide = Math.max(4, right - left);
      const before = leftwards ? width - left - wide : left;
      const offset = labelOffset(nameWidth(entity.found.label), before, wide, width);
      bar.classList.toggle("starts", i === 0);
      bar.classList.toggle("ends", i === covered.length - 1);
      bar.style.left = `${left}px`;
      bar.style.width = `${wide}px`;
      bar.style.top = `${base + entity.layer * step}px`;
      bar.style.setProperty("--score", (0.25 + 0.75 * score).toFixed(3));
      bar.firstChild.hidden = used > 0;
      bar.firstChild.style.insetInlineStart = `${offset}px`;
      used += 1;
    });
    return used;
  };

  // Boundaries and scores are interpolated between stages; fragments are linked at the last stage.
  const drawEntity = (entity) => {
    let used = 0;
    entity.trajectories.forEach((stages, i) => {
      const at = Math.min(position, stages.length - 1);
      const [from, to] = [stages[Math.floor(at)], stages[Math.ceil(at)]];
      const mix = (one, other) => one + (at % 1) * (other - one);
      const score = mix(scoreOf(from, entity.found.label), scoreOf(to, entity.found.label));
      used = draw(entity, mix(from.start, to.start), mix(from.end, to.end), score, used);
      const next = entity.trajectories[i + 1]?.at(-1);
      if (next && at === stages.length - 1 && to.end < next.start) {
        used = draw(entity, to.end, next.start, score, used, "link");
      }
    });
    for (const bar of entity.bars.slice(used)) bar.hidden = true;
  };

  const show = (wanted) => {
    position = Math.max(0, Math.min(last, wanted));
    shown.forEach(drawEntity);
    onStage(Math.round(position), position, Boolean(ticking));
  };

  const redraw = () => {
    ({ boxes, width } = measure(element, spans));
    leftwards = getComputedStyle(element).direction === "rtl";
    shown.forEach(drawEntity);
  };

  const showAll = (all) => {
    const entities = all ? [chosen, ...sentence.found.filter((each) => each !== chosen)] : [chosen];
    shown = entities.map((found) => ({ found, trajectories: trajectoriesOf(found), bars: [] }));
    layout(sentence, shown).forEach((layer, i) => { shown[i].layer = layer; });
    element.style.setProperty("--n", 1 + Math.max(...shown.map(({ layer }) => layer)));
    const words = wordsOf(sentence, characters);
    spans = words.spans;
    element.replaceChildren(...words.content);
    redraw();
  };

  let ticking = 0;

  const halt = () => {
    cancelAnimationFrame(ticking);
    ticking = 0;
    onStage(Math.round(position), position, false);
  };

  // Calls `update` with the share of the time that has passed, from 0 to 1.
  const animate = (milliseconds, update) => {
    cancelAnimationFrame(ticking);
    const began = performance.now();
    const tick = () => {
      const share = Math.min(1, (performance.now() - began) / milliseconds);
      if (share < 1) ticking = requestAnimationFrame(tick);
      update(share);
      if (share >= 1) halt();
    };
    ticking = requestAnimationFrame(tick);
  };

  // Bars pause at every stage; with reduced motion they jump from stage to stage.
  const play = () => {
    const from = position >= last ? 0 : Math.floor(position);
    animate(Math.max(1, last - from) * STAGE_MILLISECONDS, (share) => {
      const time = from + share * (last - from);
      const fraction = reducedMotion.matches ? 0 : smooth(Math.min(1, (time % 1) / 0.75));
      show(Math.floor(time) + fraction);
    });
    if (position >= last) show(0);
  };

  let target = last; // the stage that the keys have selected
  const goTo = (to) => {
    const from = position;
    target = Math.max(0, Math.min(last, to));
    if (reducedMotion.matches) {
      halt();
      show(target);
    } else animate(JUMP_MILLISECONDS, (share) => show(from + smooth(share) * (target - from)));
  };

  const observer = new ResizeObserver(() => redraw());
  observer.observe(element);
  const close = () => {
    observer.disconnect();
    cancelAnimationFrame(ticking);
  };

  return {
    element, showAll, show, play, goTo, halt, close, last,
    isPlaying: () => Boolean(ticking),
    step: (by) => goTo((ticking ? target : Math.round(position)) + by),
  };
};
