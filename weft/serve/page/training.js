"use strict";
// The page of training curves: those of one run or of all, drawn again as they grow. Read next: curves.js.

let known = [];

async function curves() {
  const names = at("first").value ? [at("first").value] : known;
  const found = await Promise.all(names.map(async (name) => (await request(`/api/curves?run=${encodeURIComponent(name)}`)).json()));
  const sections = found.map((each) => {
    const charts = Object.entries(each.curves).filter(([, points]) => points.length > 1).map(([name, points]) =>
      chart([["", points]], `${name}: ${figure(points.at(-1)[1])} at update ${points.at(-1)[0].toLocaleString("en")}`, "updates"));
    return make("section", { className: "panel" }, make("h2", { textContent: each.run }),
      charts.length ? make("div", { className: "charts" }, ...charts) : make("p", { className: "hint", textContent: "no curves yet" }));
  });
  at("curves").replaceChildren(...sections);
}

async function begin() {
  known = (await (await request("/api/runs")).json()).map((one) => one.name);
  at("first").append(...known.map((name) => new Option(name, name)));
  const asked = decodeURIComponent(location.hash.slice(1));
  if (known.includes(asked)) at("first").value = asked;
  await curves();
  say(`${known.length} run${known.length === 1 ? "" : "s"}`);
}

at("first").addEventListener("change", curves);
setInterval(() => { if (!document.hidden) curves(); }, 5000);
begin().catch(() => say("the server does not answer", true));
