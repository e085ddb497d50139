"use strict";
// Charts with axes: training curves and forecasts. Read next: training.js; draw.js.

const SVG = "http://www.w3.org/2000/svg";
const BOX = { width: 320, height: 180, left: 48, right: 10, top: 20, bottom: 24 };

const shape = (name, from, text) => {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(from)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
};

// Round tick values that cover all values. The range is at least a twentieth of their size, so that a nearly flat
// curve looks flat; it starts at 0 if that costs at most half of the height.
function ticks(values, count = 4) {
  let low = Math.min(...values), high = Math.max(...values);
  const least = Math.max(Math.abs(low), Math.abs(high)) / 20 || 1;
  if (high - low < least) [low, high] = [(low + high - least) / 2, (low + high + least) / 2];
  if (low > 0 && low <= high / 2) low = 0;
  const rough = (high - low) / count, unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * [1, 2, 5, 10].find((times) => times * unit >= rough * 0.999);
  const first = Math.floor(low / step + 1e-9), last = Math.ceil(high / step - 1e-9);
  return Array.from({ length: last - first + 1 }, (_, n) => Number(((first + n) * step).toPrecision(12)));
}

const figure = (value) => value !== 0 && (Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3)
  ? value.toExponential(1).replace("e+", "e") : value.toLocaleString("en", { maximumSignificantDigits: 4 });

// lines: [class, [[x, y], ...], name in the legend] each.
function chart(lines, caption, across = "") {
  const all = lines.flatMap(([, points]) => points);
  const xs = all.map((point) => point[0]), ys = ticks(all.map((point) => point[1]));
  const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), ys[0], ys.at(-1)];
  const x = (value) => BOX.left + ((BOX.width - BOX.left - BOX.right) * (value - left)) / (right - left || 1);
  const y = (value) => BOX.height - BOX.bottom - ((BOX.height - BOX.bottom - BOX.top) * (value - low)) / (high - low);
  const svg = shape("svg", { viewBox: `0 0 ${BOX.width} ${BOX.height}`, role: "img", "aria-label": caption });
  for (const value of ys)
    svg.append(shape("line", { x1: BOX.left, x2: BOX.width - BOX.right, y1: y(value), y2: y(value) }),
      shape("text", { x: BOX.left - 5, y: y(value) + 3.5, "text-anchor": "end" }, figure(value)));
  svg.append(shape("text", { x: BOX.left, y: BOX.height - 8 }, figure(left)),
    shape("text", { x: BOX.width - BOX.right, y: BOX.height - 8, "text-anchor": "end" }, figure(right)),
    shape("text", { x: (BOX.left + BOX.width - BOX.right) / 2, y: BOX.height - 8, "text-anchor": "middle" }, across));
  for (const [name, points] of lines)
    svg.append(shape("path", { class: name, d: points.map((point, n) => `${n ? "L" : "M"}${x(point[0]).toFixed(2)} ${y(point[1]).toFixed(2)}`).join("") }));
  let place = BOX.left;
  for (const [name, , said] of lines.filter((one) => one[2])) {
    svg.append(shape("path", { class: name, d: `M${place} 9h16` }), shape("text", { x: place + 20, y: 12.5 }, said));
    place += 36 + 5.5 * said.length;
  }
  return make("figure", {}, svg, make("figcaption", { textContent: caption }));
}
