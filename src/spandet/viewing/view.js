"use strict";
(() => {
  const root = document.documentElement;
  const main = document.querySelector("main");
  const tip = document.getElementById("tip");
  const errors = document.getElementById("errors"); // only in a comparison of gold and predicted
  const boxes = [...document.querySelectorAll("#labels input")]; // box i belongs to class k<i>

  // The filters are stored in the address, as #hide=DNA,RNA&errors=1, so that a link shows the same view.

  const decode = (text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text; // an invalid % sequence in the address
    }
  };

  const applyAddress = () => {
    const settings = new Map(location.hash.slice(1).split("&").map((part) => {
      const at = part.indexOf("=");
      return at < 0 ? [part, ""] : [part.slice(0, at), part.slice(at + 1)];
    }));
    const hidden = new Set((settings.get("hide") ?? "").split(",").map(decode));
    boxes.forEach((box, i) => {
      box.checked = !hidden.has(box.value);
      root.classList.toggle(`hide-${i}`, !box.checked);
    });
    if (errors) {
      errors.checked = settings.get("errors") === "1";
      root.classList.toggle("errors-only", errors.checked);
    }
    hideTip();
  };

  const writeAddress = () => {
    const hidden = boxes.filter((box) => !box.checked).map((box) => encodeURIComponent(box.value));
    location.hash = `hide=${hidden.join(",")}${errors?.checked ? "&errors=1" : ""}`;
  };

  const checkAll = (checked) => {
    for (const box of boxes) box.checked = checked;
    writeAddress();
  };

  document.getElementById("filters").addEventListener("change", writeAddress);
  document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("all").addEventListener("click", () => checkAll(true));
  document.getElementById("none").addEventListener("click", () => checkAll(false));
  window.addEventListener("hashchange", applyAddress);

  // Details of the entities under the pointer or the focus.

  const numberOf = (mark) => Number(/\bk(\d+)\b/.exec(mark.className)[1]);
  const isShown = (mark) => boxes[numberOf(mark)].checked && mark.closest("article").checkVisibility();
  const sideOf = (mark) => mark.closest("[data-side]").dataset.side;
  const partsOf = (mark) =>
    mark.closest("article").querySelectorAll(`[data-side="${sideOf(mark)}"] mark[data-i="${mark.dataset.i}"]`);

  const textOf = (mark) => {
    const blocks = mark.closest("article").querySelectorAll(`[data-side="${sideOf(mark)}"]`);
    return [...blocks].map((block) => block.textContent).join("");
  };

  const line = (name, text) => {
    const element = document.createElement("div");
    element.className = name;
    element.textContent = text;
    element.dir = "auto";
    return element;
  };

  const OUTCOMES = { hit: "✓ hit", miss: "✗ miss", alarm: "+ false alarm" };

  const describe = (mark) => {
    const first = partsOf(mark)[0];
    const characters = Array.from(textOf(mark)); // offsets count characters, not UTF-16 units
    const fragments = first.dataset.at.split(",").map((part) => part.split(":").map(Number));
    const outcome = Object.keys(OUTCOMES).find((name) => mark.classList.contains(name));
    const details = [`characters ${first.dataset.at.replaceAll(",", ", ")}`];
    if (first.dataset.score) details.push(`score ${first.dataset.score}`);
    if (outcome) details.push(OUTCOMES[outcome]);
    const entry = document.createElement("div");
    entry.className = `entry k${numberOf(mark)}`;
    entry.append(
      line("label", boxes[numberOf(mark)].value),
      line("words", fragments.map(([start, end]) => characters.slice(start, end).join("")).join(" … ")),
      line("soft", details.join(" · ")),
    );
    return entry;
  };

  const isOnBar = (mark, y) => {
    const step = parseFloat(getComputedStyle(root).getPropertyValue("--step"));
    return [...mark.getClientRects()].some((box) => y > box.bottom - step && y <= box.bottom);
  };

  // On a bar: its entity. On the words: all entities that contain them.
  const pointedAt = (mark, y) => {
    const around = [];
    for (let each = mark; each; each = each.parentElement.closest("mark")) around.push(each);
    const barred = around.filter((each) => isOnBar(each, y));
    return (barred.length ? barred : around).filter(isShown);
  };

  let described = []; // the marks that the tooltip describes
  let highlighted = []; // all parts of their bars

  const hideTip = () => {
    tip.hidden = true;
    for (const mark of highlighted) mark.classList.remove("on");
    described = highlighted = [];
  };

  const showTip = (marks, x, y) => {
    if (marks.length !== described.length || marks.some((mark, i) => mark !== described[i])) {
      hideTip();
      described = marks;
      highlighted = marks.flatMap((mark) => [...partsOf(mark)]);
      for (const mark of highlighted) mark.classList.add("on");
      tip.replaceChildren(...marks.map(describe));
    }
    tip.hidden = !marks.length;
    const box = tip.getBoundingClientRect();
    const below = y + 16 + box.height <= innerHeight;
    tip.style.left = `${Math.max(8, Math.min(x, innerWidth - box.width - 8))}px`;
    tip.style.top = `${below ? y + 16 : Math.max(8, y - box.height - 16)}px`;
  };

  main.addEventListener("pointermove", (event) => {
    const mark = event.target.closest("mark");
    if (mark) showTip(pointedAt(mark, event.clientY), event.clientX, event.clientY);
    else hideTip();
  });
  main.addEventListener("pointerleave", hideTip);
  main.addEventListener("focusin", (event) => {
    const box = event.target.getClientRects()[0];
    if (event.target.matches("mark")) showTip([event.target], box.left, box.bottom);
  });
  main.addEventListener("focusout", hideTip);

  // The tab key stops once; the arrow keys go from entity to entity in reading order.

  const stop = (mark) => {
    for (const old of main.querySelectorAll("mark[tabindex]")) old.removeAttribute("tabindex");
    if (mark) mark.tabIndex = 0;
  };

  const step = (mark, forward) => {
    const marks = [...main.querySelectorAll("mark[data-at]")];
    for (let i = marks.indexOf(mark); i >= 0 && i < marks.length; i += forward ? 1 : -1) {
      if (marks[i] !== mark && isShown(marks[i])) return marks[i];
    }
    return mark;
  };

  main.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hideTip();
    if (!event.target.matches("mark") || !["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    const rightwards = event.key === "ArrowRight";
    const next = step(event.target, rightwards !== event.target.matches(":dir(rtl)"));
    event.preventDefault();
    stop(next);
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  });

  stop(main.querySelector("mark[data-at]"));
  applyAddress();
})();
