// Attention by hand: a query and keys in the plane, their weights and the context; and what scaling does in more dimensions.
live.part('attention', (() => {
  const { make, shape, number, softmax, say } = live, EDGE = 3, NAMES = ['q', 'h₁', 'h₂', 'h₃'], COLOURS = ['--live-1', '--live-2', '--live-3', '--live-5'];
  const dot = (a, b) => a.reduce((sum, one, n) => sum + one * b[n], 0);

  // Energies, weights and context of a query over states that are keys and values.
  function attend(query, states, scaled) {
    const energies = states.map((state) => dot(query, state) / (scaled ? Math.sqrt(query.length) : 1)), weights = softmax(energies);
    return { energies, weights, context: query.map((_, n) => weights.reduce((sum, weight, j) => sum + weight * states[j][n], 0)) };
  }

  // A query and some keys of independent features with mean 0 and variance 1 (Box and Muller).
  function drawn(seed, size, keys) {
    const chance = live.random(seed), normal = () => Math.sqrt(-2 * Math.log(1 - chance())) * Math.cos(2 * Math.PI * chance());
    const [query, ...others] = Array.from({ length: keys + 1 }, () => Array.from({ length: size }, normal));
    return { query, keys: others };
  }

  // An arrow from the origin to a point; the plane's second axis points up.
  function arrow(colour, dashed) {
    const line = shape('line', { stroke: `var(${colour})`, 'stroke-width': 0.07, ...(dashed ? { 'stroke-dasharray': '0.16 0.1' } : {}) }), tip = shape('path', { fill: `var(${colour})` }), label = shape('text', { 'font-size': 0.32, 'font-weight': 600 });
    const place = ([x, y], text) => {
      const size = Math.hypot(x, y) || 1, [ux, uy] = [x / size, -y / size];
      for (const [key, value] of Object.entries({ x1: 0, y1: 0, x2: x, y2: -y })) line.setAttribute(key, value);
      tip.setAttribute('d', `M${x} ${-y}L${x - 0.26 * ux + 0.11 * uy} ${-y - 0.26 * uy - 0.11 * ux}L${x - 0.26 * ux - 0.11 * uy} ${-y - 0.26 * uy + 0.11 * ux}Z`);
      label.setAttribute('x', x + 0.28 * ux - (ux < -0.3 ? 0.3 : 0));
      label.setAttribute('y', -y + 0.3 * uy + 0.1);
      label.textContent = text;
    };
    return { nodes: [line, tip, label], place };
  }

  // A point that is dragged, or moved by the arrow keys.
  function handle(svg, name, point, colour, moved) {
    const drawn = arrow(colour), ring = shape('circle', { r: 0.5, fill: 'transparent' }), dotted = shape('circle', { r: 0.13, fill: `var(${colour})` });
    const node = shape('g', { class: 'live-handle', tabindex: 0, role: 'slider', 'aria-roledescription': say('point in the plane'), 'aria-label': name === 'q' ? say('query') : say('state {0}', name), 'aria-valuenow': 0 }, ...drawn.nodes, dotted, ring);
    const clip = (value) => Math.max(-EDGE, Math.min(EDGE, Math.round(value * 20) / 20));
    const show = () => {
      for (const each of [ring, dotted]) { each.setAttribute('cx', point[0]); each.setAttribute('cy', -point[1]); }
      node.setAttribute('aria-valuenow', point[0]);
      node.setAttribute('aria-valuetext', say('{0}, {1}', number(point[0]), number(point[1])));
      drawn.place(point, name);
    };
    const move = (x, y) => { point[0] = clip(x); point[1] = clip(y); show(); moved(); };
    node.addEventListener('pointerdown', (event) => { node.setPointerCapture(event.pointerId); node.focus({ preventScroll: true }); event.preventDefault(); });
    node.addEventListener('pointermove', (event) => {
      if (!node.hasPointerCapture(event.pointerId)) return;
      const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
      move(view.x + ((event.clientX - box.left) / box.width) * view.width, -(view.y + ((event.clientY - box.top) / box.height) * view.height));
    });
    node.addEventListener('keydown', (event) => {
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key], by = event.shiftKey ? 0.5 : 0.1;
      if (!way) return;
      event.preventDefault();
      move(point[0] + by * way[0], point[1] + by * way[1]);
    });
    show();
    return node;
  }

  function plane(root) {
    const points = [[1, 0], [2, 0], [0, 2], [1, 1]], svg = shape('svg', { viewBox: '-3.3 -3.3 6.6 6.6', role: 'group', 'aria-label': say('The plane: query, states and context') }), found = make('div', { 'aria-live': 'polite' });
    for (let at = -EDGE; at <= EDGE; at++) svg.append(shape('path', { class: at ? 'faint' : 'axis', 'stroke-width': 0.02, d: `M${at} -3.3V3.3M-3.3 ${at}H3.3` }));
    let scaled = false;
    const context = arrow('--live-4', true);
    const show = () => {
      const { energies, weights, context: c } = attend(points[0], points.slice(1), scaled);
      context.place(c, 'c');
      const rows = weights.map((weight, j) => make('tr', {}, make('th', { scope: 'row', textContent: NAMES[j + 1] }), make('td', { textContent: number(energies[j]) }), make('td', { className: 'live-bar' }, bar(weight, COLOURS[j + 1])), make('td', { textContent: number(weight, 3) })));
      const head = make('tr', {}, ...['', say('energy'), say('weight'), ''].map((textContent) => make('th', { scope: 'col', textContent })));
      found.replaceChildren(make('table', {}, make('thead', {}, head), make('tbody', {}, ...rows)), make('p', { className: 'live-context', textContent: say('context c = ({0}, {1})', number(c[0], 3), number(c[1], 3)) }));
    };
    const handles = points.map((point, n) => handle(svg, NAMES[n], point, COLOURS[n], show));
    svg.append(...context.nodes, ...handles.slice(1), handles[0]);
    const score = live.choice(say('Score'), [[false, say('dot product')], [true, say('divided by √{0}', 2)]], false, (value) => { scaled = value; show(); });
    root.append(make('div', { className: 'live-columns' }, svg, make('div', {}, score, found, make('p', { className: 'live-quiet', textContent: say('Drag an arrow’s tip, or choose it with Tab and use the arrow keys (with Shift: larger steps). The states are keys and values at once.') }))));
    show();
  }

  function bar(share, colour) {
    const node = make('i');
    node.style.cssText = `width:${share * 100}%;background:var(${colour})`;
    return node;
  }

  // Eight random keys: the same energies with and without the factor 1/√d.
  function scaling(root) {
    let seed = 1, power = 6;
    const found = make('div', { className: 'live-columns' });
    const show = () => {
      const { query, keys } = drawn(seed, 2 ** power, 8);
      found.replaceChildren(...[[false, say('dot product')], [true, say('divided by √{0}', 'd')]].map(([scaled, name]) => {
        const { energies, weights } = attend(query, keys, scaled), spread = Math.sqrt(energies.reduce((sum, one) => sum + one * one, 0) / energies.length);
        const rows = weights.map((weight, j) => [`k${j + 1}`, weight, number(weight, 3), `var(${scaled ? '--live-3' : '--live-2'})`]);
        return make('div', {}, make('p', { textContent: say('{0}: energies of about ±{1}', name, number(spread, 1)) }), live.bars(rows));
      }));
    };
    const size = live.slider(say('features d'), { min: 0, max: 9, value: power, shown: (value) => live.local(2 ** value) }, (value) => { power = value; show(); });
    root.append(make('h4', { textContent: say('In more dimensions') }), make('p', { textContent: say('A query and eight keys with independent features of mean 0 and variance 1. The variance of their dot products is d.') }), size, live.button(say('Draw others'), () => { seed += 1; show(); }), found);
    show();
  }

  return { attend, drawn, mount(root) { plane(root); scaling(root); } };
})());
