"use strict";
// The page of `weft serve`: asks /api/watch and /predict, draws what comes. No library, no other server.

const at = (id) => document.getElementById(id);
const make = (name, from = {}, ...inside) => {
  const { data, ...plain } = from;
  const node = Object.assign(document.createElement(name), plain);
  Object.assign(node.dataset, data || {});
  node.append(...inside);
  return node;
};
let runs = [];
let asking = null; // the AbortController of what is being answered
const WATCHED = ["translate", "multilingual", "language", "classify"];

const say = (text, bad = false) => {
  at("status").textContent = text;
  at("status").classList.toggle("error", bad);
};
const run = (name) => runs.find((one) => one.name === name);
const chosen = () => [...new Set([at("first").value, at("second").value])].filter(Boolean).map(run);

async function list() {
  const answer = await fetch("/api/runs");
  runs = await answer.json();
  for (const id of ["first", "second"]) {
    const box = at(id), kept = box.value;
    box.replaceChildren(...(id === "second" ? [new Option("nothing", "")] : []),
      ...runs.map((one) => new Option(`${one.name} (${one.task})`, one.name)));
    if ([...box.options].some((option) => option.value === kept)) box.value = kept;
  }
  choose();
}

function choose() {
  const some = chosen();
  const targets = [...new Set(some.flatMap((one) => one.targets))];
  const kept = at("target").value;
  at("target").replaceChildren(...targets.map((code) => new Option(code, code)));
  if (targets.includes(kept)) at("target").value = kept;
  at("target-label").hidden = targets.length < 2;
  at("beam-label").hidden = !targets.length;
  at("heat-label").hidden = !some.some((one) => one.task === "language");
  const task = some.length ? some[0].task : "";
  at("prompt").textContent = {
    translate: "A sentence to translate", multilingual: "A sentence to translate", classify: "A text to classify",
    tag: "A sentence to tag, spaces between its words", language: "A text to go on with",
    forecast: "Numbers, oldest first", training: "In training: its curves are below",
    memory: "A line to answer",
  }[task] || "Your text";
  draw_curves();
}

// ---------------------------------------------------------------- asking

async function ask(prefix = "", only = null) {
  if (asking) asking.abort();
  const mine = (asking = new AbortController());
  at("stop").disabled = false;
  const some = only ? [only] : chosen();
  if (!only) at("panels").replaceChildren();
  say("answering");
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
    textContent: one.ready ? `${one.about}; ${one.parameters.toLocaleString()} parameters` : "has no model yet" }));
  return panel;
}

async function answer(one, panel, prefix, signal) {
  const begun = performance.now();
  const text = at("text").value;
  const shown = make("p", { className: "answer draft", dir: "auto" });
  panel.append(shown);
  const fail = (why) => { shown.className = "error"; shown.textContent = why; return ""; };
  const post = (where, body) => fetch(where, { method: "POST", signal,
    headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  if (!WATCHED.includes(one.task)) {
    const inputs = one.task === "forecast" ? text.split(/[\s,;]+/).filter(Boolean).map(Number) : text;
    const reply = await post("/predict", { run: one.name, inputs });
    const found = await reply.json();
    if (!reply.ok) return fail(found.error);
    shown.className = "answer";
    (DRAW[one.task] || DRAW.other)(panel, shown, found.outputs[0], inputs);
    return `${one.name}: ${Math.round(performance.now() - begun)} ms`;
  }
  const body = { run: one.name, text, prefix, beam: Number(at("beam").value) || 5, temperature: Number(at("heat").value) || 0 };
  if (one.targets.includes(at("target").value)) body.target = at("target").value;
  const reply = await post("/api/watch", body);
  if (!reply.ok) return fail((await reply.json()).error);
  let first = 0, last = null;
  for await (const event of events(reply.body)) {
    first ||= performance.now() - begun;
    if (event.event === "error") return fail(event.error);
    shown.textContent = event.text;
    last = event;
  }
  if (!last || last.event !== "done") return fail("the answer broke off");
  shown.className = "answer";
  DRAW[last.kind](panel, shown, last, one);
  return `${one.name}: first after ${Math.round(first)} ms, all after ${Math.round(performance.now() - begun)} ms`;
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

// ---------------------------------------------------------------- drawing

const tint = (node, weight) => { node.style.backgroundColor = weight ? `rgb(var(--look) / ${Math.min(0.85, weight)})` : ""; };
const percent = (prob) => `${(100 * prob).toFixed(1)} %`;

const DRAW = {
  translate(panel, shown, done, one) {
    shown.hidden = true;
    const source = make("div", { className: "words source", dir: "auto" },
      ...done.source.map((word) => make("span", { className: "word", textContent: word })));
    const words = make("div", { className: "words target", dir: "auto" });
    done.words.forEach((word, number) => {
      const button = make("button", { type: "button", className: "word", textContent: word });
      const look = (on) => {
        button.classList.toggle("on", on);
        [...source.children].forEach((node, place) => {
          const weight = on && done.weights.length ? done.weights[number][place] : 0;
          tint(node, weight);
          node.title = on && done.weights.length ? percent(weight) : "";
        });
      };
      for (const name of ["mouseenter", "focus"]) button.addEventListener(name, () => look(true));
      for (const name of ["mouseleave", "blur"]) button.addEventListener(name, () => look(false));
      button.addEventListener("click", () => {
        const step = done.steps[done.begins[number]];
        force(panel, words, one, done.words.slice(0, number).join(" "), word, step ? step.choices : []);
      });
      words.append(button);
    });
    const note = done.weights.length ? `Hover or focus a word to see where the model looked (${done.shown}); click it to force another.`
      : "This model has no attention to show; click a word to force another.";
    panel.append(words, source, make("p", { className: "hint", textContent: note }));
    const others = make("ol", { className: "others" }, ...done.others.map((other) =>
      make("li", { dir: "auto" }, other.text, make("span", { className: "hint", textContent: `  ${other.score.toFixed(3)}` }))));
    panel.append(make("details", {}, make("summary", { textContent: `The ${done.others.length} best` }), others));
    panel.append(tree(done), inside(one));
  },
  language(panel, shown, done, one) {
    shown.hidden = true;
    const words = make("div", { className: "words prose target", dir: "auto" });
    done.steps.forEach((step, number) => {
      const button = make("button", { type: "button", className: "word", textContent: step.piece, title: percent(step.prob) });
      tint(button, (1 - step.prob) * 0.5);
      button.addEventListener("click", () =>
        force(panel, words, one, done.steps.slice(0, number).map((each) => each.piece).join(""), step.piece, step.choices, ""));
      words.append(button);
    });
    if (!done.steps.length) words.append("(the line ends here)");
    panel.append(words, make("p", { className: "hint", textContent: "The darker, the less the model expected it; click a word for what else it considered." }), inside(one));
  },
  classify(panel, shown, done, one) {
    const most = Math.max(...done.weights[0], 1e-9);
    const words = make("div", { className: "words source", dir: "auto" }, ...done.source.map((word, number) => {
      const node = make("span", { className: "word", textContent: word, title: percent(done.weights[0][number]) });
      tint(node, (0.7 * done.weights[0][number]) / most);
      return node;
    }));
    panel.append(words, make("p", { className: "hint", textContent: `How much each word weighed: ${done.shown}.` }));
    for (const [label, prob] of Object.entries(done.probs).slice(0, 12))
      panel.append(make("div", { className: "bar" }, make("span", { textContent: label }), make("meter", { value: prob, max: 1 }), make("span", { textContent: percent(prob) })));
    panel.append(inside(one));
  },
  tag(panel, shown, found) {
    shown.hidden = true;
    panel.append(make("div", { className: "words target", dir: "auto" }, ...found.map((each) =>
      make("span", { className: "word", title: percent(each.prob) }, each.word, make("small", { textContent: each.tag })))));
  },
  forecast(panel, shown, found, past) {
    shown.textContent = found.map((value) => Number(value.toPrecision(5))).join("  ");
    const before = past.slice(-4 * found.length);
    panel.append(chart([["past", before.map((y, x) => [x, y])], ["", found.map((y, x) => [x + before.length, y])]], "grey: the end of what came, blue: the forecast"));
  },
  other(panel, shown, found) { shown.textContent = typeof found === "string" ? found : JSON.stringify(found); },
};

function force(panel, words, one, before, word, choices, between = " ") {
  panel.querySelector(".force")?.remove();
  const go = (piece) => ask((before && between ? `${before}${piece.startsWith(" ") ? "" : between}${piece}` : before + piece).trimStart(), one);
  const own = make("input", { type: "text", dir: "auto", ariaLabel: "Another word" });
  own.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && own.value) { event.preventDefault(); go((between ? "" : " ") + own.value.trim()); }
  });
  const box = make("div", { className: "force" }, make("p", { className: "hint", textContent: `Instead of “${word.trim()}”:` }),
    make("div", { className: "row" }, ...choices.filter((each) => each.piece !== "</s>").slice(0, 10).map((each) => {
      const button = make("button", { type: "button", textContent: `${each.piece.trim() || "␣"} ${percent(each.prob)}` });
      button.addEventListener("click", () => go(each.piece));
      return button;
    }), own));
  words.after(box);
  own.focus();
}

function tree(done) {
  const box = make("div", { className: "tree" });
  const times = [...new Set(done.tree.map((one) => one.time))];
  for (const time of times)
    box.append(make("div", { className: "step" }, make("div", { className: "hint", textContent: String(time) }),
      ...done.tree.filter((one) => one.time === time).map((one) => make("div", {
        className: `candidate ${one.fate}${one.best ? " best" : ""}`,
        textContent: one.piece, title: `rank ${one.rank + 1}, ${one.fate}, log-probability ${one.logp}, score ${one.score}, from ${one.parent + 1}` }))));
  return make("details", {}, make("summary", { textContent: "Search tree" }),
    make("p", { className: "hint", textContent: "Each column is a step, the best on top; faint ones were pruned, green ones ended, bold words are those of the answer." }), box);
}

function inside(one) {
  const where = `/inspect?run=${encodeURIComponent(one.name)}&text=${encodeURIComponent(at("text").value)}`;
  return make("p", {}, make("a", { href: where, target: "_blank", rel: "noopener", textContent: "Look inside: gates, gradients, heads" }));
}

// ---------------------------------------------------------------- curves

function chart(lines, caption) {
  const all = lines.flatMap(([, points]) => points);
  const xs = all.map((p) => p[0]), ys = all.map((p) => p[1]);
  const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 100 40");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", caption);
  for (const [name, points] of lines) {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("class", name);
    path.setAttribute("d", points.map(([x, y], n) => `${n ? "L" : "M"}${2 + (96 * (x - left)) / (right - left || 1)} ${38 - (36 * (y - low)) / (high - low || 1)}`).join(""));
    svg.append(path);
  }
  return make("figure", {}, svg, make("figcaption", { textContent: `${caption}: ${low.toPrecision(4)} to ${high.toPrecision(4)}` }));
}

async function draw_curves() {
  const some = chosen();
  const found = await Promise.all(some.map(async (one) => (await fetch(`/api/curves?run=${encodeURIComponent(one.name)}`)).json()));
  const charts = found.flatMap((each) => Object.entries(each.curves).filter(([, points]) => points.length > 1)
    .map(([name, points]) => chart([["", points]], `${each.run}, ${name}, now ${points.at(-1)[1].toPrecision(4)} at update ${points.at(-1)[0]}`)));
  at("training").hidden = !charts.length;
  at("curves").replaceChildren(...charts);
}

at("ask").addEventListener("submit", (event) => { event.preventDefault(); ask(); });
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); ask(); }
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && asking) asking.abort(); });
at("stop").addEventListener("click", () => asking && asking.abort());
at("first").addEventListener("change", choose);
at("second").addEventListener("change", choose);
setInterval(() => { if (chosen().some((one) => !one.ready)) list(); else if (!document.hidden) draw_curves(); }, 5000);
list().then(() => say(`${runs.length} run${runs.length === 1 ? "" : "s"}`), () => say("the server does not answer", true));
