"use strict";
// What translators need: languages to swap, terms, documents. Read next: page.js.

const TERMS = 64; // most terms that the server takes
let endings; // of documents that the server translates; known once a translator is shown

const translates = (one) => one && (one.directions || []).length > 0;

// The languages of the first run: its source, and a button if some run translates back.
function show_languages(some) {
  const one = some[0], pairs = (one && one.directions) || [], target = at("target").value;
  const sources = [...new Set(pairs.filter((pair) => pair[1] === target).map((pair) => pair[0]))];
  at("languages").hidden = at("terms-box").hidden = !pairs.length;
  if (pairs.length && !endings) ask_for_endings();
  at("source").textContent = sources.map(language).join(", ");
  const back = sources.map((source) => backwards(one, target, source)).find(Boolean);
  at("swap").disabled = !back;
  at("swap").title = back ? "Swap the languages" : `No run here translates ${language(target)} into ${sources.map(language).join(" or ")}`;
}

// A run and a target that translate from one language to another, the same run if it can.
function backwards(one, source, target) {
  const found = [one, ...runs].find((each) => (each.directions || []).some((pair) => pair[0] === source && pair[1] === target));
  return found && { name: found.name, target };
}

function swap() {
  const one = chosen()[0], target = at("target").value, text = one.answered;
  const back = one.directions.filter((pair) => pair[1] === target).map((pair) => backwards(one, target, pair[0])).find(Boolean);
  if (!back) return;
  at("first").value = back.name;
  choose();
  at("target").value = back.target;
  show_languages(chosen());
  if (text) { at("text").value = text; ask(); } else at("text").focus();
}

// Pairs of a term and its translation: lines with =, a tab, a semicolon or a comma between them, the first of these
// that a line has.
function pairs_of(text) {
  const plain = (side) => side.trim().replace(/^"|"$/g, "").trim();
  return text.split("\n").map((line) => {
    const mark = line.search(["=", "\t", ";", ","].find((one) => line.includes(one)) || /$/);
    return [plain(line.slice(0, mark)), plain(line.slice(mark + 1))];
  }).filter(([term, translation]) => term && translation);
}

function terms_changed() {
  const found = pairs_of(at("terms").value);
  at("terms-count").textContent = found.length ? ` (${found.length}${found.length > TERMS ? `, the first ${TERMS} count` : ""})` : "";
  try { localStorage.setItem(`terms ${at("target").value}`, at("terms").value); } catch { /* no storage */ }
}

function terms_of_language() {
  try { at("terms").value = localStorage.getItem(`terms ${at("target").value}`) || ""; } catch { /* no storage */ }
  terms_changed();
}

const terms_asked = (one) => {
  const found = translates(one) ? pairs_of(at("terms").value).slice(0, TERMS) : [];
  return found.length ? { terms: found } : {};
};

const is_document = (file, one) => translates(one) && file.name.includes(".")
  && (endings || []).includes(file.name.slice(file.name.lastIndexOf(".")).toLowerCase()) && !/\.txt$/i.test(file.name);

// Send a document and offer its translation as a download.
async function translate_document(file, one) {
  const target = one.targets.includes(at("target").value) ? at("target").value : one.targets[0];
  const source = one.directions.find((pair) => pair[1] === target)[0], panel = panel_of(one), body = new FormData();
  const told = make("p", { className: "answer draft", textContent: `${file.name}: translating …` });
  panel.append(told);
  for (const [name, value] of [["file", file], ["source", source], ["target", target]]) body.append(name, value);
  say("translating the document …");
  const came = await request("/translate_file", { method: "POST", body }), found = await came.json();
  told.className = came.ok ? "answer" : "error";
  told.textContent = came.ok ? "" : found.error;
  say(came.ok ? "translated" : "no answer", !came.ok);
  if (!came.ok) return;
  const dot = file.name.lastIndexOf("."), name = `${file.name.slice(0, dot)}.${target}${file.name.slice(dot)}`;
  told.append(make("a", { href: new URL(found.translatedFileUrl, location.href).pathname, download: name, textContent: `Download ${name}` }));
  panel.append(...(found.notes || []).map(hint));
  told.firstChild.focus();
}

// The text that a file holds, in UTF-8 or in UTF-16 with a byte order mark; null if it is no text.
function text_in(content) {
  const [first, second] = new Uint8Array(content), kind = first === 255 && second === 254 ? "utf-16le" : first === 254 && second === 255 ? "utf-16be" : "utf-8";
  try {
    const text = new TextDecoder(kind, { fatal: true }).decode(content);
    return text.includes("\0") ? null : text;
  } catch { return null; }
}

async function take(file, onto) {
  if (!file) return;
  if (at("terms-box").contains(onto)) { at("terms").value = (await file.text()).trim(); terms_changed(); return; }
  at("filename").textContent = file.name;
  const one = chosen()[0];
  at("nothing").hidden = true;
  if (is_document(file, one)) { at("panels").replaceChildren(); await translate_document(file, one); return; }
  dropped = file;
  if (chosen().some((each) => READS_FILES[each.task])) { ask(); return; }
  const text = text_in(await file.arrayBuffer());
  if (text === null) {
    at("panels").replaceChildren();
    panel_of(one).append(make("p", { className: "error", textContent: `${file.name}: expected a text in UTF-8 or UTF-16, got other data; save it as UTF-8` }));
    say("no answer", true);
    return;
  }
  at("text").value = text.trim();
  ask();
}

function listen_for_files() {
  document.addEventListener("dragover", (event) => { event.preventDefault(); at("given").classList.add("over"); });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) at("given").classList.remove("over"); });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    at("given").classList.remove("over");
    take(event.dataTransfer.files[0], event.target);
  });
  at("swap").addEventListener("click", swap);
  at("terms").addEventListener("input", terms_changed);
  at("target").addEventListener("change", () => { show_languages(chosen()); terms_of_language(); });
}

function ask_for_endings() {
  endings = [];
  request("/frontend/settings").then((came) => came.json()).then((found) => { endings = found.supportedFilesFormat || []; }).catch(() => {});
}
