// Positions: the sinusoidal table for a length, a width and a base, and the angles by which rotary positions turn.
live.part('positions', (() => {
  const { make, shape, number, slider, say } = live;
  const speeds = (width, base) => Array.from({ length: width / 2 }, (_, i) => base ** (-2 * i / width));

  // The vector of a position: sine and cosine of each wave, side by side.
  const sinusoid = (position, width, base) => speeds(width, base).flatMap((speed) => [Math.sin(position * speed), Math.cos(position * speed)]);

  // A query or key turned to its position: each pair of features by its own angle.
  const turned = (x, position, base) => speeds(x.length, base).flatMap((speed, i) => {
    const [a, b, cos, sin] = [x[2 * i], x[2 * i + 1], Math.cos(position * speed), Math.sin(position * speed)];
    return [a * cos - b * sin, a * sin + b * cos];
  });

  function energy(query, key, t, s, base) {
    const [a, b] = [turned(query, t, base), turned(key, s, base)];
    return a.reduce((sum, one, n) => sum + one * b[n], 0) / Math.sqrt(query.length);
  }

  function table(root) {
    const now = { length: 32, width: 32, power: 4, t: 3, i: 4 }, canvas = make('canvas', { role: 'img' }), told = make('p', { 'aria-live': 'polite', className: 'live-told' }), curve = make('div');
    const base = () => 10 ** now.power;
    const show = () => {
      const { length, width, t, i } = now, cell = 8, pen = canvas.getContext('2d');
      canvas.width = width * cell;
      canvas.height = length * cell;
      canvas.style.width = '100%';
      canvas.style.height = `${Math.min(20, Math.max(6, length * 0.4))}rem`;
      canvas.setAttribute('aria-label', say('Table of {0} positions, from top to bottom, and {1} features, from left to right; blue is 1, orange is −1', length, width));
      const rows = Array.from({ length }, (_, row) => sinusoid(row, width, base()));
      rows.forEach((row, y) => row.forEach((value, x) => { pen.fillStyle = `rgb(${live.signed(value)})`; pen.fillRect(x * cell, y * cell, cell, cell); }));
      pen.strokeStyle = getComputedStyle(canvas).color;
      pen.lineWidth = 1.5;
      pen.strokeRect(0.75, t * cell + 0.75, width * cell - 1.5, cell - 1.5);
      pen.lineWidth = 3;
      pen.strokeRect(i * cell - 1.5, t * cell - 1.5, cell + 3, cell + 3);
      const speed = speeds(width, base())[Math.floor(i / 2)], name = i % 2 ? 'cos' : 'sin';
      told.textContent = say('Position {0}, feature {1}: {2} = {3}. One wave of this feature is {4} positions long.', t, i, `${name}(${t} · ${live.local(speed, { minimumSignificantDigits: 3, maximumSignificantDigits: 3 })})`, number(rows[t][i], 3), live.local(2 * Math.PI / speed, { maximumSignificantDigits: 3 }));
      curve.replaceChildren(likeness(rows, t));
    };
    const change = (key) => (value) => { now[key] = value; fit(); show(); };
    const sliders = {
      length: slider(say('positions'), { min: 4, max: 64, value: now.length }, change('length')),
      width: slider(say('width D'), { min: 4, max: 64, step: 4, value: now.width }, change('width')),
      power: slider(say('base n'), { min: 1, max: 5, value: now.power, shown: (value) => live.local(10 ** value) }, change('power')),
      t: slider(say('position t'), { min: 0, max: 31, value: now.t }, change('t')),
      i: slider(say('feature'), { min: 0, max: 31, value: now.i }, change('i')),
    };
    const fit = () => {
      now.t = Math.min(now.t, now.length - 1);
      now.i = Math.min(now.i, now.width - 1);
      sliders.t.limit(now.length - 1);
      sliders.i.limit(now.width - 1);
      sliders.t.set(now.t);
      sliders.i.set(now.i);
    };
    canvas.addEventListener('click', (event) => {
      const box = canvas.getBoundingClientRect();
      now.t = Math.min(now.length - 1, Math.floor(((event.clientY - box.top) / box.height) * now.length));
      now.i = Math.min(now.width - 1, Math.floor(((event.clientX - box.left) / box.width) * now.width));
      fit();
      show();
    });
    const left = make('div', {}, canvas, make('p', { className: 'live-quiet', textContent: say('One row for each position, one column for each feature; blue is 1, orange is −1.') }));
    root.append(make('div', { className: 'live-columns' }, left, make('div', {}, ...Object.values(sliders), told, curve)));
    live.onTheme(show);
    show();
  }

  // How similar the vector of position t is to that of each other position: dot product over D/2.
  function likeness(rows, t) {
    const values = rows.map((row) => row.reduce((sum, one, n) => sum + one * rows[t][n], 0) / (row.length / 2)), x = (at) => 30 + (at * 260) / (rows.length - 1), y = (value) => 55 - 45 * value;
    const marks = [-1, 0, 1].flatMap((value) => [shape('line', { class: 'faint', x1: 30, x2: 290, y1: y(value), y2: y(value) }), shape('text', { x: 25, y: y(value) + 4, 'text-anchor': 'end', 'font-size': 11 }, number(value, 0))]);
    const line = shape('path', { d: values.map((value, at) => `${at ? 'L' : 'M'}${x(at)} ${y(value)}`).join(''), stroke: 'var(--live-1)', 'stroke-width': 2, fill: 'none' });
    const caption = shape('text', { x: 160, y: 120, 'text-anchor': 'middle', 'font-size': 11 }, say('similarity of position {0} to each position', t));
    return shape('svg', { viewBox: '0 0 300 124', role: 'img', 'aria-label': say('similarity of position {0} to each position', t) }, ...marks, line, shape('circle', { cx: x(t), cy: y(1), r: 4, fill: 'var(--live-1)' }), caption);
  }

  function rotary(root) {
    const now = { t: 3, s: 5, pairs: 4 }, found = make('div'), told = make('p', { 'aria-live': 'polite', className: 'live-energy' });
    const unit = () => Array.from({ length: 2 * now.pairs }, (_, n) => (n % 2 ? 0 : 1));
    const hand = (angle, colour, dashed) => shape('line', { x1: 0, y1: 0, x2: Math.cos(angle), y2: -Math.sin(angle), stroke: `var(${colour})`, 'stroke-width': 0.1, 'stroke-linecap': 'round', ...(dashed ? { 'stroke-dasharray': '0.2 0.16' } : {}) });
    const show = () => {
      const all = speeds(2 * now.pairs, 10000);
      found.className = 'live-dials';
      found.replaceChildren(...all.map((speed, i) => make('figure', {}, shape('svg', { viewBox: '-1.15 -1.15 2.3 2.3', role: 'img', 'aria-label': say('pair {0}: query at {1} radians, key at {2}', i, number(now.t * speed, 3), number(now.s * speed, 3)) }, shape('circle', { r: 1.05, class: 'faint', 'stroke-width': 0.04 }), hand(now.t * speed, '--live-1'), hand(now.s * speed, '--live-2', true)), make('figcaption', { textContent: say('pair {0}: {1} each', i, live.local(speed, { maximumSignificantDigits: 2 })) }))));
      told.textContent = say('Energy of query at {0} and key at {1}, distance {2}: {3}', now.t, now.s, now.s - now.t, number(energy(unit(), unit(), now.t, now.s, 10000), 4));
    };
    const set = (key) => (value) => { now[key] = value; show(); };
    const t = slider(say('query at t'), { min: 0, max: 60, value: now.t }, set('t')), s = slider(say('key at s'), { min: 0, max: 60, value: now.s }, set('s'));
    const pairs = slider(say('pairs'), { min: 1, max: 8, value: now.pairs }, set('pairs'));
    const shift = (by) => () => {
      if (now.t + by < 0 || now.s + by < 0 || now.t + by > 60 || now.s + by > 60) return;
      now.t += by;
      now.s += by;
      t.set(now.t);
      s.set(now.s);
      show();
    };
    root.append(make('h4', { textContent: say('Rotary: angles instead of additions') }), make('p', { textContent: say('Each pair of features is a hand of a clock that turns with the position: the query’s solid, the key’s dashed. Query and key are (1, 0) in every pair, so only the angles differ.') }), t, s, pairs, make('div', { className: 'live-row' }, live.button(say('Both one back'), shift(-1)), live.button(say('Both one further'), shift(1))), told, found);
    show();
  }

  return { sinusoid, turned, energy, mount(root) { table(root); rotary(root); } };
})());
