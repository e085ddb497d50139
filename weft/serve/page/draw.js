"use strict";
// Draws an answer on the page, with one function per task. Read next: edits.js.

const tint = (node, weight) => { node.style.backgroundColor = weight ? `rgb(var(--look) / ${Math.min(0.5, 0.6 * weight)})` : ""; };
const percent = (prob) => `${(100 * prob).toFixed(1)} %`;

const DRAW = {
  translate(panel, shown, done, one) {
    if (done.sentences) {
      sentences(panel, done.sentences);
      panel.append(...done.notes.map(hint));
      return;
    }
    shown.hidden = true;
    const source = make("div", { className: "words source", dir: "auto" },
      ...done.source.map((word) => make("span", { className: "word", textContent: word })));
    const words = make("div", { className: "words target", dir: "auto" });
    done.words.forEach((word, number) => {
      const node = button(word, () => force(panel, words, one, done.words.slice(0, number).join(" "), word, " ", lookers(done, number)), { className: "word" });
      if (done.copied && done.copied[number] > 0.5) {
        node.classList.add("copied");
        node.title = `${percent(done.copied[number])} of its probability was copied from the source`;
      }
      const look = (on) => {
        node.classList.toggle("on", on);
        [...source.children].forEach((other, place) => {
          const weight = on && done.weights.length ? done.weights[number][place] : 0;
          tint(other, weight);
          other.title = on && done.weights.length ? percent(weight) : "";
        });
      };
      node.onmouseenter = node.onfocus = () => look(true);
      node.onmouseleave = node.onblur = () => look(false);
      words.append(node);
    });
    const [looks, click] = matchMedia("(hover: none)").matches ? ["Tap a word to see its attention", "Tap"]
      : ["Hover over a word to see its attention", "Click"];
    const note = done.weights.length ? `${looks} (${done.shown}); ${click.toLowerCase()} it to replace it.`
      : `This model has no attention to show. ${click} a word to replace it.`;
    const copies = done.copied ? " Words with a dotted line were copied from the source." : "";
    words.addEventListener("keydown", walk);
    panel.append(words, source, hint(note + copies));
    const others = make("ol", { className: "others" }, ...done.others.map((other) =>
      make("li", { dir: "auto" }, other.text, make("span", { className: "hint", textContent: `  ${other.score.toFixed(3)}` }))));
    panel.append(make("details", {}, make("summary", { textContent: `The ${done.others.length} best answers` }), others));
    if (done.text !== done.words.join(" ")) panel.append(make("p", { dir: "auto", textContent: `With what is kept of the text: ${done.text}` }));
    panel.append(...done.notes.map(hint));
    if (done.terms.length) panel.append(hint(`Required terms: ${done.terms.join(", ")}.`));
    if (done.tree.length) panel.append(tree(done));
  },
  language(panel, shown, done, one) {
    shown.hidden = true;
    const words = make("div", { className: "words prose target", dir: "auto" });
    whole_words(done.steps).forEach((word) => {
      const node = button(word.text.replaceAll("\n", "⏎"), () => force(panel, words, one, word.before, word.text, ""), { className: "word", title: percent(word.prob) });
      tint(node, (1 - word.prob) * 0.5);
      words.append(node, ...(word.text.includes("\n") ? [make("br")] : []));
    });
    words.addEventListener("keydown", walk);
    if (!done.steps.length) words.append("(the line ends here)");
    panel.append(words, hint("Darker words were less expected. Click a word to see the alternatives."));
  },
  classify(panel, shown, done, one) {
    const most = Math.max(...done.weights[0], 1e-9);
    shown.hidden = false;
    const words = make("div", { className: "words source", dir: "auto" }, ...done.source.map((word, number) => {
      const node = make("span", { className: "word", textContent: word, title: percent(done.weights[0][number]) });
      tint(node, (0.7 * done.weights[0][number]) / most);
      return node;
    }));
    panel.append(words, hint(`Weight of each word: ${done.shown}.`));
    bars(panel, Object.entries(done.probs));
  },
  tag(panel, shown, found) {
    shown.hidden = true;
    panel.append(make("div", { className: "words target", dir: "auto" }, ...found.map((each) =>
      make("span", { className: "word", title: percent(each.prob) }, each.word, make("small", { textContent: each.tag })))));
  },
  forecast(panel, shown, found, one, past) {
    const numbers = make("p", { textContent: found.map((value) => Number(value.toPrecision(5))).join("  ") });
    shown.textContent = found.length > 24 ? "" : numbers.textContent;
    shown.hidden = !shown.textContent;
    const before = past.slice(-4 * found.length);
    const last = before.length ? [[before.length - 1, before.at(-1)]] : [];
    panel.append(chart([["past", before.map((y, x) => [x, y]), "past"], ["", [...last, ...found.map((y, x) => [x + before.length, y])], "forecast"]],
      `the last ${before.length} of the given numbers, and the forecast of ${found.length}`, "steps"));
    if (shown.hidden) panel.append(make("details", {}, make("summary", { textContent: `The ${found.length} numbers` }), numbers));
  },
  masked(panel, shown, found, one) {
    shown.textContent = found.text;
    found.gaps.forEach((gap, number) => {
      panel.append(make("h3", { textContent: `Gap ${number + 1}` }));
      bars(panel, gap.map((each) => [each.piece, each.prob]));
    });
  },
  embeddings(panel, shown, found, one) {
    shown.textContent = found.map((each) => each.word).join("  ");
    bars(panel, found.map((each) => [each.word, each.cosine]), (cosine) => cosine.toFixed(3));
  },
  elmo(panel, shown, found, one) {
    if (found.cosines) {
      shown.textContent = `${found.word}: similarity in the two sentences, layer by layer`;
      bars(panel, found.cosines.map((cosine, layer) => [`layer ${layer}`, cosine]), (cosine) => cosine.toFixed(3));
    } else shown.textContent = `${found.words.length} words, each with a vector of ${found.vectors[0].length} numbers`;
  },
  draw(panel, shown, found, one) {
    shown.hidden = true;
    panel.append(make("img", { className: "picture", src: found, alt: at("text").value }));
  },
  images(panel, shown, found, one, file) {
    shown.textContent = `${found.label} (${percent(found.prob)})`;
    panel.append(make("img", { className: "picture", src: file, alt: "the picture you sent" }));
    bars(panel, Object.entries(found.probs));
  },
  caption(panel, shown, found, one, file) {
    shown.textContent = found.text;
    panel.append(make("img", { className: "picture", src: file, alt: "the picture you sent" }));
  },
  speech(panel, shown, found, one, file) {
    shown.textContent = found.text;
    panel.append(make("audio", { controls: true, src: file }));
  },
  other(panel, shown, found) { shown.textContent = typeof found === "string" ? found : JSON.stringify(found); },
};

DRAW.multilingual = DRAW.summarise = DRAW.translate;

function sentences(panel, pairs) {
  const list = make("ol", { className: "others sentences" }, ...pairs.map(([source, text]) => make("li", {},
    button(text || "(empty)", () => { at("text").value = source; ask(); }, { className: "word", title: source, dir: "auto" }))));
  panel.append(hint("Each sentence was translated by itself. Click one to see its attention and its search."), list);
}

function bars(panel, rows, said = percent) {
  for (const [label, value] of rows.slice(0, 12))
    panel.append(make("div", { className: "bar" }, make("span", { textContent: label, dir: "auto" }),
      make("meter", { value: Math.max(0, value), max: 1 }), make("span", { textContent: said(value) })));
}

// Arrow keys move from word to word.
function walk(event) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const words = [...event.currentTarget.querySelectorAll(".word")];
  const next = step && words.at(Math.max(0, words.indexOf(document.activeElement) + step));
  if (next) { event.preventDefault(); next.focus(); }
}

// The pieces of a continuation as words, each with its probability and the text before it.
function whole_words(pieces) {
  const words = [];
  let before = "";
  for (const { piece, prob } of pieces) {
    const last = words.at(-1);
    if (!last || /^\s/.test(piece) || last.text.endsWith("\n")) words.push({ text: piece, prob, before });
    else { last.text += piece; last.prob *= prob; }
    before += piece;
  }
  return words;
}

async function alternatives(one, prefix) {
  const came = await request("/api/words", json({ ...await question(one), ...wanted(one), prefix }));
  const found = await came.json();
  say(found.error || "", !came.ok);
  return found.words || [];
}

// A box to replace a word by a likely one or one's own; `between` stands between words.
async function force(panel, words, one, before, word, between = " ", looks = []) {
  say("searching words …");
  const found = await alternatives(one, before);
  if (!words.isConnected) return;
  panel.querySelector(".force")?.remove();
  const go = (next) => ask((before ? `${before}${between}${next}` : next).trimStart(), one);
  const own = make("input", { type: "text", dir: "auto", ariaLabel: "Another word" });
  own.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && own.value) { event.preventDefault(); go((between ? "" : " ") + own.value.trim()); }
  });
  const likely = found.filter((each) => each.text.trim() !== word.trim())
    .map((each) => button(`${each.text.trim()} ${percent(each.prob)}`, () => go(each.text)));
  const box = make("div", { className: "force" }, hint(`Instead of “${word.trim()}”:`), make("div", { className: "row" }, ...likely, own));
  if (looks.length) box.append(hint("or move its attention to:"), make("div", { className: "row looks" },
    ...looks.map(({ name, steps }) => button(name, () => look_at(one, word, name, steps, before)))));
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { event.stopPropagation(); box.remove(); words.querySelector("button")?.focus(); }
  });
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
    hint("Each column is a step, with the best candidate on top. Faint ones were pruned, green ones are finished, bold ones are in the answer."), box);
}

// The page of `weft inspect` for this input: a link for a text, a form for a file.
function inside(one, asked) {
  const words = { target: "_blank", rel: "noopener" }, said = "Look inside";
  if (!READS_FILES[one.task]) {
    const about = new URLSearchParams({ run: one.name });
    if (one.task !== "forecast") about.set("text", asked.text ?? asked.inputs);
    if (asked.target) about.set("target", asked.target);
    return make("p", {}, make("a", { ...words, href: `/inspect?${about}`,
      textContent: one.task === "forecast" ? "Look inside, on the newest rows of the run's own series" : said }));
  }
  const form = make("form", { ...words, method: "post", action: "/inspect", enctype: "multipart/form-data" });
  for (const [name, value] of Object.entries(asked)) form.append(make("input", { type: "hidden", name, value }));
  form.append(make("button", { type: "submit", className: "link", textContent: said }));
  return form;
}
