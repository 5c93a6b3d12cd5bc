// The page: input, requests, filters, selection of entities, and messages.

import { RequestError, fetchModel, readTextFile, useToken } from "./client.js";
import { createPanel } from "./panel.js";
import { LOWEST_SCORE, createTraces, search } from "./requests.js";
import { samplesFor } from "./samples.js";
import { createTextView } from "./text_view.js";

const MAX_FILE_CHARS = 1_000_000;
const PROGRESS_DELAY = 300; // milliseconds before the progress bar is shown
const GOLDEN_ANGLE = 137.508; // between the hues of labels, as on the other pages of spandet

const at = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en");
const counted = (count, one, more) => `${number(count)} ${count === 1 ? one : more}`;

let model = null;
let text = ""; // the text of the results
let entities = [];
let minScore = 0;
const hidden = new Set(); // labels

const labels = () => model?.labels ?? [];
const hueOf = (label) => Math.round(255 + Math.max(0, labels().indexOf(label)) * GOLDEN_ANGLE) % 360;
const isShown = (entity) => entity.score > minScore && !hidden.has(entity.label);
const announce = (message) => { at("status").textContent = message; }; // for screen readers

// Errors.

let again = () => {};

const showError = (error, retry) => {
  if (!(error instanceof RequestError)) throw error;
  again = retry;
  const needsToken = error.kind === "token";
  at("access").hidden = !needsToken;
  at("notice").hidden = false;
  at("message").textContent = error.message;
  at("again").hidden = error.kind !== "failed";
  if (needsToken) at("token").focus();
};

const clearError = () => {
  at("notice").hidden = true;
  at("access").hidden = true;
};

at("again").addEventListener("click", () => {
  clearError();
  again();
});
at("access").addEventListener("submit", (event) => {
  event.preventDefault();
  useToken(at("token").value);
  at("token").value = "";
  clearError();
  again();
});

// The model.

const describeModel = () => {
  const facts = [model.name, model.detector, counted(labels().length, "label", "labels")];
  const figures = (model.measured ?? []).map(({ data, f1 }) => `${(100 * f1).toFixed(2)} (${data})`);
  if (figures.length) facts.push(`F1 ${figures.join(", ")}`);
  at("model").textContent = facts.join(" · ");
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

const loadModel = async (options) => {
  if (model) return;
  model = await fetchModel(options);
  describeModel();
  showSamples();
};

// Requests.

let current = null; // the controller of the running search

const showProgress = (message, share) => {
  at("working-on").textContent = message;
  if (share === undefined) at("progress").removeAttribute("value");
  else at("progress").value = share;
};

const find = async () => {
  const wanted = at("text").value;
  current?.abort();
  clearError();
  if (!wanted.trim()) {
    at("text").focus();
    announce("Paste a text first, or choose an example.");
    return;
  }
  const mine = current = new AbortController();
  const options = {
    signal: mine.signal,
    onProgress: (done, all) => showProgress(`${number(done)} of ${number(all)} characters`, done / all),
    onWait: (seconds) =>
      showProgress(seconds ? `The server is busy: trying again in ${seconds} s` : "Trying again …"),
  };
  const delayed = setTimeout(() => { at("working").hidden = false; }, PROGRESS_DELAY);
  at("find").setAttribute("aria-busy", "true");
  showProgress("Finding entities …");
  try {
    await loadModel(options);
    show(wanted, await search(wanted, model, options));
  } catch (error) {
    if (!mine.signal.aborted) showError(error, find);
  } finally {
    clearTimeout(delayed);
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

// Results.

const describe = ({ text: words, label, score, characters }) =>
  `${words}: ${label}, score ${score.toFixed(2)}, characters ${characters.start} to ${characters.end}`;

const view = createTextView(at("text-view"), { hueOf, describe, onChoose: (entity) => choose(entity) });

const summarize = () => {
  const shown = view.visible().length;
  const all = counted(entities.length, "entity", "entities");
  at("found").textContent = shown === entities.length ? all : `${number(shown)} of ${all}`;
  for (const chip of at("labels").querySelectorAll(".chip")) {
    const own = entities.filter((each) => each.label === chip.label && each.score > minScore);
    chip.querySelector(".count").textContent = number(own.length);
  }
};

let announcing = 0;
const announceSoon = () => { // once, after the last change of the slider
  clearTimeout(announcing);
  announcing = setTimeout(() => announce(`${at("found").textContent} shown`), 400);
};

const refilter = () => {
  view.filter(isShown);
  summarize();
  announceSoon();
  if (chosen && !isShown(chosen)) panel.close();
  else if (chosen) view.choose(chosen);
};

const showScore = () => {
  at("score-value").textContent = minScore.toFixed(2);
  at("score").setAttribute("aria-valuetext", minScore.toFixed(2));
  at("tuned").hidden = minScore === model.threshold;
};

const resetScore = () => {
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
  resetScore();
  const occurring = new Set(entities.map((entity) => entity.label));
  at("labels").querySelectorAll(".chip").forEach((chip) => chip.remove());
  at("labels").append(...labels().filter((label) => occurring.has(label)).map(chipOf));
  at("results").hidden = false;
  view.show(text, entities, isShown);
  summarize();
  announce(`${at("found").textContent} found`);
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
  resetScore();
  refilter();
  at("score").focus();
});

// The selected entity.

let chosen = null;
let traces = null; // of the text of the results

const panel = createPanel(at("panel"), {
  hueOf,
  onClose: () => {
    const was = chosen;
    chosen = null;
    view.choose(null);
    if (was && isShown(was) && entities.includes(was)) view.focus(was);
  },
});

const choose = (entity) => {
  chosen = entity;
  panel.open(entity, { method: model.detector, load: () => traces.of(entity) });
  view.choose(entity);
  entity.button?.scrollIntoView({ block: "nearest" }); // the panel covers half of a small screen
};

addEventListener("keydown", (event) => {
  if (event.key === "Escape" && panel.isOpen()) panel.close();
});

// Copying.

const copyText = async (copied) => {
  try {
    await navigator.clipboard.writeText(copied);
  } catch { // without HTTPS, or not allowed
    const area = document.createElement("textarea");
    area.value = copied;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
};

at("copy").addEventListener("click", async () => {
  const shown = view.visible().map(({ characters: { fragments, ...place }, label, score, text: words }) =>
    ({ ...place, label, score, text: words, ...(fragments && { fragments }) }));
  await copyText(JSON.stringify({ text, entities: shown }, null, 2));
  at("copy").focus();
  announce(`${counted(shown.length, "entity", "entities")} copied`);
  at("copy").textContent = "Copied";
  setTimeout(() => { at("copy").textContent = "Copy as JSON"; }, 1500);
});

// Input.

const showSize = () => {
  const size = at("text").value.length;
  at("size").textContent = size ? counted(size, "character", "characters") : "";
};

const setText = (value) => {
  at("text").value = value;
  showSize();
};

const openFile = async (file) => {
  if (!file) return;
  clearError();
  try {
    setText(await readTextFile(file, MAX_FILE_CHARS));
    find();
  } catch (error) {
    showError(error, () => {});
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
  await openFile(at("file").files[0]);
  at("file").value = ""; // so that the same file can be opened again
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
  openFile(event.dataTransfer.files[0]);
});

const begin = () => {
  showSize(); // a browser may restore the text of the last visit
  loadModel().catch((error) => showError(error, begin));
};
begin();
