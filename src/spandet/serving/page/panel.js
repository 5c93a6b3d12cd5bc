// Details of one entity: its score, its position, and its trajectory through the detector.

import { createTrajectory, trajectoriesOf } from "./trajectory.js";

const SHOWN_LABELS = 4;
const MIN_SHOWN_PROBABILITY = 0.005;

const METHODS = {
  "locate-and-label": "A filter scores spans of fixed lengths. The boundaries of those that may contain "
    + "an entity are adjusted, then each span is classified.",
  "proposer-regressor": "A pyramid over the words proposes spans. Each layer of the regressor attends to "
    + "the other proposals, then updates boundaries and labels.",
  "boundary-diffusion": "Spans start as noise or as proposals. Their boundaries are denoised step by "
    + "step, and each span is classified.",
  "span-jury": "All spans are scored, and the best are nominated. In each round the nominees attend to "
    + "each other and are classified again. Boundaries do not change.",
  "biaffine": "Every span is classified by its first and its last word. Boundaries do not change.",
};

const UNKNOWN = "The model does not find this entity without the rest of the text. There is no trajectory to show.";

const make = (tag, className, ...content) => {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...content);
  return made;
};

const words = (text) => {
  const made = make("bdi", "", text);
  made.lang = "";
  return made;
};

const icon = (path) => {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  const drawn = document.createElementNS("http://www.w3.org/2000/svg", "path");
  drawn.setAttribute("d", path);
  svg.append(drawn);
  return svg;
};

const ICONS = {
  play: "M4 2.5v11l9-5.5z",
  pause: "M3.5 3h3v10h-3zM9.5 3h3v10h-3z",
  back: "M11 3v10L4.5 8zM3 3h1.5v10H3z",
  next: "M5 3v10l6.5-5zM11.5 3H13v10h-1.5z",
};

const button = (className, label, path) => {
  const made = make("button", className, icon(path));
  made.type = "button";
  made.setAttribute("aria-label", label);
  made.title = label;
  return made;
};

const twoDecimals = (value) => (Math.round(value * 100) / 100 + 0).toFixed(2); // never -0.00

// The most probable labels as small bars, always with the label of the entity.
const probabilitiesOf = (step, label) => {
  if (!step.label_probs) return [];
  const all = [["no entity", step.no_entity, false],
    ...Object.entries(step.label_probs).map(([name, prob]) => [name, prob, name === label])];
  const ranked = all.sort((a, b) => b[1] - a[1]);
  return ranked
    .filter(([, prob, own], i) => own || (i < SHOWN_LABELS && prob >= MIN_SHOWN_PROBABILITY))
    .map(([name, prob, own]) => {
      const bar = make("span", own ? "probability own" : "probability", words(name), ` ${prob.toFixed(2)}`);
      bar.style.setProperty("--p", prob.toFixed(3));
      return bar;
    });
};

const boundaries = ({ start, end }, isWhole) =>
  (isWhole ? `${start} – ${end - 1}` : `${twoDecimals(start)} – ${twoDecimals(end - 1)}`);

const tableOf = (found) => {
  const head = make("tr", "");
  for (const name of ["stage", "boundaries", "label probabilities"]) {
    const cell = make("th", "", name);
    cell.scope = "col";
    head.append(cell);
  }
  const trajectories = trajectoriesOf(found);
  const rows = trajectories[0].map((step, i, all) => {
    const name = make("th", "", step.stage);
    name.scope = "row";
    const isLast = i === all.length - 1;
    const place = trajectories.map((stages) => boundaries(stages[i], isLast)).join(" + ");
    const score = step.score !== undefined && !step.label_probs
      ? [make("span", "probability", `score ${step.score.toFixed(2)}`)] : [];
    score[0]?.style.setProperty("--p", step.score.toFixed(3));
    return make("tr", "", name, make("td", "", place),
      make("td", "", ...score, ...probabilitiesOf(step, found.label)));
  });
  const table = make("table", "stages", make("thead", "", head), make("tbody", "", ...rows));
  table.append(make("caption", "", "Boundaries: index of the first and of the last word in the sentence, from 0."));
  return table;
};

const controlsOf = (trajectory, stages) => {
  const play = button("round main", "Play", ICONS.play);
  const back = button("round quiet", "Previous stage", ICONS.back);
  const next = button("round quiet", "Next stage", ICONS.next);
  const slider = make("input", "");
  const { last } = trajectory;
  Object.assign(slider, { type: "range", min: 0, max: last, step: "any", value: last });
  slider.setAttribute("aria-label", "Stage");
  const name = make("span", "stage soft");
  play.addEventListener("click", () => (trajectory.isPlaying() ? trajectory.halt() : trajectory.play()));
  back.addEventListener("click", () => trajectory.step(-1));
  next.addEventListener("click", () => trajectory.step(1));
  slider.addEventListener("input", () => {
    trajectory.halt();
    trajectory.show(Number(slider.value));
  });
  slider.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, Home: -last, End: last };
    if (!(event.key in steps)) return;
    event.preventDefault();
    trajectory.step(steps[event.key]);
  });
  const follow = (stage, position, playing) => {
    slider.value = position;
    slider.setAttribute("aria-valuetext", stages[stage].stage);
    name.textContent = `${stages[stage].stage} · ${stage + 1} of ${stages.length}`;
    const label = playing ? "Pause" : "Play";
    if (play.title === label) return;
    play.title = label;
    play.setAttribute("aria-label", label);
    play.replaceChildren(icon(playing ? ICONS.pause : ICONS.play));
  };
  const element = make("div", "player", back, play, next, make("div", "rail", slider, name));
  return { element, follow };
};

const headOf = (entity, hueOf, close) => {
  const label = make("span", "tag", words(entity.label));
  const cross = button("round quiet", "Close", "M3.5 3.5l9 9m0-9l-9 9");
  cross.classList.add("stroked");
  cross.addEventListener("click", close);
  const meter = make("span", "meter");
  meter.style.setProperty("--p", entity.score.toFixed(3));
  const name = make("h2", "", words(entity.text));
  name.dir = "auto";
  const place = (entity.characters.fragments ?? [[entity.characters.start, entity.characters.end]])
    .map(([start, end]) => `${start}–${end}`).join(", ");
  const facts = make("dl", "facts",
    make("dt", "", "Score"), make("dd", "", meter, ` ${entity.score.toFixed(3)}`),
    make("dt", "", "Characters"), make("dd", "", place));
  const head = make("div", "head", make("div", "line", label, cross), name, facts);
  head.style.setProperty("--hue", hueOf(entity.label));
  return head;
};

export const createPanel = (panel, { hueOf, onClose }) => {
  const hint = panel.querySelector("#hint");
  const details = panel.querySelector("#details");
  let trajectory = null;
  let turn = 0; // a response that arrives after another entity was selected is ignored

  const clear = () => {
    trajectory?.close();
    trajectory = null;
    turn += 1;
  };

  const close = () => {
    clear();
    details.hidden = true;
    hint.hidden = false;
    panel.classList.remove("open");
    onClose();
  };

  const showTrajectory = (section, { sentence, characters, found }) => {
    const stages = trajectoriesOf(found)[0];
    const table = tableOf(found);
    let follow = () => {};
    const rows = [...table.tBodies[0].rows];
    const onStage = (stage, position, playing) => {
      rows.forEach((row, i) => row.classList.toggle("now", i === stage));
      follow(stage, position, playing);
    };
    trajectory = createTrajectory({ sentence, characters, chosen: found, hueOf, onStage });
    const controls = controlsOf(trajectory, stages);
    follow = controls.follow;
    const box = make("input", "");
    box.type = "checkbox";
    box.addEventListener("change", () => trajectory.showAll(box.checked));
    const all = make("label", "line all", box, "show all entities of this sentence");
    all.hidden = sentence.found.length < 2;
    section.append(trajectory.element, controls.element, all, table);
    trajectory.showAll(false);
    trajectory.show(trajectory.last);
    trajectory.play();
  };

  // `load` gives the trace of the entity, or null if the model does not find it again.
  const open = async (entity, { method, load }) => {
    clear();
    const mine = turn;
    const section = make("section", "", make("h3", "", "How it was found"));
    if (METHODS[method]) section.append(make("p", "soft small method", METHODS[method]));
    const waiting = make("p", "soft small", "Loading the trajectory …");
    waiting.setAttribute("role", "status");
    section.append(waiting);
    details.replaceChildren(headOf(entity, hueOf, close), section);
    details.style.setProperty("--hue", hueOf(entity.label));
    details.hidden = false;
    hint.hidden = true;
    panel.classList.add("open");
    panel.scrollTop = 0;
    panel.focus({ preventScroll: true });
    try {
      const traced = await load();
      if (mine !== turn) return;
      waiting.remove();
      if (traced) showTrajectory(section, traced);
      else section.append(make("p", "soft small", UNKNOWN));
    } catch (error) {
      if (mine === turn) waiting.textContent = error.message;
    }
  };

  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !details.hidden) close();
  });

  return { open, close, isOpen: () => !details.hidden };
};
