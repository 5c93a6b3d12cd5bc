// The text with its entities as bars under the words; overlapping bars are on different layers.
//
// The words stay plain text. Each group of overlapping entities is one element with room below its
// lines, and bars are placed at the measured positions of the words: so they follow line breaks and
// both reading directions, may begin inside words, and leave Arabic letters joined. Only blocks near
// the window have bars.

import { blocksOf, clustersOf, layersOf } from "./spans.js";

const NAME_PADDING = 8;
const LETTER = 7; // pixels, roughly: to estimate how far a label extends beyond its words

const canvas = document.createElement("canvas").getContext("2d");
const widths = new Map();

export const nameWidth = (name) => {
  canvas.font = "11px system-ui, sans-serif"; // as in the style sheet
  if (!widths.has(name)) widths.set(name, Math.ceil(canvas.measureText(name).width) + NAME_PADDING);
  return widths.get(name);
};

const make = (tag, className, ...content) => {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...content);
  return made;
};

// Joins boxes of one line that touch.
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
const gapsOf = (fragments) => fragments.slice(1).map(([start], i) => [fragments[i][1], start]);

export const createTextView = (root, { hueOf, describe, onChoose }) => {
  let text = "";
  let entities = [];
  let blocks = [];
  let isWanted = () => true;
  let tabStop = null; // the entity that the tab key reaches
  let chosen = null;
  const near = new Set(); // blocks near the window

  // Layers, and room for them.

  // The extent of an entity with its label, in UTF-16 units.
  const extentOf = (entity) => {
    const [[first, last]] = entity.fragments;
    const beyond = nameWidth(entity.label) - LETTER * (last - first);
    return [entity.start, Math.max(entity.end, entity.start + Math.ceil(beyond / LETTER) + last - first)];
  };

  const layOut = (block) => {
    block.shown = block.entities.filter(isWanted);
    const layers = layersOf(block.shown.map(extentOf));
    block.shown.forEach((entity, i) => { entity.layer = layers[i]; });
    block.bases = new Map();
    const content = [];
    let at = block.start;
    for (const cluster of clustersOf(block.shown)) {
      content.push(text.slice(at, cluster.start));
      const inner = make("span", "", text.slice(cluster.start, cluster.end));
      const outer = make("span", "run", inner);
      outer.style.setProperty("--n", 1 + Math.max(...cluster.members.map((each) => each.layer)));
      block.bases.set(inner.firstChild, cluster.start);
      for (const entity of cluster.members) entity.node = inner.firstChild;
      content.push(outer);
      at = cluster.end;
    }
    content.push(text.slice(at, block.stop));
    block.words.replaceChildren(...content);
  };

  // Positions of words and bars.

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
      entity.lines = entity.fragments.map((fragment) => linesOf(block, entity, fragment));
      entity.gaps = gapsOf(entity.fragments).flatMap((gap) => linesOf(block, entity, gap));
    }
  };

  const position = (block, element, line, top, height) => {
    element.style.left = `${line.left - block.box.left}px`;
    element.style.top = `${top - block.box.top}px`;
    element.style.width = `${line.right - line.left}px`;
    if (height) element.style.height = `${height}px`;
    return element;
  };

  // A label longer than its bar extends beyond it, but not over the edge of the block.
  const nameOf = (block, entity, line) => {
    const name = make("span", "name", make("bdi", "", entity.label));
    const room = block.direction === "rtl" ? line.right - block.box.left : block.box.right - line.left;
    const over = nameWidth(entity.label) - room;
    if (over > 0) name.style.insetInlineStart = `${-over}px`;
    return name;
  };

  const barsOf = (block, entity, step) => {
    const bars = entity.lines.flatMap((lines, fragment) => lines.map((line, i) => {
      const isFirst = fragment === 0 && i === 0;
      const bar = make(isFirst ? "button" : "div", "bar");
      bar.classList.toggle("starts", i === 0);
      bar.classList.toggle("ends", i === lines.length - 1);
      if (isFirst || line.right - line.left > nameWidth(entity.label)) bar.append(nameOf(block, entity, line));
      return position(block, bar, line, line.bottom + entity.layer * step);
    }));
    const links = entity.gaps.map((line) =>
      position(block, make("div", "link"), line, line.bottom + entity.layer * step));
    const [button, ...others] = [...bars, ...links];
    for (const element of [button, ...others]) {
      element.entity = entity;
      element.style.setProperty("--hue", hueOf(entity.label));
      element.style.setProperty("--score", (0.3 + 0.7 * entity.score).toFixed(3));
      element.title = `${entity.label} · ${entity.score.toFixed(2)}`;
    }
    for (const element of others) element.setAttribute("aria-hidden", "true");
    button.type = "button";
    button.setAttribute("aria-label", describe(entity));
    button.setAttribute("aria-controls", "panel");
    button.setAttribute("aria-expanded", String(entity === chosen));
    button.tabIndex = entity === tabStop ? 0 : -1;
    entity.button = button;
    entity.elements = [button, ...others];
    for (const element of entity.elements) element.classList.toggle("on", entity === chosen);
    return entity.elements;
  };

  const drawBars = (block) => {
    const focused = document.activeElement?.entity;
    const step = parseFloat(getComputedStyle(root).getPropertyValue("--step"));
    block.bars.dir = block.direction;
    block.bars.replaceChildren(...block.shown.flatMap((entity) =>
      (entity.lines[0].length ? barsOf(block, entity, step) : [])));
    if (focused?.block === block && block.shown.includes(focused)) focused.button?.focus({ preventScroll: true });
    block.state = "drawn";
    if (chosen?.block === block) highlight(chosen, "selected");
  };

  // All blocks are measured before any bar is drawn, so that the browser computes its layout once.
  const update = (wanted = near) => {
    const due = [...wanted].filter((block) => block.state !== "drawn");
    for (const block of due) if (block.state === "raw") layOut(block);
    due.forEach(measure);
    due.forEach(drawBars);
  };

  let waiting = 0;
  const updateSoon = () => {
    waiting ||= requestAnimationFrame(() => {
      waiting = 0;
      update();
    });
  };

  const nearObserver = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) near.add(target.block);
      else near.delete(target.block);
    }
    updateSoon();
  }, { rootMargin: "60% 0px" });

  const sizeObserver = new ResizeObserver((entries) => {
    for (const { target: { block } } of entries) {
      const box = block.element.getBoundingClientRect();
      if (block.state !== "drawn" || sameSize(block.box, box)) continue;
      block.state = "laid out";
      updateSoon();
    }
  });

  // Content and filter.

  const visible = () => entities.filter(isWanted);

  const setTabStop = (entity) => {
    if (tabStop?.button) tabStop.button.tabIndex = -1;
    tabStop = entity;
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
    if (!tabStop || !isWanted(tabStop)) setTabStop(entities.find(isWanted) ?? null);
    else setTabStop(tabStop);
  };

  const show = (newText, newEntities, wanted) => {
    nearObserver.disconnect();
    sizeObserver.disconnect();
    near.clear();
    [text, entities, tabStop, chosen, isWanted] = [newText, newEntities, null, null, wanted];
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
      nearObserver.observe(element);
      sizeObserver.observe(element);
    }
    setTabStop(entities.find(isWanted) ?? null);
  };

  // Highlights and selection.

  const highlight = (entity, kind) => {
    const { block } = entity;
    for (const old of block.bars.querySelectorAll(`.${kind}`)) old.remove();
    for (const line of entity.lines?.flat() ?? []) {
      const box = position(block, make("div", kind), line, line.top, line.bottom - line.top);
      box.style.setProperty("--hue", hueOf(entity.label));
      block.bars.append(box);
    }
  };

  const removeHighlight = (kind) => {
    for (const old of root.querySelectorAll(`.${kind}`)) old.remove();
  };

  const choose = (entity) => {
    for (const element of chosen?.elements ?? []) element.classList.remove("on");
    chosen?.button?.setAttribute("aria-expanded", "false");
    removeHighlight("selected");
    chosen = entity;
    if (!entity) return;
    setTabStop(entity);
    for (const element of entity.elements ?? []) element.classList.add("on");
    entity.button?.setAttribute("aria-expanded", "true");
    highlight(entity, "selected");
  };

  // Blocks get their final heights only near the window, which shifts all blocks below: so scrolling
  // is repeated for some frames.
  const scrollTo = (entity, frames) => {
    entity.button?.scrollIntoView({ block: "nearest" });
    if (frames > 0 && tabStop === entity) requestAnimationFrame(() => scrollTo(entity, frames - 1));
  };

  const focus = (entity) => {
    setTabStop(entity);
    entity.button?.focus({ preventScroll: true });
    scrollTo(entity, FRAMES_TO_SETTLE);
  };

  // The shortest entity at the position of the pointer.
  const entityAt = (event) => {
    const block = event.target.closest(".block")?.block;
    const spot = document.caretPositionFromPoint?.(event.clientX, event.clientY);
    const range = spot ? null : document.caretRangeFromPoint?.(event.clientX, event.clientY);
    const base = block?.bases?.get(spot?.offsetNode ?? range?.startContainer);
    if (base === undefined) return null;
    const at = base + (spot?.offset ?? range.startOffset);
    const around = block.shown.filter((each) => each.fragments.some(([start, end]) => start <= at && at <= end));
    return around.sort((a, b) => (a.end - a.start) - (b.end - b.start))[0] ?? null;
  };

  root.addEventListener("click", (event) => {
    if (!getSelection().isCollapsed) return; // the user is selecting text
    const entity = event.target.closest(".bar, .link")?.entity
      ?? (event.target.closest(".run") && entityAt(event));
    if (entity) onChoose(entity);
  });
  root.addEventListener("pointerover", (event) => {
    removeHighlight("hovered");
    const entity = event.target.closest(".bar, .link")?.entity;
    if (entity && entity !== chosen) highlight(entity, "hovered");
  });
  root.addEventListener("pointerleave", () => removeHighlight("hovered"));

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
