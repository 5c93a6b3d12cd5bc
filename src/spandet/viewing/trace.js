"use strict";
(() => {
  const root = document.documentElement;
  const main = document.querySelector("main");
  const tip = document.getElementById("tip");
  const slider = document.getElementById("stage"); // absent if nothing was found
  const play = document.getElementById("play");
  const stops = [...document.querySelectorAll(".stop")];
  const errors = document.getElementById("errors"); // only with gold
  const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
  const STEP = parseFloat(getComputedStyle(root).getPropertyValue("--step")); // from bar to bar
  const STAGE_MILLISECONDS = 900, JUMP_MILLISECONDS = 350;

  let position = slider ? Number(slider.max) : 0; // in stages; fractions are between two stages
  const last = position;
  const stage = () => Math.round(position);

  // The words of each sentence and, from the list below them, its bars.

  const numbers = (text) => text.split(",").map(Number);
  const lists = (text) => text?.split(";").map(numbers) ?? [];

  const sentences = new Map([...main.querySelectorAll("section")].map((section) => {
    const words = section.querySelector(".words");
    const bars = [...section.querySelectorAll(".trajectories > li")].map((item) => ({
      item,
      layer: Number(item.dataset.layer),
      trajectories: item.dataset.steps?.split("|").map(lists) ?? [], // one per fragment of the entity
      gold: lists(item.dataset.gold), // one per fragment
      boxes: { bar: [], goal: [] }, // one per line of text and fragment
    }));
    return [section, { section, words, bars, lines: [], width: 0 }];
  }));

  // The positions of the words of each line, as distances from the side where reading starts.

  const measure = (sentence) => {
    const box = sentence.words.getBoundingClientRect();
    const leftwards = getComputedStyle(sentence.words).direction === "rtl";
    sentence.width = box.width;
    sentence.lines = [];
    let line;
    [...sentence.words.querySelectorAll(".w")].forEach((word, i) => {
      const own = word.getBoundingClientRect();
      const start = leftwards ? box.right - own.right : own.left - box.left;
      if (!line || start <= line.starts.at(-1)) {
        line = { first: i, starts: [], ends: [], base: 0 };
        sentence.lines.push(line);
      }
      line.starts.push(start);
      line.ends.push(start + own.width);
      const room = Number(word.style.getPropertyValue("--n")) * STEP;
      line.base = Math.max(line.base, own.bottom - room - box.top);
    });
  };

  // Fractional starts are between the starts of two words, fractional ends between their ends.

  const startAt = (line, place) => {
    const at = Math.max(0, place - line.first);
    const word = Math.min(Math.floor(at), line.starts.length - 1);
    const next = line.starts[word + 1] ?? line.ends[word];
    return line.starts[word] + (at - word) * (next - line.starts[word]);
  };

  const endAt = (line, place) => {
    const at = Math.min(place - line.first, line.ends.length);
    const word = Math.max(0, Math.ceil(at) - 1);
    const before = word ? line.ends[word - 1] : line.starts[0];
    return before + (at - word) * (line.ends[word] - before);
  };

  const between = (steps) => {
    const from = Math.min(Math.floor(position), last);
    const to = Math.min(from + 1, last);
    return steps[from].map((value, i) => value + (position - from) * (steps[to][i] - value));
  };

  const boxOf = (sentence, bar, kind, number) => {
    const boxes = bar.boxes[kind];
    if (!boxes[number]) {
      const box = document.createElement("div");
      box.className = `${kind} ${bar.item.className}`;
      box.setAttribute("aria-hidden", "true"); // the list below has the same content
      const name = document.createElement("span");
      name.className = "name";
      name.textContent = bar.item.dataset.name;
      if (kind === (bar.gold.length ? "goal" : "bar")) box.append(name);
      box.bar = bar;
      sentence.words.append(box);
      boxes[number] = box;
    }
    return boxes[number];
  };

  // Measured on a canvas, because reading widths from the page would cause a layout for every bar.
  const canvas = document.createElement("canvas").getContext("2d");
  canvas.font = "10px system-ui, sans-serif"; // as in the style sheet
  const nameWidths = new Map();
  const nameWidth = (name) => {
    if (!nameWidths.has(name)) nameWidths.set(name, canvas.measureText(name).width + 6);
    return nameWidths.get(name);
  };

  // A name is drawn in its bar or, if it is longer, after it; at the end of a line, before it.
  const nameOffset = (name, left, width, room) => {
    if (name <= width) return 0;
    return left + width + name <= room ? width : -Math.min(name, left);
  };

  const draw = (sentence, bar, kind, places) => {
    let used = 0;
    places.forEach((place, fragment) => {
      used = drawFragment(sentence, bar, kind, place, fragment, used);
    });
    for (const box of bar.boxes[kind].slice(used)) box.hidden = true;
  };

  // Uses boxes after the first `before` ones; returns how many are used then.
  const drawFragment = (sentence, bar, kind, [one, other, score = 1], fragment, before) => {
    const words = sentence.lines.reduce((sum, line) => sum + line.starts.length, 0);
    const [low, high] = [Math.min(one, other), Math.max(one, other)];
    const start = Math.max(0, Math.min(low, words - 0.1));
    const end = Math.min(words, Math.max(high, start + 0.1));
    let used = before;
    for (const line of sentence.lines) {
      const stop = line.first + line.starts.length;
      if (start >= stop || end <= line.first) continue;
      const box = boxOf(sentence, bar, kind, used);
      box.fragment = kind === "bar" ? fragment : 0;
      const left = startAt(line, start);
      const width = Math.max(4, endAt(line, end) - left);
      box.hidden = false;
      box.classList.toggle("starts", start >= line.first);
      box.classList.toggle("ends", end <= stop);
      box.style.insetInlineStart = `${left}px`;
      box.style.width = `${width}px`;
      box.style.top = `${line.base + bar.layer * STEP}px`;
      box.style.setProperty("--score", (0.25 + 0.75 * score).toFixed(3));
      const name = box.querySelector(".name");
      if (name) {
        name.hidden = used > 0;
        const wide = nameWidth(name.textContent);
        name.style.insetInlineStart = `${nameOffset(wide, left, width, sentence.width)}px`;
      }
      used += 1;
    }
    return used;
  };

  const place = (sentence) => {
    for (const bar of sentence.bars) {
      draw(sentence, bar, "goal", bar.gold);
      draw(sentence, bar, "bar", bar.trajectories.map(between));
    }
  };

  // Only sentences near the viewport are measured and drawn, because there may be thousands.

  const isNear = (sentence) => {
    const box = sentence.section.getBoundingClientRect();
    return box.height > 0 && box.bottom > -innerHeight / 2 && box.top < 1.5 * innerHeight;
  };

  const placeNear = () => {
    const near = [...sentences.values()].filter(isNear);
    for (const sentence of near) { // all reads before all writes, to avoid repeated layouts
      if (sentence.width !== sentence.words.getBoundingClientRect().width) measure(sentence);
    }
    near.forEach(place);
  };

  let waiting = 0;
  const placeSoon = () => {
    waiting ||= requestAnimationFrame(() => {
      waiting = 0;
      placeNear();
    });
  };
  addEventListener("scroll", placeSoon, { passive: true });
  addEventListener("resize", placeSoon);

  // The current stage.

  const show = (wanted) => {
    position = Math.max(0, Math.min(last, wanted));
    slider.value = position;
    slider.setAttribute("aria-valuetext", stops[stage()].title);
    stops.forEach((stop, i) => {
      if (i === stage()) stop.setAttribute("aria-current", "step");
      else stop.removeAttribute("aria-current");
    });
    placeNear();
    for (const table of main.querySelectorAll("[open] .stages")) {
      [...table.tBodies[0].rows].forEach((row, i) => row.classList.toggle("now", i === stage()));
    }
    if (!tip.hidden) fillTip(highlighted, tip.fragment);
  };

  let ticking = 0;

  const halt = () => {
    cancelAnimationFrame(ticking);
    ticking = 0;
    play.classList.remove("playing");
    play.setAttribute("aria-label", "Play");
  };

  const smooth = (part) => part * part * (3 - 2 * part);

  // Calls `draw` with the elapsed share of time, from 0 to 1.
  const animate = (milliseconds, draw) => {
    const began = performance.now();
    const tick = () => {
      const part = Math.min(1, (performance.now() - began) / milliseconds);
      draw(part);
      if (part < 1) ticking = requestAnimationFrame(tick);
      else halt();
    };
    ticking = requestAnimationFrame(tick);
  };

  // Pauses at every stage; with reduced motion, only the stages themselves are shown.
  const playFrom = (from) => {
    halt();
    play.classList.add("playing");
    play.setAttribute("aria-label", "Pause");
    animate((last - from) * STAGE_MILLISECONDS, (part) => {
      const time = from + part * (last - from);
      const shift = reducedMotion.matches ? 0 : smooth(Math.min(1, (time % 1) / 0.75));
      show(Math.floor(time) + shift);
    });
  };

  const goTo = (to) => {
    halt();
    const from = position;
    if (reducedMotion.matches) show(to);
    else animate(JUMP_MILLISECONDS, (part) => show(from + smooth(part) * (to - from)));
  };

  if (slider) {
    let target = last; // the stage that the arrow keys lead to
    play.addEventListener("click", () => {
      if (play.classList.contains("playing")) halt();
      else playFrom(position >= last ? 0 : Math.floor(position));
      target = last;
    });
    slider.addEventListener("input", () => {
      halt();
      show(Number(slider.value));
      target = stage();
    });
    slider.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, Home: -last, End: last };
      if (!(event.key in steps)) return;
      event.preventDefault();
      const from = ticking ? target : stage();
      target = Math.max(0, Math.min(last, from + steps[event.key]));
      goTo(target);
    });
    stops.forEach((stop, i) => stop.addEventListener("click", () => goTo((target = i))));
  }

  // Pointing at a bar or at its line in the list highlights both.

  let highlighted = null;

  const highlight = (bar) => {
    if (bar === highlighted) return;
    const elementsOf = (each) => (each ? [each.item, ...each.boxes.bar, ...each.boxes.goal] : []);
    for (const one of elementsOf(highlighted)) one.classList.remove("on");
    for (const one of elementsOf(bar)) one.classList.add("on");
    highlighted = bar;
  };

  const element = (name, ...content) => {
    const made = document.createElement("div");
    made.className = name;
    made.append(...content);
    return made;
  };

  const fillTip = (bar, fragment) => {
    const copies = (nodes) => [...nodes].map((node) => node.cloneNode(true));
    const row = bar.item.querySelectorAll(".stages")[fragment]?.tBodies[0].rows[stage()];
    tip.fragment = fragment;
    tip.className = bar.item.className;
    tip.replaceChildren(element("", ...copies(bar.item.querySelectorAll(".triple"))));
    if (!row) return;
    const [name, boundaries, score] = [...row.cells].map((cell) => cell.textContent);
    tip.append(element("soft", `${name} ${boundaries}${score && ` · score ${score}`}`));
    tip.append(element("probs", ...copies(row.cells[3].children)));
  };

  const showTip = (bar, fragment, x, y) => {
    fillTip(bar, fragment);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const below = y + 16 + box.height <= innerHeight;
    tip.style.left = `${Math.max(8, Math.min(x, innerWidth - box.width - 8))}px`;
    tip.style.top = `${below ? y + 16 : Math.max(8, y - box.height - 16)}px`;
  };

  const boxAt = (target) => target.closest(".bar, .goal");
  const barOf = (target) => boxAt(target)?.bar ?? null;
  const listedAt = (target) => {
    const item = target.closest(".trajectories > li");
    const sentence = item && sentences.get(item.closest("section"));
    return sentence?.bars.find((bar) => bar.item === item) ?? null;
  };

  main.addEventListener("pointermove", (event) => {
    const bar = barOf(event.target);
    highlight(bar ?? listedAt(event.target));
    if (bar) showTip(bar, boxAt(event.target).fragment, event.clientX, event.clientY);
    else tip.hidden = true;
  });
  main.addEventListener("pointerleave", () => {
    highlight(null);
    tip.hidden = true;
  });
  main.addEventListener("focusin", (event) => highlight(listedAt(event.target)));
  main.addEventListener("focusout", () => highlight(null));
  main.addEventListener("click", (event) => {
    const details = barOf(event.target)?.item.querySelector("details");
    if (!details) return;
    details.open = !details.open;
    if (details.open) details.scrollIntoView({ block: "nearest" });
  });
  main.addEventListener("toggle", () => show(position), true); // highlights the current stage in the table
  main.addEventListener("keydown", (event) => {
    if (event.key === "Escape") tip.hidden = true;
  });

  errors?.addEventListener("change", () => {
    root.classList.toggle("errors-only", errors.checked);
    placeNear();
  });
  if (slider) show(position);
  else placeNear();
})();
