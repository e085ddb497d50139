"use strict";
// The page of training curves, those of one run or of all, drawn again as they grow; and which page is shown.
// Read next: curves.js.

let known = [];

async function curves() {
  const names = at("which").value ? [at("which").value] : known;
  const found = await Promise.all(names.map(async (name) => (await request(`/api/curves?run=${encodeURIComponent(name)}`)).json()));
  const sections = found.map((each) => {
    const charts = Object.entries(each.curves).filter(([, points]) => points.length > 1).map(([name, points]) =>
      chart([["", points]], `${name}: ${figure(points.at(-1)[1])} at update ${points.at(-1)[0].toLocaleString("en")}`, "updates"));
    return make("section", { className: "panel" }, make("h2", { textContent: each.run }),
      charts.length ? make("div", { className: "charts" }, ...charts) : hint("no curves yet"));
  });
  at("curves").replaceChildren(...sections);
}

async function begin_training() {
  document.title = "Training – Weft";
  at("training").hidden = false;
  known = (await (await request("/api/runs")).json()).map((one) => one.name);
  at("which").append(...known.map((name) => new Option(name, name)));
  const asked = decodeURIComponent(location.hash.slice(1));
  if (known.includes(asked)) at("which").value = asked;
  setInterval(() => { if (!document.hidden) curves(); }, 5000);
  await curves();
  return known;
}

at("which").addEventListener("change", curves);
const here = location.pathname === "/training.html";
document.querySelector(`nav a[href="${here ? "/training.html" : "/"}"]`).ariaCurrent = "page";
(here ? begin_training() : begin()).then(
  (found) => say(`${found.length} run${found.length === 1 ? "" : "s"}`), () => say("the server does not answer", true));
