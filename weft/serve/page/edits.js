"use strict";
// Changes to a model, to see what happens: units set to zero, attention moved.
// The server changes a copy for one request. Read next: page.js, which asks.

const changes = new Map(); // by run: { drop: [[layer, unit]], looks: [[step, word]], told: [a sentence per move of attention], prefix }
const unedited = new Map(); // by request: the answer of the unchanged model

const of = (one) => changes.get(one.name) || { drop: [], looks: [], told: [], prefix: "" };

function wanted(one) {
  const { drop, looks } = of(one);
  return { ...(drop.length ? { drop } : {}), ...(looks.length ? { looks } : {}) };
}

// The answer without the changes, requested once; null if there are no changes.
async function unchanged(one, asked, signal) {
  const key = JSON.stringify(asked);
  if (of(one).looks.length && of(one).key !== key) { // they belong to another sentence
    changes.set(one.name, { ...of(one), looks: [], told: [], prefix: "", key });
  }
  if (!Object.keys(wanted(one)).length) return null;
  if (!unedited.has(key)) {
    if (unedited.size > 50) unedited.clear();
    unedited.set(key, await reply(one, asked, signal, () => {}));
  }
  return unedited.get(key);
}

function change(one, asked, next) {
  changes.set(one.name, { ...of(one), ...next, key: JSON.stringify(asked) });
  ask(of(one).looks.length ? of(one).prefix : "", one);
}

// For an output word: each source word, with the steps whose attention would move to it.
function lookers(done, number) {
  if (!done.weights.length) return [];
  const begin = done.begins[number], end = done.begins[number + 1] ?? Math.max(begin + 1, done.pieces);
  return done.source.map((name, place) => ({ name, steps: Array.from({ length: end - begin }, (_, n) => [begin + n + 1, place]) }));
}

async function look_at(one, word, name, steps, before) {
  const now = of(one), replaced = new Set(steps.map(([step]) => step));
  const looks = [...now.looks.filter(([step]) => !replaced.has(step)), ...steps];
  const told = [...now.told.filter((each) => !each.startsWith(`“${word}” `)), `“${word}” attends to “${name}”`];
  change(one, await question(one), { looks, told, prefix: before });
}

// The box below an answer: drop a unit, undo changes.
function workshop(one, asked, words) {
  const now = of(one), cells = one.cells || [];
  const box = make("details", { className: "edits", open: now.drop.length + now.looks.length > 0 },
    make("summary", { textContent: "Change the model" }));
  if (cells.length) {
    const layer = make("select", { ariaLabel: "Layer" });
    layer.append(...cells.map((cell, n) => new Option(`${cell.name}, ${cell.size} units`, n)));
    const unit = make("input", { type: "number", min: 0, max: cells[0].size - 1, value: 0, ariaLabel: "Unit" });
    layer.addEventListener("change", () => { unit.max = cells[layer.value].size - 1; });
    const go = () => {
      const number = Math.round(Number(unit.value)), size = cells[layer.value].size;
      if (!(number >= 0 && number < size)) { say(`expected a unit from 0 to ${size - 1}`, true); return; }
      const others = of(one).drop.filter(([cell, other]) => cell !== Number(layer.value) || other !== number);
      change(one, asked, { drop: [...others, [Number(layer.value), number]] });
    };
    unit.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); go(); } });
    box.append(make("div", { className: "row" }, layer, unit, button("Drop this unit", go, { className: "drop" })));
  }
  const list = make("div", { className: "row changes" });
  now.drop.forEach(([cell, number], place) => list.append(undo(`${cells[cell].name}: unit ${number} dropped`, () =>
    change(one, asked, { drop: of(one).drop.filter((_, n) => n !== place) }))));
  if (now.looks.length) list.append(undo(now.told.join(", "), () => change(one, asked, { looks: [], told: [], prefix: "" })));
  if (!cells.length && !list.children.length && !one.targets.length) return make("span");
  const click = words && (one.targets.length || one.task === "summarise") ? "Click a word of the answer to move its attention. " : "";
  box.append(list, hint(`${click}Changes apply to this page only; the run does not change.`));
  return box;
}

const undo = (text, done) => button(`${text} ×`, done, { className: "change", title: "Undo" });

// The words of an answer, to compare with those of another one.
const gist = (one, found) => ({
  tag: () => found.map((each) => `${each.word}/${each.tag}`),
  classify: () => [found.text in found.probs ? `${found.text} (${percent(found.probs[found.text])})` : found.text],
  language: () => found.text.split(/\s+/),
  forecast: () => found.map((value) => String(Number(value.toPrecision(4)))),
  images: () => [`${found.label} (${percent(found.prob)})`],
  embeddings: () => found.map((each) => each.word),
  elmo: () => (found.cosines || found.vectors.flat().slice(0, 200)).map((value) => value.toFixed(3)),
}[one.task] || (() => found.words || String(found.text ?? JSON.stringify(found)).split(/\s+/)))();

function compare(panel, one, before, after) {
  const [old, now] = [gist(one, before), gist(one, after)];
  const kept = common(old, now);
  const line = make("p", { className: "before", dir: "auto" }, "Before: ", ...old.flatMap((word, n) => [kept.old.has(n) ? word : make("del", { textContent: word }), " "]));
  const count = now.filter((_, n) => !kept.now.has(n)).length;
  const told = count ? `${count} of ${now.length} words changed` : "The answer is the same.";
  const shown = panel.querySelectorAll(".target .word");
  if (shown.length === now.length) shown.forEach((node, n) => node.classList.toggle("new", !kept.now.has(n)));
  panel.querySelector("h2").after(make("p", { className: "changed", textContent: told }), line);
}

// The longest common subsequence of two lists of words, as positions in each.
function common(old, now) {
  const best = Array.from({ length: old.length + 1 }, () => new Array(now.length + 1).fill(0));
  for (let a = old.length - 1; a >= 0; a--)
    for (let b = now.length - 1; b >= 0; b--)
      best[a][b] = old[a] === now[b] ? best[a + 1][b + 1] + 1 : Math.max(best[a + 1][b], best[a][b + 1]);
  const kept = { old: new Set(), now: new Set() };
  for (let a = 0, b = 0; a < old.length && b < now.length;) {
    if (old[a] === now[b]) { kept.old.add(a++); kept.now.add(b++); }
    else if (best[a + 1][b] >= best[a][b + 1]) a++;
    else b++;
  }
  return kept;
}
