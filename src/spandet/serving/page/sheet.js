// The text with its entities: bars under the words, nested ones on layers of their own.
//
// The text stays plain text. Each run of entities is one element that makes room below its lines, and
// bars are put where the browser says that the words are: so they follow line ends and both reading
// directions, cut words exactly and leave Arabic letters joined. Only blocks near the window get bars.

import { blocksOf, clustersOf, layersOf } from "./words.js";

const NAME_PADDING = 8;
const LETTER = 7; // pixels, roughly: for how far a name reaches out beyond its words

const pen = document.createElement("canvas").getContext("2d");
const widths = new Map();

export const nameWidth = (name) => {
  pen.font = "11px system-ui, sans-serif"; // as in the style sheet
  if (!widths.has(name)) widths.set(name, Math.ceil(pen.measureText(name).width) + NAME_PADDING);
  return widths.get(name);
};

const make = (tag, className, ...content) => {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...content);
  return made;
};

// Boxes of one line that meet become one.
const joined = (boxes) => {
  const lines = [];
  for (const box of boxes) {
    if (box.width < 0.5) continue;
    const last = lines.at(-1);
    const meets = last && Math.abs(last.bottom - box.bottom) < 4
      && box.left <= last.right + 1.5 && box.right >= last.left - 1.5;
    if (meets) {
      last.left = Math.min(last.left, box.left);
      last.right = Math.max(last.right, box.right);
      last.bottom = Math.max(last.bottom, box.bottom);
    } else lines.push({ left: box.left, right: box.right, top: box.top, bottom: box.bottom });
  }
  return lines;
};

const sameSize = (one, other) =>
  Math.abs(one.width - other.width) < 0.5 && Math.abs(one.height - other.height) < 0.5;

const FRAMES_TO_SETTLE = 12;
const gapsOf = (pieces) => pieces.slice(1).map(([start], i) => [pieces[i][1], start]);

export const createSheet = (root, { hueOf, describe, onChoose }) => {
  let text = "";
  let entities = [];
  let blocks = [];
  let isWanted = () => true;
  let stop = null; // the entity that the tab key stops at
  let chosen = null;
  const near = new Set();

  // Making room.

  const reach = (entity) => {
    const beyond = nameWidth(entity.label) - LETTER * (entity.pieces[0][1] - entity.pieces[0][0]);
    return [entity.start, Math.max(entity.end, entity.start + Math.ceil(beyond / LETTER)
      + entity.pieces[0][1] - entity.pieces[0][0])];
  };

  const dress = (block) => {
    block.shown = block.entities.filter(isWanted);
    const layers = layersOf(block.shown.map(reach));
    block.shown.forEach((entity, i) => { entity.layer = layers[i]; });
    block.bases = new Map();
    const parts = [];
    let at = block.start;
    for (const cluster of clustersOf(block.shown)) {
      parts.push(text.slice(at, cluster.start));
      const inner = make("span", "", text.slice(cluster.start, cluster.end));
      const outer = make("span", "run", inner);
      outer.style.setProperty("--n", 1 + Math.max(...cluster.members.map((each) => each.layer)));
      block.bases.set(inner.firstChild, cluster.start);
      for (const entity of cluster.members) entity.node = inner.firstChild;
      parts.push(outer);
      at = cluster.end;
    }
    parts.push(text.slice(at, block.stop));
    block.words.replaceChildren(...parts);
  };

  // Where things stand.

  const linesOf = (block, entity, [start, end]) => {
    const range = document.createRange();
    const base = block.bases.get(entity.node);
    range.setStart(entity.node, start - base);
    range.setEnd(entity.node, end - base);
    return joined(range.getClientRects());
  };

  const measure = (block) => {
    block.box = block.element.getBoundingClientRect();
    block.direction = getComputedStyle(block.words).direction;
    for (const entity of block.shown) {
      entity.lines = entity.pieces.map((piece) => linesOf(block, entity, piece));
      entity.gaps = gapsOf(entity.pieces).flatMap((gap) => linesOf(block, entity, gap));
    }
  };

  const put = (block, element, line, top, height) => {
    element.style.left = `${line.left - block.box.left}px`;
    element.style.top = `${top - block.box.top}px`;
    element.style.width = `${line.right - line.left}px`;
    if (height) element.style.height = `${height}px`;
    return element;
  };

  // A name longer than its bar reaches out, but not over the edge.
  const nameOf = (block, entity, line) => {
    const name = make("span", "name", make("bdi", "", entity.label));
    const room = block.direction === "rtl" ? line.right - block.box.left : block.box.right - line.left;
    const over = nameWidth(entity.label) - room;
    if (over > 0) name.style.insetInlineStart = `${-over}px`;
    return name;
  };

  const barsOf = (block, entity, step) => {
    const bars = entity.lines.flatMap((lines, piece) => lines.map((line, i) => {
      const isFirst = piece === 0 && i === 0;
      const bar = make(isFirst ? "button" : "div", "bar");
      bar.classList.toggle("starts", i === 0);
      bar.classList.toggle("ends", i === lines.length - 1);
      if (isFirst || line.right - line.left > nameWidth(entity.label)) bar.append(nameOf(block, entity, line));
      return put(block, bar, line, line.bottom + entity.layer * step);
    }));
    const links = entity.gaps.map((line) =>
      put(block, make("div", "link"), line, line.bottom + entity.layer * step));
    const [button, ...others] = [...bars, ...links];
    for (const part of [button, ...others]) {
      part.entity = entity;
      part.style.setProperty("--hue", hueOf(entity.label));
      part.style.setProperty("--sure", (0.3 + 0.7 * entity.score).toFixed(3));
      part.title = `${entity.label} · ${entity.score.toFixed(2)}`;
    }
    for (const part of others) part.setAttribute("aria-hidden", "true");
    button.type = "button";
    button.setAttribute("aria-label", describe(entity));
    button.setAttribute("aria-controls", "panel");
    button.setAttribute("aria-expanded", String(entity === chosen));
    button.tabIndex = entity === stop ? 0 : -1;
    entity.button = button;
    entity.parts = [button, ...others];
    for (const part of entity.parts) part.classList.toggle("on", entity === chosen);
    return entity.parts;
  };

  const place = (block) => {
    const held = document.activeElement?.entity;
    const step = parseFloat(getComputedStyle(root).getPropertyValue("--step"));
    block.bars.dir = block.direction;
    block.bars.replaceChildren(...block.shown.flatMap((entity) =>
      (entity.lines[0].length ? barsOf(block, entity, step) : [])));
    if (held?.block === block && block.shown.includes(held)) held.button?.focus({ preventScroll: true });
    block.state = "placed";
    if (chosen?.block === block) light(chosen, "glow");
  };

  // Bars only where somebody may look. First all that is read, then all that is written.

  const update = (wanted = near) => {
    const due = [...wanted].filter((block) => block.state !== "placed");
    for (const block of due) if (block.state === "raw") dress(block);
    due.forEach(measure);
    due.forEach(place);
  };

  let waiting = 0;
  const updateSoon = () => {
    waiting ||= requestAnimationFrame(() => {
      waiting = 0;
      update();
    });
  };

  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) near.add(target.block);
      else near.delete(target.block);
    }
    updateSoon();
  }, { rootMargin: "60% 0px" });

  const sizes = new ResizeObserver((entries) => {
    for (const { target: { block } } of entries) {
      const box = block.element.getBoundingClientRect();
      if (block.state !== "placed" || sameSize(block.box, box)) continue;
      block.state = "dressed";
      updateSoon();
    }
  });

  // What is shown.

  const visible = () => entities.filter(isWanted);

  const stopAt = (entity) => {
    if (stop?.button) stop.button.tabIndex = -1;
    stop = entity;
    if (!entity) return;
    update([entity.block]);
    if (entity.button) entity.button.tabIndex = 0;
  };

  const filter = (wanted) => {
    isWanted = wanted;
    for (const block of blocks) {
      block.state = "raw";
      if (!near.has(block)) block.bars.replaceChildren();
    }
    update();
    if (!stop || !isWanted(stop)) stopAt(entities.find(isWanted) ?? null);
    else stopAt(stop);
  };

  const show = (newText, newEntities, wanted) => {
    watcher.disconnect();
    sizes.disconnect();
    near.clear();
    [text, entities, stop, chosen, isWanted] = [newText, newEntities, null, null, wanted];
    let next = 0;
    const sorted = [...entities].sort((a, b) => a.start - b.start || b.end - a.end);
    entities = sorted;
    blocks = blocksOf(text, entities).map(([start, end]) => {
      const stop = start + text.slice(start, end).trimEnd().length;
      const lines = text.slice(stop, end).split("\n").length - 1;
      const words = make("p", "words", text.slice(start, stop));
      words.dir = "auto";
      words.lang = "";
      const bars = make("div", "bars");
      const element = make("div", "block", words, bars);
      element.style.setProperty("--lines", Math.min(3, Math.max(0, lines - 1)));
      const block = { start, stop, element, words, bars, entities: [], shown: [], state: "raw" };
      for (; next < sorted.length && sorted[next].start < end; next += 1) {
        sorted[next].block = block;
        block.entities.push(sorted[next]);
      }
      element.block = block;
      return block;
    });
    root.replaceChildren(...blocks.map((block) => block.element));
    root.classList.add("fresh");
    setTimeout(() => root.classList.remove("fresh"), 900);
    for (const block of blocks.slice(0, 12)) near.add(block);
    update();
    for (const { element } of blocks) {
      watcher.observe(element);
      sizes.observe(element);
    }
    stopAt(entities.find(isWanted) ?? null);
  };

  // Pointing and choosing.

  const light = (entity, kind) => {
    const { block } = entity;
    for (const old of block.bars.querySelectorAll(`.${kind}`)) old.remove();
    for (const line of entity.lines?.flat() ?? []) {
      const glow = put(block, make("div", kind), line, line.top, line.bottom - line.top);
      glow.style.setProperty("--hue", hueOf(entity.label));
      block.bars.append(glow);
    }
  };

  const unlight = (kind) => {
    for (const old of root.querySelectorAll(`.${kind}`)) old.remove();
  };

  const choose = (entity) => {
    for (const part of chosen?.parts ?? []) part.classList.remove("on");
    chosen?.button?.setAttribute("aria-expanded", "false");
    unlight("glow");
    chosen = entity;
    if (!entity) return;
    stopAt(entity);
    for (const part of entity.parts ?? []) part.classList.add("on");
    entity.button?.setAttribute("aria-expanded", "true");
    light(entity, "glow");
  };

  // Blocks get their true heights only when they come near, which moves what is after them: so it is
  // brought into view until nothing moves any more.
  const comeTo = (entity, frames) => {
    entity.button?.scrollIntoView({ block: "nearest" });
    if (frames > 0 && stop === entity) requestAnimationFrame(() => comeTo(entity, frames - 1));
  };

  const focus = (entity) => {
    stopAt(entity);
    entity.button?.focus({ preventScroll: true });
    comeTo(entity, FRAMES_TO_SETTLE);
  };

  // The smallest entity around a place in the words.
  const entityAt = (event) => {
    const block = event.target.closest(".block")?.block;
    const spot = document.caretPositionFromPoint?.(event.clientX, event.clientY);
    const range = spot ? null : document.caretRangeFromPoint?.(event.clientX, event.clientY);
    const base = block?.bases?.get(spot?.offsetNode ?? range?.startContainer);
    if (base === undefined) return null;
    const at = base + (spot?.offset ?? range.startOffset);
    const around = block.shown.filter((each) => each.pieces.some(([start, end]) => start <= at && at <= end));
    return around.sort((a, b) => (a.end - a.start) - (b.end - b.start))[0] ?? null;
  };

  root.addEventListener("click", (event) => {
    if (!getSelection().isCollapsed) return; // somebody copies words
    const entity = event.target.closest(".bar, .link")?.entity
      ?? (event.target.closest(".run") && entityAt(event));
    if (entity) onChoose(entity);
  });
  root.addEventListener("pointerover", (event) => {
    unlight("hint");
    const entity = event.target.closest(".bar, .link")?.entity;
    if (entity && entity !== chosen) light(entity, "hint");
  });
  root.addEventListener("pointerleave", () => unlight("hint"));

  root.addEventListener("keydown", (event) => {
    const entity = event.target.entity;
    if (!entity) return;
    const all = visible();
    const at = all.indexOf(entity);
    const ahead = entity.block.direction === "rtl" ? -1 : 1;
    const places = {
      ArrowRight: at + ahead, ArrowLeft: at - ahead, ArrowDown: at + 1, ArrowUp: at - 1,
      Home: 0, End: all.length - 1,
    };
    if (!(event.key in places)) return;
    event.preventDefault();
    const next = all[Math.max(0, Math.min(all.length - 1, places[event.key]))];
    if (next) focus(next);
  });

  return { show, filter, choose, focus, visible };
};
