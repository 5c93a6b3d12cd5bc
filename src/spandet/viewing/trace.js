"use strict";
(() => {
  const root = document.documentElement;
  const main = document.querySelector("main");
  const tip = document.getElementById("tip");
  const slider = document.getElementById("stage"); // absent where nothing was found
  const play = document.getElementById("play");
  const stops = [...document.querySelectorAll(".stop")];
  const errors = document.getElementById("errors"); // only where there is gold
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const STEP = parseFloat(getComputedStyle(root).getPropertyValue("--step")); // from bar to bar
  const STAGE_MILLISECONDS = 900, JUMP_MILLISECONDS = 350;

  let position = slider ? Number(slider.max) : 0; // in stages; between two stages bars are in between
  const last = position;
  const stage = () => Math.round(position);

  // What the page says of each sentence: its words and, from the list below them, its bars.

  const numbers = (text) => text.split(",").map(Number);
  const lists = (text) => text?.split(";").map(numbers) ?? [];

  const sentences = new Map([...main.querySelectorAll("section")].map((section) => {
    const words = section.querySelector(".words");
    const bars = [...section.querySelectorAll(".ways > li")].map((item) => ({
      item,
      layer: Number(item.dataset.layer),
      ways: item.dataset.steps?.split("|").map(lists) ?? [], // one for each piece of an entity
      gold: lists(item.dataset.gold), // likewise
      pieces: { bar: [], goal: [] },
    }));
    return [section, { section, words, bars, lines: [], width: 0 }];
  }));

  // Where words stand: for each line its words, with distances from the side where reading starts.

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

  // A start runs from the start of one word to that of the next, an end from end to end.

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

  const pieceOf = (sentence, bar, kind, number) => {
    const pieces = bar.pieces[kind];
    if (!pieces[number]) {
      const piece = document.createElement("div");
      piece.className = `${kind} ${bar.item.className}`;
      piece.setAttribute("aria-hidden", "true"); // the list below says it all
      const name = document.createElement("span");
      name.className = "name";
      name.textContent = bar.item.dataset.name;
      if (kind === (bar.gold.length ? "goal" : "bar")) piece.append(name);
      piece.bar = bar;
      sentence.words.append(piece);
      pieces[number] = piece;
    }
    return pieces[number];
  };

  // Asking the page for a width would make it lay itself out again for every bar.
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "10px system-ui, sans-serif"; // as in the style sheet
  const nameWidths = new Map();
  const nameWidth = (name) => {
    if (!nameWidths.has(name)) nameWidths.set(name, pen.measureText(name).width + 6);
    return nameWidths.get(name);
  };

  // A name stands in its bar or, where it is longer, after it; at the end of a line before it.
  const beside = (name, left, width, room) => {
    if (name <= width) return 0;
    return left + width + name <= room ? width : -Math.min(name, left);
  };

  const draw = (sentence, bar, kind, places) => {
    let used = 0;
    places.forEach((place, way) => { used = drawOne(sentence, bar, kind, place, way, used); });
    for (const piece of bar.pieces[kind].slice(used)) piece.hidden = true;
  };

  // Draws after the pieces that are used already, and tells how many are used then.
  const drawOne = (sentence, bar, kind, [one, other, sure = 1], way, before) => {
    const words = sentence.lines.reduce((sum, line) => sum + line.starts.length, 0);
    const [low, high] = [Math.min(one, other), Math.max(one, other)];
    const start = Math.max(0, Math.min(low, words - 0.1));
    const end = Math.min(words, Math.max(high, start + 0.1));
    let used = before;
    for (const line of sentence.lines) {
      const stop = line.first + line.starts.length;
      if (start >= stop || end <= line.first) continue;
      const piece = pieceOf(sentence, bar, kind, used);
      piece.way = kind === "bar" ? way : 0;
      const left = startAt(line, start);
      const width = Math.max(4, endAt(line, end) - left);
      piece.hidden = false;
      piece.classList.toggle("starts", start >= line.first);
      piece.classList.toggle("ends", end <= stop);
      piece.style.insetInlineStart = `${left}px`;
      piece.style.width = `${width}px`;
      piece.style.top = `${line.base + bar.layer * STEP}px`;
      piece.style.setProperty("--sure", (0.25 + 0.75 * sure).toFixed(3));
      const name = piece.querySelector(".name");
      if (name) {
        name.hidden = used > 0;
        const wide = nameWidth(name.textContent);
        name.style.insetInlineStart = `${beside(wide, left, width, sentence.width)}px`;
      }
      used += 1;
    }
    return used;
  };

  const place = (sentence) => {
    for (const bar of sentence.bars) {
      draw(sentence, bar, "goal", bar.gold);
      draw(sentence, bar, "bar", bar.ways.map(between));
    }
  };

  // Only sentences near the window are measured and moved: a page may hold thousands.

  const isNear = (sentence) => {
    const box = sentence.section.getBoundingClientRect();
    return box.height > 0 && box.bottom > -innerHeight / 2 && box.top < 1.5 * innerHeight;
  };

  const placeNear = () => {
    const near = [...sentences.values()].filter(isNear);
    for (const sentence of near) { // first all that is read, then all that is written
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

  // The stage that is shown.

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
    if (!tip.hidden) fillTip(lit, tip.way);
  };

  let ticking = 0;

  const halt = () => {
    cancelAnimationFrame(ticking);
    ticking = 0;
    play.classList.remove("playing");
    play.setAttribute("aria-label", "Play");
  };

  const smooth = (part) => part * part * (3 - 2 * part);

  // Calls `move` with 0 to 1 as time goes by.
  const animate = (milliseconds, move) => {
    const began = performance.now();
    const tick = () => {
      const part = Math.min(1, (performance.now() - began) / milliseconds);
      move(part);
      if (part < 1) ticking = requestAnimationFrame(tick);
      else halt();
    };
    ticking = requestAnimationFrame(tick);
  };

  // Every stage comes to rest before the next begins; who wants no motion sees the stages alone.
  const playFrom = (from) => {
    halt();
    play.classList.add("playing");
    play.setAttribute("aria-label", "Pause");
    animate((last - from) * STAGE_MILLISECONDS, (part) => {
      const time = from + part * (last - from);
      const moved = calm.matches ? 0 : smooth(Math.min(1, (time % 1) / 0.75));
      show(Math.floor(time) + moved);
    });
  };

  const goTo = (to) => {
    halt();
    const from = position;
    if (calm.matches) show(to);
    else animate(JUMP_MILLISECONDS, (part) => show(from + smooth(part) * (to - from)));
  };

  if (slider) {
    let heading = last; // where the arrow keys are on the way to
    play.addEventListener("click", () => {
      if (play.classList.contains("playing")) halt();
      else playFrom(position >= last ? 0 : Math.floor(position));
      heading = last;
    });
    slider.addEventListener("input", () => {
      halt();
      show(Number(slider.value));
      heading = stage();
    });
    slider.addEventListener("keydown", (event) => {
      const ways = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, Home: -last, End: last };
      if (!(event.key in ways)) return;
      event.preventDefault();
      const from = ticking ? heading : stage();
      heading = Math.max(0, Math.min(last, from + ways[event.key]));
      goTo(heading);
    });
    stops.forEach((stop, i) => stop.addEventListener("click", () => goTo((heading = i))));
  }

  // A bar and its line in the list belong together; pointing at either lights up both.

  let lit = null;

  const light = (bar) => {
    if (bar === lit) return;
    const partsOf = (each) => (each ? [each.item, ...each.pieces.bar, ...each.pieces.goal] : []);
    for (const part of partsOf(lit)) part.classList.remove("on");
    for (const part of partsOf(bar)) part.classList.add("on");
    lit = bar;
  };

  const element = (name, ...content) => {
    const made = document.createElement("div");
    made.className = name;
    made.append(...content);
    return made;
  };

  const fillTip = (bar, way) => {
    const copies = (nodes) => [...nodes].map((node) => node.cloneNode(true));
    const row = bar.item.querySelectorAll(".stages")[way]?.tBodies[0].rows[stage()];
    tip.way = way;
    tip.className = bar.item.className;
    tip.replaceChildren(element("", ...copies(bar.item.querySelectorAll(".triple"))));
    if (!row) return;
    const [name, boundaries, score] = [...row.cells].map((cell) => cell.textContent);
    tip.append(element("soft", `${name} ${boundaries}${score && ` · score ${score}`}`));
    tip.append(element("chances", ...copies(row.cells[3].children)));
  };

  const showTip = (bar, way, x, y) => {
    fillTip(bar, way);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const below = y + 16 + box.height <= innerHeight;
    tip.style.left = `${Math.max(8, Math.min(x, innerWidth - box.width - 8))}px`;
    tip.style.top = `${below ? y + 16 : Math.max(8, y - box.height - 16)}px`;
  };

  const pieceAt = (target) => target.closest(".bar, .goal");
  const barOf = (target) => pieceAt(target)?.bar ?? null;
  const listedAt = (target) => {
    const item = target.closest(".ways > li");
    const sentence = item && sentences.get(item.closest("section"));
    return sentence?.bars.find((bar) => bar.item === item) ?? null;
  };

  main.addEventListener("pointermove", (event) => {
    const bar = barOf(event.target);
    light(bar ?? listedAt(event.target));
    if (bar) showTip(bar, pieceAt(event.target).way, event.clientX, event.clientY);
    else tip.hidden = true;
  });
  main.addEventListener("pointerleave", () => {
    light(null);
    tip.hidden = true;
  });
  main.addEventListener("focusin", (event) => light(listedAt(event.target)));
  main.addEventListener("focusout", () => light(null));
  main.addEventListener("click", (event) => {
    const details = barOf(event.target)?.item.querySelector("details");
    if (!details) return;
    details.open = !details.open;
    if (details.open) details.scrollIntoView({ block: "nearest" });
  });
  main.addEventListener("toggle", () => show(position), true); // marks the stage in the table
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
