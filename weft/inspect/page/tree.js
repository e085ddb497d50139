// A beam search: a column for each step, a box for each candidate, lines to parents. Read next: choices.js.
weft.blocks.tree = (box, data) => {
  const count = data.time.length, steps = Math.max(...data.time), ranks = Math.max(...data.rank) + 1;
  const wide = 104, high = 34, top = 26;
  let now = steps, lit = 0, playing = null, at = -1;
  const slots = new Map();
  for (let n = 0; n < count; n++) if (data.slot[n] >= 0) slots.set(data.time[n] + ':' + data.slot[n], n);
  const parent = n => slots.get((data.time[n] - 1) + ':' + data.parent[n]);
  const colours = {pruned: '--faint', kept: '--c0', finished: '--c2', stopped: '--c1', cut: '--c3'};

  const list = weft.element('div', {class: 'hyps', role: 'group', 'aria-label': 'hypotheses'});
  data.hypotheses.forEach((one, n) => list.append(weft.element('button', {'aria-pressed': n === 0, onclick: () => { lit = n; show(); }},
    `${n + 1}. `, weft.element('bdi', {}, one.text), weft.element('small', {}, `score ${weft.number(one.score)}, log-probability ${weft.number(one.logp)}`))));
  const slider = weft.element('input', {type: 'range', min: 1, max: steps, value: steps, 'aria-label': 'step', oninput: event => { now = Number(event.target.value); show(true); }});
  const said = weft.element('span', {class: 'note', style: 'margin:0'});
  const play = weft.element('button', {onclick: () => {
    if (playing) { clearInterval(playing); playing = null; play.textContent = 'Play'; return; }
    if (now >= steps) now = 0;
    play.textContent = 'Stop';
    const go = () => { now += 1; show(true); if (now >= steps) { clearInterval(playing); playing = null; play.textContent = 'Play'; } };
    playing = setInterval(go, 500);
    go();
  }}, 'Play');
  box.append(list, weft.element('div', {class: 'bar'}, play, weft.element('label', {}, 'step', slider), said));
  const legend = weft.element('div', {class: 'legend'});
  const scroll = weft.element('div', {class: 'scroll', tabindex: 0, 'aria-label': 'search tree, arrow keys move through the candidates'});
  box.append(legend, scroll);

  const svg = weft.svg('svg', {width: steps * wide + 10, height: top + ranks * high + 8, role: 'img', style: 'max-width:none', 'aria-label': `search tree of ${steps} steps and ${count} candidates`});
  const edges = weft.svg('g'), boxes = weft.svg('g');
  svg.append(edges, boxes);
  scroll.append(svg);
  const x = n => (data.time[n] - 1) * wide + 8, y = n => top + data.rank[n] * high;
  const drawn = [];
  const told = n => `${data.pieces[data.token[n]]}\nstep ${data.time[n]}, rank ${data.rank[n] + 1}: ${data.fates[data.fate[n]]}\nlog-probability ${weft.number(data.logp[n])} (${(100 * Math.exp(data.logp[n])).toFixed(1)} %)\ncumulative ${weft.number(data.cumulative[n])}\nnormalised ${weft.number(data.score[n])}`;
  for (let time = 1; time <= steps; time++) svg.append(weft.svg('text', {x: (time - 1) * wide + 48, y: 15, 'text-anchor': 'middle', class: 'faint'}, time));
  for (let n = 0; n < count; n++) {
    const from = parent(n);
    let edge = null;
    if (from !== undefined) {
      const [a, b] = [x(from) + 80, y(from) + 12], [c, d] = [x(n), y(n) + 12];
      edge = weft.svg('path', {d: `M${a},${b}C${a + 14},${b} ${c - 14},${d} ${c},${d}`, fill: 'none'});
      edges.append(edge);
    }
    const node = weft.svg('g', {transform: `translate(${x(n)},${y(n)})`});
    const frame = weft.svg('rect', {width: 80, height: 24, rx: 5});
    const text = weft.svg('text', {x: 40, y: 16.5, 'text-anchor': 'middle'}, data.labels[data.token[n]]);
    node.append(frame, text);
    node.addEventListener('mousemove', event => weft.tip(event, told(n)));
    node.addEventListener('mouseleave', event => weft.tip(event));
    boxes.append(node);
    drawn.push({node, frame, text, edge, fate: data.fates[data.fate[n]]});
  }
  const show = follow => {
    const path = new Set(data.paths[lit] || []);
    slider.value = now;
    const here = drawn.filter((_, n) => data.time[n] === now);
    said.textContent = now ? `${now} of ${steps}: ` + Object.entries(here.reduce((sum, one) => ({...sum, [one.fate]: (sum[one.fate] || 0) + 1}), {})).map(([name, n]) => `${n} ${name}`).join(', ') : '';
    [...list.children].forEach((one, n) => one.setAttribute('aria-pressed', n === lit));
    drawn.forEach((one, n) => {
      const on = path.has(n), colour = weft.css(colours[one.fate]);
      const seen = data.time[n] <= now;
      one.node.setAttribute('visibility', seen ? 'visible' : 'hidden');
      one.node.setAttribute('opacity', one.fate === 'pruned' && !on ? 0.75 : 1);
      one.frame.setAttribute('fill', on ? colour : weft.css('--panel'));
      one.frame.setAttribute('stroke', colour);
      one.frame.setAttribute('stroke-width', on ? 2 : 1);
      one.text.style.fill = on ? weft.css('--ground') : weft.css('--ink');
      if (one.edge) {
        one.edge.setAttribute('visibility', seen ? 'visible' : 'hidden');
        one.edge.setAttribute('stroke', on ? weft.css('--c0') : weft.css('--faint'));
        one.edge.setAttribute('opacity', on ? 1 : 0.8);
        one.edge.setAttribute('stroke-dasharray', one.fate === 'pruned' && !on ? '1.5 3' : 'none');
        one.edge.setAttribute('stroke-width', on ? 2.5 : 1);
        if (on) edges.append(one.edge);
      }
    });
    legend.replaceChildren(...[...new Set(drawn.map(one => one.fate))].map(name => weft.element('span', {}, weft.element('i', {style: `border-color:${weft.css(colours[name])}`}), name)));
    if (follow) scroll.scrollLeft = (now + 1) * wide - scroll.clientWidth;
  };
  // Arrow keys move between candidates: up and down in a step, to the parent, and to the next step.
  const closest = (time, rank) => drawn.map((_, n) => n).filter(n => data.time[n] === time)
    .sort((a, b) => Math.abs(data.rank[a] - rank) - Math.abs(data.rank[b] - rank))[0];
  const walk = {
    ArrowUp: n => closest(data.time[n], data.rank[n] - 1), ArrowDown: n => closest(data.time[n], data.rank[n] + 1),
    ArrowLeft: n => parent(n) ?? closest(data.time[n] - 1, data.rank[n]), ArrowRight: n => closest(data.time[n] + 1, data.rank[n])};
  scroll.addEventListener('keydown', event => {
    if (!walk[event.key]) return;
    event.preventDefault();
    const next = at < 0 ? closest(1, 0) : walk[event.key](at);
    if (next === undefined) return;
    at = next;
    if (data.time[at] > now) { now = data.time[at]; show(); }
    const {node} = drawn[at];
    node.scrollIntoView({block: 'nearest', inline: 'nearest'});
    const place = node.getBoundingClientRect();
    weft.tip({clientX: place.right, clientY: place.bottom}, told(at));
    drawn.forEach((one, n) => one.frame.setAttribute('stroke-dasharray', n === at ? '4 2' : ''));
  });
  scroll.addEventListener('blur', event => { weft.tip(event); drawn.forEach(one => one.frame.removeAttribute('stroke-dasharray')); });
  weft.redraw(() => show());
};
