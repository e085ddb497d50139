// How an answer is shown: words with their attention, bars of probabilities, tags and charts. Read next: page.js.

export function make(name, from = {}, ...inside) {
  const node = Object.assign(document.createElement(name), from);
  node.append(...inside);
  return node;
}

const shape = (name, from, text) => {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(from)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
};
const percent = (prob) => `${(100 * prob).toFixed(1)} %`;
const tint = (node, weight) => { node.style.backgroundColor = weight ? `rgb(var(--hue) / ${Math.min(0.75, weight).toFixed(3)})` : ''; };
const plain = (piece) => piece.replace(/▁/g, ' ');

// Rows of a name, a bar and a number.
export function bars(rows, shown = percent) {
  return rows.map(([name, value]) => make('div', { className: 'bar' }, make('span', { textContent: name, dir: 'auto' }), make('meter', { min: 0, max: 1, value: Math.max(0, value) }), make('span', { textContent: shown(value) })));
}

// A text piece by piece; a piece that is pointed at, or focused, shows where the model looked.
function pointed(found) {
  const source = found.source.map((piece) => make('span', { className: 'word', textContent: plain(piece) }));
  const target = found.pieces.map((piece, at) => {
    const button = make('button', { type: 'button', className: 'word', textContent: plain(piece), title: piece });
    const look = (on) => source.forEach((node, place) => tint(node, on ? found.attention[at][place] : 0));
    for (const name of ['mouseenter', 'focus', 'click']) button.addEventListener(name, () => { look(true); tint(button, 0.3); });
    for (const name of ['mouseleave', 'blur']) button.addEventListener(name, () => { look(false); tint(button, 0); });
    return button;
  });
  return { target, source };
}

function grid(found) {
  const head = make('tr', {}, make('td'), ...found.source.map((piece) => make('th', { textContent: piece })));
  const body = found.attention.map((row, place) => make('tr', {}, make('th', { textContent: found.pieces[place] }), ...Array.from(row, (weight, column) => {
    const box = make('td', { title: `${found.pieces[place]} – ${found.source[column]}: ${weight.toFixed(2)}` });
    tint(box, weight);
    return box;
  })));
  return make('div', { className: 'scroll' }, make('table', {}, make('thead', {}, head), make('tbody', {}, ...body)));
}

const opened = (summary, ...inside) => make('details', {}, make('summary', { textContent: summary }), ...inside);
const hint = (text) => make('p', { className: 'quiet', textContent: text });

// A chart of the past of a series and of its forecast, with a legend.
export function chart(past, values, name = '') {
  const box = { width: 640, height: 260, left: 56, right: 12, top: 26, bottom: 24 }, kept = past.slice(-4 * values.length), all = [...kept, ...values].filter(Number.isFinite);
  let low = Math.min(...all), high = Math.max(...all);
  if (high === low) { low -= 1; high += 1; }
  const x = (at) => box.left + ((box.width - box.left - box.right) * at) / Math.max(1, kept.length + values.length - 1), y = (value) => box.height - box.bottom - ((box.height - box.top - box.bottom) * (value - low)) / (high - low);
  const path = (points) => points.map(([at, value], n) => (Number.isFinite(value) ? `${n && Number.isFinite(points[n - 1][1]) ? 'L' : 'M'}${x(at).toFixed(1)} ${y(value).toFixed(1)}` : '')).join('');
  const svg = shape('svg', { viewBox: `0 0 ${box.width} ${box.height}`, role: 'img', 'aria-label': `${name} past and forecast` });
  for (let n = 0; n <= 4; n++) {
    const value = low + ((high - low) * n) / 4;
    svg.append(shape('line', { x1: box.left, x2: box.width - box.right, y1: y(value), y2: y(value) }), shape('text', { x: box.left - 6, y: y(value) + 4, 'text-anchor': 'end' }, String(Number(value.toPrecision(4)))));
  }
  svg.append(shape('path', { class: 'past', d: path(kept.map((value, at) => [at, value])) }));
  const last = kept.length && Number.isFinite(kept.at(-1)) ? [[kept.length - 1, kept.at(-1)]] : [];
  svg.append(shape('path', { d: path([...last, ...values.map((value, at) => [kept.length + at, value])]) }));
  svg.append(shape('path', { class: 'past', d: `M${box.left} 12h24` }), shape('text', { x: box.left + 30, y: 16 }, `${name ? `${name}: ` : ''}past`));
  svg.append(shape('path', { d: `M${box.left + 230} 12h24` }), shape('text', { x: box.left + 260, y: 16 }, `forecast, ${values.length} steps`));
  return svg;
}

// For each kind what to put into the answer and below it.
export const SHOWN = {
  rewrite(found) {
    const others = found.hypotheses.slice(1), below = others.length ? [opened(`${others.length} other answers`, make('ol', { start: 2 }, ...others.map((one) => make('li', { textContent: one.text, dir: 'auto' }))))] : [];
    if (found.lacks.length) below.unshift(hint(`The answer lacks ${found.lacks.slice(0, 10).join(' ')} of your text; correct it.`));
    if (found.adds.length) below.unshift(hint(`The answer has ${found.adds.slice(0, 10).join(' ')}, which your text lacks; correct it.`));
    if (!found.attention) return { answer: [found.text], below };
    const { target, source } = pointed(found);
    return { answer: [found.text], below: [make('p', { className: 'pieces', dir: 'auto' }, ...target), make('p', { className: 'pieces quiet', dir: 'auto' }, ...source), hint('Point at a piece of the answer to see where the model looked.'), opened('All of the attention', hint('Rows: pieces that the model wrote. Columns: pieces of your text.'), grid(found)), ...below] };
  },
  continue: (found, model, given) => {
    const next = model.next(found.text);
    return { answer: [given, make('span', { className: 'added', textContent: found.text.slice(given.length) })], below: [opened('What could follow', ...bars(next.pieces.slice(0, 12).map((piece, at) => [piece, next.probs[at]])))] };
  },
  classifier: (found) => ({ answer: [make('strong', { textContent: found.text || '(none)' }), ...bars(found.probs.slice(0, 12).map(({ label, prob }) => [label, prob]))] }),
  tagger: (found) => ({ answer: found.words.map(({ word, tag, prob }) => make('span', { className: 'tagged', title: prob === undefined ? '' : percent(prob) }, word, make('small', { textContent: tag }))) }),
  filler: (found) => ({ answer: [found.text], below: found.gaps.flatMap((gap, at) => [make('h2', { textContent: `Gap ${at + 1}` }), ...bars(gap.map(({ piece, prob }) => [piece, prob]))]) }),
  contexts: (found) => (found.cosines ? { answer: bars(found.cosines.map((value, layer) => [`layer ${layer}`, value]), (value) => value.toFixed(4)) } : { answer: [found.text] }),
  forecaster: (found) => ({ answer: [found.text], below: found.values.length ? [chart(found.past, found.values)] : [] }),
  tables: (found) => ({ answer: [found.text], below: found.series.slice(0, 20).map((one) => chart(one.past, one.values, one.name)) }),
};
SHOWN.pictures = SHOWN.classifier;
SHOWN.captions = SHOWN.recordings = (found) => ({ answer: [found.text] });
