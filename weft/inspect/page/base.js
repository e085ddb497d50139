// Shared by all renderers: elements, colours, tooltips, packed matrices. Read next: matrices.js.
'use strict';
const weft = {blocks: {}};

weft.element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
};

weft.svg = (name, attributes = {}, text) => {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
};

weft.number = value => {
  if (value === null || value === undefined) return '–';
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 100000)) return value.toExponential(2);
  return size >= 100 ? value.toFixed(1) : size >= 10 ? value.toFixed(2) : value.toFixed(3);
};

weft.unpack = packed => {
  const bytes = Uint8Array.from(atob(packed.data), letter => letter.charCodeAt(0));
  const whole = packed.bits === 16 ? new Uint16Array(bytes.buffer) : bytes;
  const scale = (packed.high - packed.low) / (2 ** packed.bits - 1);
  return {rows: packed.shape[0], columns: packed.shape[1], values: Float32Array.from(whole, n => packed.low + n * scale)};
};

weft.dark = matchMedia('(prefers-color-scheme: dark)');
weft.css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
weft.line = number => weft.css('--c' + number % 6);

// Colours of a number between two: `palette` comes from weft/figures/colours.py, so pictures use the same.
weft.scales = palette;
weft.colour = (value, low, high) => {
  const scale = weft.scales[weft.dark.matches ? 'dark' : 'light'][low < 0 ? 'two' : 'one'];
  const share = Math.min(1, Math.max(0, (value - low) / (high - low || 1))) * (scale.length - 1);
  const at = Math.min(scale.length - 2, Math.floor(share)), rest = share - at;
  return scale[at].map((from, n) => Math.round(from + (scale[at + 1][n] - from) * rest));
};
weft.contrast = ([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b > 128 ? '#10151c' : '#ffffff';

// A colour scale with numbers, or words, at its ends and in the middle.
weft.scale = (low, high, said) => {
  const ends = said || [low, (low + high) / 2, high].map(value => Number(value.toPrecision(3)));
  const steps = [...Array(33).keys()].map(n => `rgb(${weft.colour(low + (high - low) * n / 32, low, high)})`);
  return weft.element('div', {class: 'scale', role: 'img', 'aria-label': `colour scale from ${ends.join(' to ')}`},
    weft.element('i', {style: `background:linear-gradient(to right,${steps})`}), weft.element('div', {}, ...ends.map(one => weft.element('span', {}, one))));
};

weft.tip = (event, text) => {
  const tip = document.getElementById('tip');
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const box = tip.getBoundingClientRect();
  const x = Math.min(event.clientX + 14, innerWidth - box.width - 8), y = event.clientY + 18;
  tip.style.left = Math.max(4, x) + 'px';
  tip.style.top = (y + box.height > innerHeight ? event.clientY - box.height - 12 : y) + 'px';
};

weft.choose = (label, names, change) => {
  const list = weft.element('select', {onchange: event => change(Number(event.target.value)), 'aria-label': label});
  names.forEach((name, n) => list.append(weft.element('option', {value: n}, name)));
  const box = weft.element('label', {}, label, list);
  if (names.length < 2) box.hidden = true;
  box.pick = n => { list.value = n; };
  return box;
};

weft.download = (name, text, type = 'text/plain') => {
  const link = weft.element('a', {href: URL.createObjectURL(new Blob([text], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};

// Redrawn when the colour scheme or the window size changes.
weft.redraw = draw => {
  let timer;
  const later = () => { clearTimeout(timer); timer = setTimeout(draw, 60); };
  weft.dark.addEventListener('change', later);
  addEventListener('resize', later);
  draw();
};

weft.blocks.text = (box, data) => box.append(weft.element('p', {dir: 'auto'}, data.text));
weft.blocks.heading = (box, data) => box.append(weft.element('h3', {}, data.text));

weft.blocks.table = (box, data) => {
  const head = weft.element('tr', {}, ...data.head.map(name => weft.element('th', {scope: 'col'}, name)));
  const rows = data.rows.map(row => weft.element('tr', {}, ...row.map(cell => {
    const best = typeof cell === 'object' && cell !== null;
    return weft.element('td', {dir: 'auto', ...(best ? {class: 'best'} : {})}, String(best ? cell.best : cell ?? ''));
  })));
  const table = weft.element('table', {}, weft.element('thead', {}, head), weft.element('tbody', {}, ...rows));
  box.append(weft.element('div', {class: 'scroll', tabindex: 0}, table));
};

weft.blocks.export = (box, data) => {
  const last = box.lastElementChild;
  const bar = last && last.classList.contains('exports') ? last : box.appendChild(weft.element('div', {class: 'bar exports'}));
  bar.append(weft.element('button', {onclick: () => weft.download(data.name, data.text)}, 'Save ' + data.label));
};

weft.blocks.words = (box, data) => {
  const line = weft.element('p', {class: 'words', dir: 'auto'});
  const scale = weft.element('div');
  const top = data.top || Math.max(...data.weights, 1e-9);
  weft.redraw(() => {
    line.replaceChildren(...data.words.flatMap((word, n) => {
      const colour = weft.colour(data.weights[n], 0, top);
      const part = weft.element('span', {tabindex: 0, style: `background:rgb(${colour});color:${weft.contrast(colour)}`,
        onmousemove: event => weft.tip(event, `${word}\n${(100 * data.weights[n]).toFixed(1)} %`), onmouseleave: event => weft.tip(event)}, word);
      return [part, ' '];
    }));
    scale.replaceChildren(weft.scale(0, top, [0, top / 2, top].map(value => `${Number((100 * value).toPrecision(3))} %`)));
  });
  box.append(line, scale);
};
