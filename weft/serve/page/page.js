"use strict";
// The page of `weft serve`: sends requests to /api/watch and /predict and shows the answers. No library, no other
// server. Read next: draw.js, which draws an answer; translators.js; edits.js, changes to a model; curves.js.

let runs = [];
let asking = null; // AbortController of the current request
let dropped = null; // the file that was chosen or dropped
const WATCHED = ["translate", "multilingual", "summarise", "language", "classify"];
const VERBS = { translate: "Translate", multilingual: "Translate", summarise: "Summarise", classify: "Classify", tag: "Tag", language: "Continue",
  forecast: "Forecast", masked: "Fill", embeddings: "Find", draw: "Draw", elmo: "Compare", images: "Classify", caption: "Describe", speech: "Transcribe" };
const READS_FILES = { images: "image/*", caption: "image/*", speech: "audio/*" };

const run = (name) => runs.find((one) => one.name === name);
const chosen = () => [...new Set([at("first").value, at("second").value])].filter(Boolean).map(run);

async function list() {
  const answer = await request("/api/runs");
  runs = await answer.json();
  for (const id of ["first", "second"]) {
    const box = at(id), kept = box.value;
    box.replaceChildren(...(id === "second" ? [new Option("none", "")] : []),
      ...runs.map((one) => new Option(`${one.name} (${one.task})`, one.name)));
    if ([...box.options].some((option) => option.value === kept)) box.value = kept;
  }
  choose();
}

function choose() {
  const some = chosen();
  const targets = [...new Set(some.flatMap((one) => one.targets))];
  const kept = at("target").value;
  at("target").replaceChildren(...targets.map((code) => new Option(language(code), code)));
  if (targets.includes(kept)) at("target").value = kept;
  at("target").disabled = targets.length < 2;
  at("beam-label").hidden = !targets.length;
  at("heat-label").hidden = !some.some((one) => one.task === "language");
  const task = some.length ? some[0].task : "";
  at("go").textContent = VERBS[task] || "Answer";
  at("prompt").textContent = {
    translate: "A text to translate", multilingual: "A text to translate", classify: "A text to classify",
    tag: "A sentence to tag, spaces between its words", language: "A text to continue",
    forecast: "Numbers, oldest first", training: "Still training: see its curves on the page Training",
    memory: "A line of input", summarise: "A text to summarise", masked: "A text with [MASK] in place of missing words",
    embeddings: "One word, or three: man king woman", draw: "What to draw",
    elmo: "A word, then two sentences with it, one per line; or one sentence",
  }[task] || "Your text";
  const files = some.map((one) => READS_FILES[one.task]).find(Boolean);
  at("open").textContent = files ? "Choose a file" : translates(some[0]) ? "Open a text or a document" : "Open a text file";
  at("open").hidden = at("drop").hidden = !some.length || task === "forecast";
  at("file").accept = files || (translates(some[0]) ? "" : "text/*,.txt,.md,.csv,.tsv");
  const examples = (some[0] && some[0].examples) || [];
  at("examples").replaceChildren(...examples.map(example));
  at("examples-row").hidden = !examples.length;
  at("text-label").hidden = Boolean(files) && some.every((one) => READS_FILES[one.task]);
  show_languages(some);
  terms_of_language();
}

// The text of a link to this page, such as /#text=Open%20the%20file.
function linked() {
  try {
    return location.hash.startsWith("#text=") ? decodeURIComponent(location.hash.slice(6)) : "";
  } catch { return ""; } // not encoded as a link is
}

function example(text) {
  const shown = text.length > 60 ? `${text.slice(0, 59)}…` : text;
  return button(shown, () => { at("text").value = text; ask(); }, { className: "example", title: text, dir: "auto" });
}

function copier(text) {
  return button("Copy", async ({ target }) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch { // the clipboard API needs https or localhost
      const box = make("textarea", { value: text });
      document.body.append(box);
      box.select();
      document.execCommand("copy");
      box.remove();
    }
    target.textContent = "Copied";
    setTimeout(() => { target.textContent = "Copy"; }, 1500);
  }, { className: "copy" });
}

function opened() {
  take(at("file").files[0], at("text"));
  at("file").value = "";
}

// ---------------------------------------------------------------- asking

async function ask(prefix = "", only = null) {
  if (asking) asking.abort();
  const mine = (asking = new AbortController());
  at("stop").disabled = false;
  const some = only ? [only] : chosen();
  if (!only) at("panels").replaceChildren();
  at("nothing").hidden = true;
  say("answering …");
  try {
    const told = await Promise.all(some.map((one) => answer(one, panel_of(one), prefix, mine.signal)));
    if (asking === mine) say(told.filter(Boolean).join("; ") || "no answer", !told.every(Boolean));
  } catch (error) {
    if (asking === mine) say(error.name === "AbortError" ? "stopped" : String(error.message || error), true);
  }
  if (asking === mine) { asking = null; at("stop").disabled = true; }
}

function panel_of(one) {
  let panel = [...at("panels").children].find((each) => each.dataset.run === one.name);
  if (!panel) {
    panel = make("section", { className: "panel", data: { run: one.name } });
    at("panels").append(panel);
  }
  panel.replaceChildren(make("h2", { textContent: one.name }), make("p", { className: "about",
    textContent: one.ready ? `${one.about}; ${one.parameters.toLocaleString()} parameters` : "no model yet" }));
  return panel;
}

async function answer(one, panel, prefix, signal) {
  const begun = performance.now();
  const shown = make("p", { className: "answer draft", dir: "auto" });
  panel.append(shown);
  let first = 0;
  const told = (text) => { first ||= performance.now() - begun; shown.textContent = text; };
  try {
    const asked = await question(one);
    const before = await unchanged(one, asked, signal);
    const found = await reply(one, { ...asked, ...(prefix ? { prefix } : {}), ...wanted(one) }, signal, told);
    shown.className = "answer";
    (DRAW[one.task] || DRAW.other)(panel, shown, found, one, asked.inputs);
    const plain = found.text ?? shown.textContent;
    one.answered = plain;
    if (plain) panel.append(copier(plain));
    panel.append(inside(one, asked));
    if (before) compare(panel, one, before, found);
    panel.append(workshop(one, asked, found.words));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    shown.className = "error";
    shown.textContent = error.message;
    return "";
  }
  const all = Math.round(performance.now() - begun);
  return WATCHED.includes(one.task) ? `${one.name}: first words after ${Math.round(first)} ms, complete after ${all} ms` : `${one.name}: ${all} ms`;
}

class Refused extends Error {}

async function question(one) {
  const text = at("text").value;
  if (WATCHED.includes(one.task)) {
    const body = { run: one.name, text, beam: Number(at("beam").value) || 5, temperature: Number(at("heat").value) || 0 };
    if (one.targets.includes(at("target").value)) body.target = at("target").value;
    return { ...body, ...terms_asked(one) };
  }
  if (one.task === "forecast") return { run: one.name, inputs: text.split(/[\s,;]+/).filter(Boolean).map(Number) };
  const lines = text.split("\n").filter((line) => line.trim());
  if (one.task === "elmo" && lines.length === 3) return { run: one.name, inputs: lines.join("\t") };
  if (!READS_FILES[one.task]) return { run: one.name, inputs: text };
  const file = dropped;
  if (!file) throw new Refused("choose a file first");
  return { run: one.name, inputs: await new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => failed(new Refused("the file cannot be read"));
    reader.readAsDataURL(file);
  }) };
}

async function reply(one, body, signal, told) {
  const watched = WATCHED.includes(one.task);
  const came = await request(watched ? "/api/watch" : "/predict", json(body, { signal }));
  if (!came.ok) throw new Refused((await came.json()).error);
  if (!watched) return (await came.json()).outputs[0];
  let last = null;
  for await (const event of events(came.body)) {
    if (event.event === "error") throw new Refused(event.error);
    told(event.text);
    last = event;
  }
  if (!last || last.event !== "done") throw new Refused("the answer was cut off; try again");
  return last;
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let kept = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (kept + value).split("\n\n");
    kept = parts.pop();
    for (const part of parts) yield JSON.parse(part.slice("data: ".length));
  }
}

at("ask").addEventListener("submit", (event) => { event.preventDefault(); ask(); });
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); ask(); }
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && asking) asking.abort(); });
at("stop").addEventListener("click", () => asking && asking.abort());
at("first").addEventListener("change", choose);
at("second").addEventListener("change", choose);
at("open").addEventListener("click", () => at("file").click());
at("file").addEventListener("change", opened);

function begin() {
  at("ask").hidden = false;
  at("text").focus();
  setInterval(() => { if (chosen().some((one) => !one.ready)) list(); }, 5000);
  listen_for_files();
  return list().then(() => {
    const text = linked();
    if (text) { at("text").value = text; ask(); }
    return runs;
  });
}
