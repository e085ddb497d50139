// Line charts, linear or logarithmic; hovering shows the values of all lines. Read next: tree.js.
weft.ticks = (low, high, log) => {
  if (log) {
    const from = Math.ceil(Math.log10(low) - 1e-9), to = Math.floor(Math.log10(high) + 1e-9), found = [];
    for (let n = from; n <= to; n += Math.max(1, Math.ceil((to - from) / 6))) found.push(10 ** n);
    if (found.length > 2) return found;
    const fine = [from - 1, from, from + 1, to].flatMap(n => [1, 2, 5].map(m => m * 10 ** n)).filter(n => n >= low * 0.999 && n <= high * 1.001);
    return fine.length > 1 ? [...new Set(fine)] : [low, high];
  }
  const rough = (high - low) / 5 || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(n => n * power).find(n => n >= rough);
  const found = [];
  for (let n = Math.ceil(low / step - 1e-9) * step; n <= high + 1e-9 * step; n += step) found.push(Math.abs(n) < 1e-9 * step ? 0 : n);
  return found;
};

// Dates: seconds since 1970 at round steps, shown as days or times.
weft.dates = (low, high) => {
  const steps = [1, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, ...[1, 2, 7, 14, 30, 91, 182, 365, 730, 1826, 3652, 7305, 18262].map(days => days * 86400)];
  const step = steps.find(one => (high - low) / one <= 6) || (high - low) / 5, found = [];
  for (let x = Math.ceil(low / step) * step; x <= high; x += step) found.push(x);
  return found;
};
weft.moment = x => new Date(x * 1000).toISOString().slice(0, 19).replace('T', ' ').replace(' 00:00:00', '').replace(/:00$/, '');
weft.date = (x, span) => {
  const text = new Date(x * 1000).toISOString();
  return span > 5 * 86400 ? text.slice(0, 10) : text.slice(5, 16).replace('T', ' ');
};

weft.blocks.lines = (box, data) => {
  const outer = weft.element('figure', {style: 'margin:10px 0 4px'});
  box.append(outer);
  const short = value => Math.abs(value) >= 1e5 || (value !== 0 && Math.abs(value) < 1e-3) ? Number(value.toPrecision(6)).toExponential() : String(Number(value.toPrecision(6)));
  const bands = data.bands || [];
  const colour = (one, number) => one.colour === undefined ? weft.line(number) : one.colour < 0 ? weft.css('--ink') : weft.line(one.colour);
  const draw = () => {
    const width = Math.max(280, Math.min(1680, box.clientWidth || 800)), labelled = data.labels.length > 0;
    const tall = labelled ? Math.min(84, 12 + 5.6 * Math.max(...data.labels.map(name => name.length))) : 22;
    const left = 58, right = 20, top = 8, inner = 230, height = top + inner + tall + (data.x ? 18 : 0);
    const sides = bands.flatMap(one => [{x: one.x, y: one.low}, {x: one.x, y: one.high}]);
    const points = [...data.series, ...sides].flatMap(one => one.x.map((x, n) => [x, one.y[n]])).filter(([x, y]) => y !== null && x !== null && (!data.log || y > 0));
    outer.replaceChildren();
    if (data.title) outer.append(weft.element('h3', {}, data.title));
    if (!points.length) { outer.append(weft.element('p', {class: 'note'}, 'Every value is zero.')); return; }
    let [x0, x1] = [Math.min(...points.map(p => p[0])), Math.max(...points.map(p => p[0]))];
    let [y0, y1] = [Math.min(...points.map(p => p[1])), Math.max(...points.map(p => p[1]))];
    if (data.top) y1 = Math.min(y1, data.top);
    if (data.log) { y0 = Math.max(y0, y1 * 1e-12); if (y0 === y1) { y0 /= 3; y1 *= 3; } }
    else { const room = (y1 - y0 || Math.abs(y1) || 1) * 0.06; y0 -= room; y1 += room; }
    if (x0 === x1) { x0 -= 0.5; x1 += 0.5; }
    const whole = points.every(p => Number.isInteger(p[0])); // updates and lags: no tick between two of them
    if (labelled) { x0 -= 0.4; x1 += 0.4; }
    const up = data.log ? Math.log : n => n;
    const px = x => left + (x - x0) / (x1 - x0) * (width - left - right);
    const py = y => top + inner - (up(Math.max(y, y0)) - up(y0)) / (up(y1) - up(y0)) * inner;
    const svg = weft.svg('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', tabindex: 0,
      'aria-label': `${data.title || data.y}; arrow keys move along the chart`});
    weft.ticks(y0, y1, data.log).forEach(y => {
      svg.append(weft.svg('line', {x1: left, x2: width - right, y1: py(y), y2: py(y), stroke: weft.css('--line')}));
      svg.append(weft.svg('text', {x: left - 7, y: py(y) + 4, 'text-anchor': 'end', class: 'faint'}, short(y)));
    });
    if (labelled) {
      const every = Math.max(1, Math.ceil(13 * data.labels.length / (width - left - right)));
      data.labels.forEach((name, n) => {
        if (n % every) return;
        const shown = name.length > 14 ? name.slice(0, 13) + '…' : name;
        svg.append(weft.svg('text', {transform: `translate(${px(n) + 4},${top + inner + 12}) rotate(-55)`, 'text-anchor': 'end'}, shown));
      });
    } else (data.dates ? weft.dates(x0, x1) : weft.ticks(x0, x1, false).filter(x => !whole || Number.isInteger(x))).forEach(x => svg.append(weft.svg('text', {x: px(x), y: top + inner + 16, 'text-anchor': 'middle', class: 'faint'}, data.dates ? weft.date(x, x1 - x0) : short(x))));
    if (data.x) svg.append(weft.svg('text', {x: left + (width - left - right) / 2, y: height - 4, 'text-anchor': 'middle', class: 'faint'}, data.dates ? `${data.x}, ${weft.moment(x0)} to ${weft.moment(x1)}` : data.x));
    const inside = weft.svg('svg', {x: 0, y: top - 4, width, height: inner + 8, viewBox: `0 ${top - 4} ${width} ${inner + 8}`});
    svg.append(inside); // clips what leaves the chart
    for (const one of bands) {
      const up = one.x.map((x, n) => `${px(x).toFixed(1)},${py(one.high[n]).toFixed(1)}`), down = one.x.map((x, n) => `${px(x).toFixed(1)},${py(one.low[n]).toFixed(1)}`);
      inside.append(weft.svg('polygon', {points: [...up, ...down.reverse()].join(' '), fill: colour(one), 'fill-opacity': 0.2}));
    }
    data.series.forEach((one, number) => {
      let path = '', open = false;
      one.x.forEach((x, n) => {
        const y = one.y[n];
        if (y === null || (data.log && y <= 0)) { open = false; return; }
        path += `${open ? 'L' : 'M'}${px(x).toFixed(1)},${py(y).toFixed(1)}`;
        open = true;
      });
      inside.append(weft.svg('path', {d: path, fill: 'none', stroke: colour(one, number), 'stroke-width': 2, 'stroke-linejoin': 'round',
        'stroke-dasharray': one.dashed ? '5 4' : number > 5 ? '1.5 2.5' : 'none', opacity: one.faint ? 0.65 : 1}));
      if (one.x.length <= 60) one.x.forEach((x, n) => { if (one.y[n] !== null && (!data.log || one.y[n] > 0)) inside.append(weft.svg('circle', {cx: px(x), cy: py(one.y[n]), r: one.x.length === 1 ? 4 : 2.2, fill: colour(one, number)})); });
    });
    const cursor = weft.svg('line', {y1: top, y2: top + inner, stroke: weft.css('--faint'), 'stroke-dasharray': '2 3', visibility: 'hidden'});
    svg.append(cursor);
    const all = [...new Set(points.map(p => p[0]))].sort((a, b) => a - b);
    let at = all.length - 1;
    const tell = event => {
      const x = all[at];
      cursor.setAttribute('x1', px(x)); cursor.setAttribute('x2', px(x)); cursor.setAttribute('visibility', 'visible');
      const name = labelled ? `${Number(x) + 1}: ${data.labels[x] ?? ''}` : data.dates ? weft.moment(x) : `${data.x}: ${short(x)}`;
      const said = data.series.map(one => { const n = one.x.indexOf(x); return n < 0 ? null : `${one.name}: ${weft.number(one.y[n])}`; }).filter(Boolean);
      for (const one of bands) { const n = one.x.indexOf(x); if (n >= 0) said.push(`${one.name}: ${weft.number(one.low[n])} to ${weft.number(one.high[n])}`); }
      weft.tip(event, [name, ...said].join('\n'));
    };
    svg.addEventListener('mousemove', event => {
      const x = x0 + (event.clientX - svg.getBoundingClientRect().left - left) / (width - left - right) * (x1 - x0);
      at = all.reduce((best, one, n) => Math.abs(one - x) < Math.abs(all[best] - x) ? n : best, 0);
      tell(event);
    });
    svg.addEventListener('mouseleave', event => { cursor.setAttribute('visibility', 'hidden'); weft.tip(event); });
    svg.addEventListener('blur', event => { cursor.setAttribute('visibility', 'hidden'); weft.tip(event); });
    svg.addEventListener('keydown', event => {
      const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (!step) return;
      event.preventDefault();
      at = Math.min(all.length - 1, Math.max(0, at + step));
      const place = svg.getBoundingClientRect();
      tell({clientX: place.left + px(all[at]), clientY: place.top + top + 20});
    });
    outer.append(svg);
    if (data.series.length + bands.length > 1) outer.append(weft.element('div', {class: 'legend'}, ...data.series.map((one, number) => weft.element('span', {},
      weft.element('i', {style: `border-color:${colour(one, number)};border-top-style:${one.dashed ? 'dashed' : number > 5 ? 'dotted' : 'solid'}`}), one.name)),
      ...bands.map(one => weft.element('span', {}, weft.element('i', {style: `border:0;height:10px;opacity:.3;background:${colour(one)}`}), one.name))));
  };
  weft.redraw(draw);
};
