// Loads the live parts of a page when they come into view, and holds what parts share. Read next: attention.js, a small part.
//
// A part is one file, NAME.js: live.part(NAME, { mount(root), … }). `mount` fills root, an empty element; what else it gives
// are the functions that tests compare with Weft. Nothing is fetched: files of data are scripts too, because a browser
// refuses to fetch from file://.
'use strict';

globalThis.live = (() => {
  const parts = {}, loaded = new Map();
  const base = globalThis.document?.currentScript?.src ?? 'file:///';

  const given = {};

  // A text in the language of the page, with {0}, {1}, … replaced by values; English where it has no translation.
  const words = JSON.parse(globalThis.document?.getElementById('live-catalog')?.textContent ?? '{}');
  const say = (text, ...values) => (words[text] ?? text).replace(/\{(\d)\}/g, (_, at) => values[at]);

  // What models/NAME.js gives.
  async function data(name) {
    if (!(name in given)) await script(name === 'weft' ? 'weft.js' : `models/${name}.js`);
    return given[name];
  }

  // A module of the program that runs exported models: weft/export/page.
  const runtime = async (name) => (await data('weft'))[name];

  // An exported model, ready to answer.
  async function model(name) {
    const [{ load }, text] = [await runtime('weft.js'), await data(name)];
    return load(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)));
  }

  // A script beside this one, once.
  function script(name) {
    if (!loaded.has(name)) loaded.set(name, new Promise((done, failed) => {
      const node = make('script', { src: new URL(name, base).href, onload: done, onerror: () => failed(new Error(say('{0} could not be loaded', name))) });
      document.head.append(node);
    }));
    return loaded.get(name);
  }

  // ---------------------------------------------------------------- elements
  function fill(node, from, inside) {
    for (const [key, value] of Object.entries(from)) {
      if (key in node && !node.ownerSVGElement && node.namespaceURI.endsWith('xhtml')) node[key] = value; else node.setAttribute(key, value);
    }
    node.append(...inside);
    return node;
  }

  const make = (name, from = {}, ...inside) => fill(document.createElement(name), from, inside);
  const shape = (name, from = {}, ...inside) => fill(document.createElementNS('http://www.w3.org/2000/svg', name), from, inside);

  // Numbers in the language of the page: 10,000.5 in English, 10 000,5 in the others.
  function local(value, digits = {}) {
    if (!Number.isFinite(value)) return String(value);
    const language = globalThis.document?.documentElement.lang || 'en', english = language === 'en';
    const parts = new Intl.NumberFormat(language, { useGrouping: english || 'min2', ...digits }).formatToParts(value);
    return parts.map((one) => (one.type === 'group' && !english ? '\u202f' : one.value)).join('').replace('-', '−').replace(/^−(0([.,]0*)?)$/, '$1');
  }
  const number = (value, digits = 2) => local(value, { minimumFractionDigits: digits, maximumFractionDigits: digits });

  // A slider; its label is in the language of the page. Its value is `.value`; `set` moves it without calling `change`.
  function slider(label, { min, max, step = 1, value, shown = local }, change) {
    const input = make('input', { type: 'range', min, max, step }), output = make('output'), node = make('label', { className: 'live-slider' }, make('span', { textContent: label }), input, output);
    const show = () => { output.textContent = shown(Number(input.value)); input.setAttribute('aria-valuetext', output.textContent); };
    input.value = value;
    input.addEventListener('input', () => { show(); change(Number(input.value)); });
    show();
    return Object.assign(node, { set(given) { input.value = given; show(); }, limit(most) { input.max = most; show(); }, get value() { return Number(input.value); } });
  }

  // One of several: [[value, text]]. The chosen value is `.value`.
  function choice(label, options, value, change) {
    const name = `live-${Math.random().toString(36).slice(2)}`, node = make('fieldset', { className: 'live-choice' }, make('legend', { textContent: label }));
    for (const [own, text] of options) {
      const input = make('input', { type: 'radio', name, checked: own === value });
      input.addEventListener('change', () => { node.chosen = own; change(own); });
      node.append(make('label', {}, input, make('span', { textContent: text })));
    }
    node.chosen = value;
    return node;
  }

  // Says that it computes, in a place of its own, while it does.
  async function computing(node, work) {
    node.textContent = say('computing …');
    await new Promise((done) => setTimeout(done, 20)); // so that the words are drawn
    try { return await work(); } finally { node.textContent = ''; }
  }

  const button = (text, press) => { const node = make('button', { type: 'button', className: 'live-button', textContent: text }); node.addEventListener('click', press); return node; };

  // Rows of a name, a bar and a number; a value is a share of `most`.
  function bars(rows, most = 1) {
    return make('table', { className: 'live-bars' }, make('tbody', {}, ...rows.map(([name, value, shown, colour]) => {
      const bar = make('i');
      bar.style.width = `${Math.max(0, Math.min(1, value / most)) * 100}%`;
      if (colour) bar.style.background = colour;
      return make('tr', {}, make('th', { scope: 'row' }, name), make('td', { className: 'live-bar' }, bar), make('td', {}, shown ?? number(value)));
    })));
  }

  // Walks through groups of steps, [[title, [step]]], by buttons or arrow keys; `change` gets the places of the group and the step.
  function walk(groups, change) {
    const places = groups.flatMap(([, steps], group) => steps.map((_, step) => [group, step])), titles = make('div', { className: 'live-row' }), steps = make('div', { className: 'live-row' });
    let at = 0;
    const go = (to) => {
      at = Math.max(0, Math.min(places.length - 1, to));
      const [group, step] = places[at], focused = [titles, steps].map((row) => row.contains(document.activeElement));
      const row = (node, names, current, press) => node.replaceChildren(...names.map((name, n) => Object.assign(button(name, () => press(n)), { ariaCurrent: n === current ? 'step' : null })));
      row(titles, groups.map(([title]) => title), group, (n) => go(places.findIndex(([one]) => one === n) + (groups[n][1].length === groups[group][1].length ? step : 0)));
      row(steps, groups[group][1], step, (n) => go(at + n - step));
      [group, step].forEach((n, line) => { if (focused[line]) [titles, steps][line].children[n].focus(); });
      steps.scrollLeft = steps.children[step].offsetLeft - steps.offsetLeft - 60;
      told.textContent = say('step {0} of {1}', at + 1, places.length);
      back.disabled = !at;
      next.disabled = at === places.length - 1;
      change(group, step);
    };
    const back = button(say('◀ Back'), () => go(at - 1)), next = button(say('Next ▶'), () => go(at + 1)), told = make('span', { className: 'live-quiet' });
    const node = make('div', { className: 'live-walk', role: 'group', ariaLabel: say('Steps') }, titles, steps, make('div', { className: 'live-row' }, back, next, told));
    node.addEventListener('keydown', (event) => {
      const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (way) { event.preventDefault(); go(at + way); }
    });
    return Object.assign(node, { begin: () => go(0) });
  }

  // A matrix as colours, with a name for each row; with `columns`, names of columns, its numbers too. A cell is picked by a pointer or
  // by arrow keys: `pick` gets its row and column. `mark` shows which one is picked.
  function matrix({ label, rows, columns, values, digits = 2, wide: long, most = Math.max(...values.flat().filter(Number.isFinite).map(Math.abs)) || 1 }, pick) {
    const wide = values[0].length, shown = (value, column) => (value === -Infinity ? '−∞' : number(value, digits[column] ?? digits));
    const cells = make('div', { className: 'live-cells', role: 'slider', tabIndex: 0, ariaLabel: label, ariaValueNow: 0 }), marker = make('i'), now = [0, 0];
    if (columns) {
      cells.append(...values.flat().map((value, n) => { const one = make('span', { textContent: shown(value, n % wide) }); tint(one, Number.isFinite(value) ? value / most : 0); return one; }));
    } else {
      const canvas = make('canvas', { width: wide, height: values.length, ariaLabel: label }), image = new ImageData(wide, values.length);
      values.flat().forEach((value, n) => image.data.set([...signed(value / most), 255], 4 * n));
      canvas.getContext('2d').putImageData(image, 0, 0);
      cells.append(canvas);
    }
    cells.append(marker);
    cells.style.setProperty('--columns', wide);
    const choose = (row, column) => pick(Math.max(0, Math.min(values.length - 1, row)), Math.max(0, Math.min(wide - 1, column)));
    const point = ({ clientX, clientY }) => { const box = cells.getBoundingClientRect(); choose(Math.floor((clientY - box.top) / box.height * values.length), Math.floor((clientX - box.left) / box.width * wide)); };
    cells.addEventListener('click', point);
    cells.addEventListener('pointermove', (event) => { if (event.pointerType === 'mouse') point(event); });
    cells.addEventListener('keydown', (event) => {
      const way = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      if (way) { event.preventDefault(); choose(now[0] + way[0], now[1] + way[1]); }
    });
    const names = (list, kind) => make('div', { className: kind }, ...list.map((textContent) => make('span', { textContent, title: textContent })));
    const node = make('div', { className: `live-matrix ${columns ? 'live-numbers' : wide <= 24 ? 'live-small' : ''} ${long ? 'live-long' : ''}` }, make('b', { textContent: label }), make('div', { className: 'live-scroll' }, ...(columns?.some(Boolean) ? [names(columns, 'live-top')] : []), names(rows, 'live-side'), cells));
    return Object.assign(node, {
      mark(row, column, active) {
        now.splice(0, 2, Math.min(values.length - 1, row), Math.min(wide - 1, column));
        marker.style.cssText = `left:${100 * now[1] / wide}%;top:${100 * now[0] / values.length}%;width:${100 / wide}%;height:${100 / values.length}%`;
        node.classList.toggle('live-active', active);
        [...node.querySelector('.live-side').children].forEach((one, n) => one.classList.toggle('live-at', n === now[0]));
        cells.setAttribute('aria-valuenow', now[1] + 1);
        cells.setAttribute('aria-valuetext', `${rows[now[0]]}, ${columns?.[now[1]] ?? now[1] + 1}: ${shown(values[now[0]][now[1]], now[1])}`);
      },
    });
  }

  // A sum of products as one can follow it: the largest, the rest as one number, and all of them on demand.
  // `pairs` are two factors and their name; `plus` is added, with its name.
  function products(pairs, plus = []) {
    const own = (value) => (value < 0 ? `(${number(value, 3)})` : number(value, 3)), times = ([a, b]) => `${own(a)} · ${own(b)}`, order = [...pairs].sort((a, b) => Math.abs(b[0] * b[1]) - Math.abs(a[0] * a[1]));
    const top = order.slice(0, order.length > 5 ? 4 : 5), rest = order.slice(top.length), all = [...top.map(times), ...(rest.length ? [say('{0} (the other {1} products)', own(rest.reduce((sum, [a, b]) => sum + a * b, 0)), rest.length)] : []), ...plus.map(([value, name]) => `${own(value)} (${name})`)];
    return { text: all.join(' + '), more: rest.length ? pairs.map(([a, b, name], n) => `${name ?? n + 1}: ${times([a, b])} = ${number(a * b, 3)}`) : [] };
  }

  // A chart of lines with a legend. Points outside the range of y are cut.
  function lines({ label, x, y, ticks, axes, series, shown = local }) {
    const narrow = innerWidth < 600, [width, height, left, right, top, bottom] = narrow ? [350, 320, 58, 12, 18 * series.length + 8, 42] : [560, 300, 58, 12, 26, 42];
    const px = (value) => left + ((value - x[0]) / (x[1] - x[0])) * (width - left - right), py = (value) => height - bottom - ((Math.max(y[0], Math.min(y[1], value)) - y[0]) / (y[1] - y[0])) * (height - top - bottom);
    const svg = shape('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label, class: 'live-lines' }), text = (at, content, anchor = 'middle') => shape('text', { x: at[0], y: at[1], 'text-anchor': anchor, 'font-size': 14 }, content);
    for (const value of ticks.y) svg.append(shape('path', { class: 'faint', d: `M${left} ${py(value)}H${width - right}` }), text([left - 6, py(value) + 5], shown(value), 'end'));
    for (const value of ticks.x) svg.append(shape('path', { class: 'axis', d: `M${px(value)} ${height - bottom}v4` }), text([px(value), height - bottom + 19], String(value)));
    svg.append(shape('path', { class: 'axis', d: `M${left} ${height - bottom}H${width - right}` }), text([(left + width) / 2, height - 4], axes[0]));
    if (axes[1]) svg.append(text([left, 42], axes[1], 'start'));
    series.forEach(({ name, colour, dashes, points }, n) => {
      const style = { stroke: `var(${colour})`, 'stroke-width': 2.5, fill: 'none', ...(dashes ? { 'stroke-dasharray': dashes } : {}) }, from = narrow ? left : left + n * ((width - left) / series.length), level = narrow ? 11 + 18 * n : 11;
      svg.append(shape('path', { ...style, d: points.map((point, at) => `${at ? 'L' : 'M'}${px(point[0]).toFixed(1)} ${py(point[1]).toFixed(1)}`).join('') }));
      svg.append(shape('path', { ...style, d: `M${from} ${level}h26` }), text([from + 31, level + 5], name, 'start'));
    });
    return svg;
  }

  // Signs stand by themselves, as in training.
  const spaced = (text) => text.replace(/[^\w\s'-]/g, ' $& ').replace(/\s+/g, ' ').trim();

  // ---------------------------------------------------------------- colours
  const ANCHORS = { // weft/figures/colours.py
    light: [[168, 72, 18], [250, 186, 128], [255, 255, 255], [122, 182, 224], [12, 66, 132]],
    dark: [[255, 190, 130], [176, 88, 30], [24, 29, 38], [38, 98, 164], [150, 205, 255]],
  };
  const dark = () => document.documentElement.dataset.theme === 'dark';

  // Orange for -1 through the page's background for 0 to blue for 1: [r, g, b].
  function signed(value) {
    const anchors = ANCHORS[dark() ? 'dark' : 'light'], at = (Math.max(-1, Math.min(1, value || 0)) + 1) * 2, low = Math.min(3, Math.floor(at)), part = at - low;
    return anchors[low].map((one, n) => Math.round(one + part * (anchors[low + 1][n] - one)));
  }

  // Colours an element, with letters that can be read on it.
  function tint(node, value) {
    const [r, g, b] = signed(value), bright = 0.299 * r + 0.587 * g + 0.114 * b;
    node.style.backgroundColor = `rgb(${r} ${g} ${b})`;
    node.style.color = bright > 140 ? '#111' : '#fff';
  }

  // Calls a function again whenever the page changes between light and dark.
  const onTheme = (draw) => new MutationObserver(draw).observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });

  // ---------------------------------------------------------------- mathematics
  function softmax(values) {
    const most = Math.max(...values), all = values.map((value) => Math.exp(value - most)), sum = all.reduce((a, b) => a + b, 0);
    return all.map((value) => value / sum);
  }

  // Random numbers in 0..1 that a seed determines (mulberry32).
  const random = (seed) => () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };

  // ---------------------------------------------------------------- a model that opens
  const dot = (a, b) => a.reduce((sum, one, n) => sum + one * b[n], 0);
  const table = ({ data, dims }) => Array.from({ length: dims.at(-2) }, (_, row) => [...data.subarray(row * dims.at(-1), (row + 1) * dims.at(-1))]);

  // A linear map: `from` has a row of weights for each feature that comes out.
  const linear = (rows, { from, bias }) => rows.map((row) => from.map((weights, n) => dot(weights, row) + (bias?.[n] ?? 0)));

  // Views for `opened`: a matrix of which `explain(row, column)` says how a number is computed; `keys` name the place that is picked.
  const signs = (value) => (value < 0 ? `(${number(value, 3)})` : number(value, 3));
  const view = (label, values, explain, about = {}) => ({ label, values, explain, keys: ['word', about.columns ? 'read' : `f${values[0].length}`], ...about });
  const plain = (label, values, about) => view(label, values, () => ({ text: '' }), about);
  const summed = (row, from, plus) => products(row.map((one, n) => [one, from[n]]), plus);
  const mapping = (label, rows, values, { from, bias }, { first = 0, ...about } = {}) => view(label, values, (at, n) => summed(rows[at], from[first + n], bias && [[bias[first + n], 'b']]), about);

  // Buttons of which one is chosen: `press` gets its place.
  function chips(node, texts, press) {
    node.replaceChildren(...texts.map((textContent, at) => { const one = make('button', { type: 'button', textContent }); one.addEventListener('click', () => press(at)); return one; }));
  }

  // A model step by step: `groups` as in `walk`, each step [name, (content) => [sentence, views]], and what `content()` gives them, with
  // `rows`, the names of rows. `now` holds the picked places; `begin(group)` is called where a group begins, `marked` after a choice.
  function opened(groups, now, content, begin, marked) {
    const hint = make('p'), views = make('div', { className: 'live-views' }), told = make('div', { 'aria-live': 'polite', className: 'live-sum' });
    let shown, active, found, chosen = [0, 0];

    function mark() {
      for (const one of shown) one.node.mark(now[one.keys[0]] ??= 0, now[one.keys[1]] ??= 0, one === active);
      const [row, column] = active.keys.map((key, n) => Math.min(now[key], (n ? active.values[0] : active.values).length - 1)), { text, more = [] } = active.explain(row, column), value = active.values[row][column];
      const name = [(active.rows ?? found.rows)[row], active.columns?.[column]].filter(Boolean).join(' → '), digits = active.digits?.[column] ?? active.digits ?? 3, place = active.columns ? '' : `[${column + 1}]`;
      const all = more.length ? [make('details', {}, make('summary', { textContent: say('All {0} products', more.length) }), make('p', { textContent: more.join('; ') }))] : [];
      told.replaceChildren(make('p', {}, make('b', { textContent: name && `${name}: ` }), `${active.label.split(' = ')[0]}${place} = ${[text, value === -Infinity ? '−∞' : number(value, digits)].filter(Boolean).join(' = ')}`), ...all);
      marked();
    }

    function draw() {
      found = content();
      if (!found) return;
      [hint.textContent, shown] = groups[chosen[0]][1][chosen[1]][1](found);
      for (const one of shown) one.node = matrix({ rows: found.rows, ...one }, (row, column) => { active = one; now[one.keys[0]] = row; now[one.keys[1]] = column; mark(); });
      active = shown.at(-1);
      views.replaceChildren(...shown.map(({ node }) => node));
      mark();
    }

    const steps = walk(groups.map(([title, all]) => [title, all.map(([name]) => name)]), (group, step) => {
      const other = group !== chosen[0];
      chosen = [group, step];
      if (other) begin(group);
      draw();
    });
    onTheme(draw);
    return { steps, shown: [hint, views, told, make('p', { className: 'live-quiet', textContent: say('Point at a cell, touch it, or use Tab and the arrow keys: the calculation of its number is shown below the matrices.') })], draw };
  }

  // A part of steps alone: what `controls(draw)` gives stands above them and changes what `content()` gives.
  function stepped(root, groups, now, content, controls) {
    const { steps, shown, draw } = opened(groups, now, content, () => {}, () => now.marked?.());
    root.append(...controls(draw), steps, ...shown);
    steps.begin();
  }

  // ---------------------------------------------------------------- parts
  // What the program of a part gives, for another part that computes with it.
  async function program(name) {
    if (!(name in parts)) await script(`${name}.js`);
    return parts[name];
  }

  async function begin(place) {
    const name = place.dataset.live, still = place.querySelector('.live-still'), root = make('div', { className: 'live-stage' });
    try {
      await (await program(name)).mount(root, place);
      if (still) still.replaceWith(root); else place.querySelector('details').before(root); // a vote
      place.dataset.ready = 'yes';
    } catch (error) {
      place.append(make('p', { className: 'live-problem', role: 'alert', textContent: say('This part does not run here: {0}.', error.message) }));
    }
  }

  function watch() {
    const seen = new IntersectionObserver((entries) => entries.filter((one) => one.isIntersecting).forEach(({ target }) => {
      seen.unobserve(target);
      begin(target);
    }), { rootMargin: '300px' });
    document.querySelectorAll('.live[data-live]').forEach((place) => seen.observe(place));
  }

  if (globalThis.document) watch(); // deferred: the page has been read
  return { parts, part: (name, about) => { parts[name] = about; }, give: (name, content) => { given[name] = content; }, say, data, runtime, model, program, dot, table, linear, signs, view, plain, summed, mapping, products, chips, opened, stepped, spaced, lines, make, shape, local, number, slider, choice, button, computing, bars, signed, tint, onTheme, softmax, random };
})();
