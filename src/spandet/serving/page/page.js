// The page: what is asked, what is shown, and what happens when somebody touches something.

import { Trouble, fetchModel, readTextFile, useToken } from "./client.js";
import { createPanel } from "./panel.js";
import { samplesFor } from "./samples.js";
import { LOWEST_SCORE, search } from "./search.js";
import { createSheet } from "./sheet.js";
import { createTraces } from "./traces.js";

const LONGEST = 1_000_000; // characters of a file
const PATIENCE = 300; // milliseconds before the page says that it is working
const GOLDEN_ANGLE = 137.508; // as everywhere in spandet: a hue for every label

const at = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en");
const counted = (count, one, more) => `${number(count)} ${count === 1 ? one : more}`;

let model = null;
let text = ""; // what is shown
let entities = [];
let minScore = 0;
const hidden = new Set(); // labels

const labels = () => model?.labels ?? [];
const hueOf = (label) => Math.round(255 + Math.max(0, labels().indexOf(label)) * GOLDEN_ANGLE) % 360;
const isShown = (entity) => entity.score > minScore && !hidden.has(entity.label);
const say = (message) => { at("status").textContent = message; };

// Trouble.

let again = () => {};

const showTrouble = (trouble, retry) => {
  if (!(trouble instanceof Trouble)) throw trouble;
  again = retry;
  const wantsToken = trouble.kind === "token";
  at("access").hidden = !wantsToken;
  at("notice").hidden = false;
  at("message").textContent = trouble.message;
  at("again").hidden = trouble.kind !== "failed";
  if (wantsToken) at("token").focus();
};

const clearTrouble = () => {
  at("notice").hidden = true;
  at("access").hidden = true;
};

at("again").addEventListener("click", () => {
  clearTrouble();
  again();
});
at("access").addEventListener("submit", (event) => {
  event.preventDefault();
  useToken(at("token").value);
  at("token").value = "";
  clearTrouble();
  again();
});

// The model.

const describeModel = () => {
  const parts = [model.name, model.detector, counted(labels().length, "label", "labels")];
  const figures = (model.measured ?? []).map(({ data, f1 }) => `${(100 * f1).toFixed(2)} (${data})`);
  if (figures.length) parts.push(`F1 ${figures.join(", ")}`);
  at("model").textContent = parts.join(" · ");
  at("model").title = `encoder ${model.encoder}, spandet ${model.version}`;
  document.title = `${model.name} · spandet`;
};

const showSamples = () => {
  at("samples").replaceChildren(...samplesFor(labels()).map((sample) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = sample.name;
    button.addEventListener("click", () => {
      setText(sample.text);
      find();
    });
    return button;
  }));
};

const meetModel = async (options) => {
  if (model) return;
  model = await fetchModel(options);
  describeModel();
  showSamples();
};

// Asking.

let current = null; // the controller of the search that is under way

const working = (message, part) => {
  at("working-on").textContent = message;
  if (part === undefined) at("progress").removeAttribute("value");
  else at("progress").value = part;
};

const find = async () => {
  const wanted = at("text").value;
  current?.abort();
  clearTrouble();
  if (!wanted.trim()) {
    at("text").focus();
    say("Paste a text first, or choose an example.");
    return;
  }
  const mine = current = new AbortController();
  const options = {
    signal: mine.signal,
    onProgress: (done, all) => working(`${number(done)} of ${number(all)} characters`, done / all),
    onWait: (seconds) => working(seconds ? `The server is busy: trying again in ${seconds} s` : "Trying again …"),
  };
  const patience = setTimeout(() => { at("working").hidden = false; }, PATIENCE);
  at("find").setAttribute("aria-busy", "true");
  working("Finding entities …");
  try {
    await meetModel(options);
    show(wanted, await search(wanted, model, options));
  } catch (trouble) {
    if (!mine.signal.aborted) showTrouble(trouble, find);
  } finally {
    clearTimeout(patience);
    if (current === mine) {
      at("working").hidden = true;
      at("find").removeAttribute("aria-busy");
    }
  }
};

at("stop").addEventListener("click", () => {
  current?.abort();
  at("text").focus();
});

// Showing.

const describe = ({ text: words, label, score, characters }) =>
  `${words}: ${label}, score ${score.toFixed(2)}, characters ${characters.start} to ${characters.end}`;

const sheet = createSheet(at("sheet"), { hueOf, describe, onChoose: (entity) => choose(entity) });

const summarize = () => {
  const shown = sheet.visible().length;
  const all = counted(entities.length, "entity", "entities");
  at("found").textContent = shown === entities.length ? all : `${number(shown)} of ${all}`;
  for (const chip of at("labels").querySelectorAll(".chip")) {
    const own = entities.filter((each) => each.label === chip.label && each.score > minScore);
    chip.querySelector(".count").textContent = number(own.length);
  }
};

let speaking = 0;
const announce = () => { // when the slider rests
  clearTimeout(speaking);
  speaking = setTimeout(() => say(`${at("found").textContent} shown`), 400);
};

const refilter = () => {
  sheet.filter(isShown);
  summarize();
  announce();
  if (chosen && !isShown(chosen)) panel.close();
  else if (chosen) sheet.choose(chosen);
};

const showScore = () => {
  at("score-value").textContent = minScore.toFixed(2);
  at("score").setAttribute("aria-valuetext", minScore.toFixed(2));
  at("tuned").hidden = minScore === model.threshold;
};

const tune = () => {
  minScore = model.threshold;
  const slider = at("score");
  slider.min = Math.min(LOWEST_SCORE, model.threshold);
  slider.value = minScore;
  slider.parentElement.style.setProperty("--at", (minScore - slider.min) / (1 - slider.min));
  showScore();
};

const chipOf = (label) => {
  const chip = document.createElement("label");
  const box = document.createElement("input");
  const name = document.createElement("bdi");
  const count = document.createElement("span");
  chip.className = "chip";
  chip.label = label;
  chip.style.setProperty("--hue", hueOf(label));
  box.type = "checkbox";
  box.checked = !hidden.has(label);
  box.addEventListener("change", () => {
    if (box.checked) hidden.delete(label);
    else hidden.add(label);
    refilter();
  });
  name.textContent = label;
  count.className = "count";
  chip.append(box, name, count);
  return chip;
};

const show = (newText, found) => {
  if (chosen) panel.close();
  [text, entities] = [newText, found];
  traces = createTraces(text, model);
  hidden.clear();
  tune();
  const occurring = new Set(entities.map((entity) => entity.label));
  at("labels").querySelectorAll(".chip").forEach((chip) => chip.remove());
  at("labels").append(...labels().filter((label) => occurring.has(label)).map(chipOf));
  at("results").hidden = false;
  sheet.show(text, entities, isShown);
  summarize();
  say(`${at("found").textContent} found`);
};

let filtering = 0;
at("score").addEventListener("input", () => {
  minScore = Number(at("score").value);
  showScore();
  filtering ||= requestAnimationFrame(() => {
    filtering = 0;
    refilter();
  });
});
at("tuned").addEventListener("click", () => {
  tune();
  refilter();
  at("score").focus();
});

// One entity.

let chosen = null;
let traces = null; // of the text that is shown

const panel = createPanel(at("panel"), {
  hueOf,
  onClose: () => {
    const was = chosen;
    chosen = null;
    sheet.choose(null);
    if (was && isShown(was) && entities.includes(was)) sheet.focus(was);
  },
});

const choose = (entity) => {
  chosen = entity;
  panel.open(entity, { method: model.detector, load: () => traces.of(entity) });
  sheet.choose(entity);
  entity.button?.scrollIntoView({ block: "nearest" }); // a small screen is half covered now
};

addEventListener("keydown", (event) => {
  if (event.key === "Escape" && panel.isOpen()) panel.close();
});

// Copying.

const copyText = async (copied) => {
  try {
    await navigator.clipboard.writeText(copied);
  } catch { // not on this address, or not allowed
    const area = document.createElement("textarea");
    area.value = copied;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
};

at("copy").addEventListener("click", async () => {
  const shown = sheet.visible().map(({ characters: { fragments, ...place }, label, score, text: words }) =>
    ({ ...place, label, score, text: words, ...(fragments && { fragments }) }));
  await copyText(JSON.stringify({ text, entities: shown }, null, 2));
  at("copy").focus();
  say(`${counted(shown.length, "entity", "entities")} copied`);
  at("copy").textContent = "Copied";
  setTimeout(() => { at("copy").textContent = "Copy as JSON"; }, 1500);
});

// Text in.

const showSize = () => {
  const size = at("text").value.length;
  at("size").textContent = size ? counted(size, "character", "characters") : "";
};

const setText = (value) => {
  at("text").value = value;
  showSize();
};

const takeFile = async (file) => {
  if (!file) return;
  clearTrouble();
  try {
    setText(await readTextFile(file, LONGEST));
    find();
  } catch (trouble) {
    showTrouble(trouble, () => {});
  }
};

at("text").addEventListener("input", showSize);
at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  find();
});
at("ask").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  find();
});
at("open").addEventListener("click", () => at("file").click());
at("file").addEventListener("change", async () => {
  await takeFile(at("file").files[0]);
  at("file").value = ""; // the same file may come again
});
at("ask").addEventListener("dragover", (event) => {
  event.preventDefault();
  at("ask").classList.add("over");
});
at("ask").addEventListener("dragleave", () => at("ask").classList.remove("over"));
at("ask").addEventListener("drop", (event) => {
  at("ask").classList.remove("over");
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  takeFile(event.dataTransfer.files[0]);
});

const begin = () => {
  showSize(); // a browser may keep what was typed
  meetModel().catch((trouble) => showTrouble(trouble, begin));
};
begin();
