"use strict";
// What both views of the page use: elements, the line of status, names of languages. Read next: page.js; training.js.

const at = (id) => document.getElementById(id);
const make = (name, from = {}, ...inside) => {
  const { data, ...plain } = from;
  const node = Object.assign(document.createElement(name), plain);
  Object.assign(node.dataset, data || {});
  node.append(...inside);
  return node;
};

const button = (textContent, onclick, more = {}) => make("button", { type: "button", textContent, onclick, ...more });
const hint = (textContent) => make("p", { className: "hint", textContent });

const say = (text, bad = false) => {
  at("status").textContent = text;
  at("status").classList.toggle("error", bad);
};

// The name of a language with its code; only the code if the browser does not know it.
function language(code) {
  try {
    const name = new Intl.DisplayNames(["en"], { type: "language" }).of(code);
    return name && name !== code ? `${name} (${code})` : code;
  } catch { return code; }
}
