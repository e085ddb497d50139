// Each letter to the past: how much a prediction depends on each earlier letter, in an LSTM, a GRU and a Transformer.
// The measure is the length of the gradient of log P(next letter) at the embedding of each letter.
live.part('past', (() => {
  const { make, number, say, softmax, dot, table } = live, LONGEST = 60, MODELS = { lstm: 'LSTM', gru: 'GRU', transformer: 'Transformer' };
  const size = (row) => Math.sqrt(dot(row, row));

  // Gradients of what went into a linear map; `from` has a row of weights for each feature that came out.
  const back = (row, from) => from[0].map((_, n) => row.reduce((sum, one, at) => sum + one * from[at][n], 0));
  const add = (a, b) => a.map((one, n) => one + b[n]);
  const gradient = (probs, next) => probs.map((one, token) => (token === next) - one);

  // ---------------------------------------------------------------- recurrent cells
  // For each position the probabilities, and `past(at, next)`: the gradient's length at each letter up to `at`.
  async function recurrent(cell, net, text) {
    const gates = await live.program('gates'), own = gates.weights(net), steps = gates.read(cell, net, text).map((one) => one.gates);
    const of = (ending) => [...net.step.known].find(([name]) => name.endsWith(ending))[1], head = table(of('head.weight')), bias = of('head.bias').data, [x, h] = [table(own.x), table(own.h)], zeros = steps[0].h.map(() => 0);
    const probs = steps.map((one) => softmax(head.map((row, n) => dot(row, one.h) + bias[n])));

    function past(at, next) {
      const found = [];
      let dh = back(gradient(probs[at], next), head), dc = zeros;
      for (let t = at; t >= 0; t--) {
        const step = steps[t], before = steps[t - 1]?.h ?? zeros, each = (compute) => zeros.map((_, n) => compute(n));
        if (cell === 'lstm') {
          const { i, f, o, g, c } = step, old = steps[t - 1]?.c ?? zeros, shown = c.map(Math.tanh);
          dc = each((n) => dc[n] + dh[n] * o[n] * (1 - shown[n] ** 2));
          const z = [each((n) => dc[n] * g[n] * i[n] * (1 - i[n])), each((n) => dc[n] * old[n] * f[n] * (1 - f[n])), each((n) => dc[n] * i[n] * (1 - g[n] ** 2)), each((n) => dh[n] * shown[n] * o[n] * (1 - o[n]))].flat();
          found[t] = size(back(z, x));
          dh = back(z, h);
          dc = each((n) => dc[n] * f[n]);
        } else {
          const { u, r, g } = step, inner = each((n) => dot(h[2 * zeros.length + n], before) + own.inner[n]);
          const zg = each((n) => dh[n] * (1 - u[n]) * (1 - g[n] ** 2)), zr = each((n) => zg[n] * inner[n] * r[n] * (1 - r[n])), zu = each((n) => dh[n] * (before[n] - g[n]) * u[n] * (1 - u[n]));
          found[t] = size(back([...zr, ...zu, ...zg], x));
          dh = add(back([...zr, ...zu, ...zg.map((one, n) => one * r[n])], h), each((n) => dh[n] * u[n]));
        }
      }
      return found;
    }

    return { probs, past };
  }

  // ---------------------------------------------------------------- the Transformer
  async function transformer(net, text) {
    const { trace, part, turned, mean, variance, EPSILON, HEADS } = await live.program('transformer'), { w, layers, x, last, probs } = await trace(net, net.row(text));

    // Through a norm: what its mean and its spread take away, too.
    const unnormed = (rows, before, { gain }) => rows.map((row, at) => {
      const middle = mean(before[at]), spread = Math.sqrt(variance(before[at]) + EPSILON), own = before[at].map((one) => (one - middle) / spread), scaled = row.map((one, n) => one * gain[n]), even = mean(scaled), along = mean(scaled.map((one, n) => one * own[n]));
      return scaled.map((one, n) => (one - even - own[n] * along) / spread);
    });
    const rows = (all, { from }) => all.map((row) => back(row, from));
    const sum = (a, b) => a.map((row, at) => add(row, b[at]));
    const slope = (value, given) => (Math.abs(value) < 1e-9 ? 0.5 : given / value) + value * Math.exp(-value * value / 2) / Math.sqrt(2 * Math.PI);

    function attended(t, dz) {
      const heads = Array.from({ length: HEADS }, (_, head) => {
        const [a, v, q, k, own] = [t.a, t.v, t.q2, t.k2].map((one) => one[head]).concat([part(dz, head, HEADS)]), root = Math.sqrt(q[0].length);
        const da = own.map((row) => v.map((value) => dot(row, value))), ds = a.map((row, at) => { const even = dot(row, da[at]); return row.map((one, other) => one * (da[at][other] - even) / root); });
        const across = (weights, values) => values[0].map((_, n) => weights.reduce((all, one, at) => all + one * values[at][n], 0)), column = (matrix, at) => matrix.map((row) => row[at]);
        return { q: ds.map((row) => across(row, k)), k: ds.map((_, other) => across(column(ds, other), q)), v: a.map((_, other) => across(column(a, other), own)) };
      });
      const still = w.frequencies.map((one) => -one), joined = (name) => dz.map((_, at) => heads.flatMap((one) => (name === 'v' ? one.v : turned(one[name], still))[at]));
      return { q: joined('q'), k: joined('k'), v: joined('v') };
    }

    function past(at, next) {
      let dx = unnormed(last.map((row, t) => (t === at ? back(gradient(probs[at], next), w.table) : row.map(() => 0))), x, w.last);
      for (const [n, t] of [...layers.entries()].reverse()) {
        const own = w.layers[n], dh = rows(dx, own.f).map((row, r) => row.map((one, c) => one * slope(t.h[r][c], t.g[r][c])));
        const middle = sum(dx, unnormed(rows(dh, own.h), t.x1, own.norm2)), { q, k, v } = attended(t, rows(middle, own.o));
        dx = sum(middle, unnormed(sum(sum(rows(q, own.q), rows(k, own.k)), rows(v, own.v)), t.x, own.norm1));
      }
      return dx.slice(0, at + 1).map(size);
    }

    return { probs, past };
  }

  const opened = (name, net, text) => (name === 'transformer' ? transformer(net, text) : recurrent(name, net, text));

  // How many of the last letters have half of the lengths together.
  function half(lengths) {
    const whole = lengths.reduce((sum, one) => sum + one, 0);
    let count = 0;
    for (let sum = 0; sum < whole / 2; count++) sum += lengths[lengths.length - 1 - count];
    return count;
  }

  async function mount(root) {
    const nets = {}, now = { at: Infinity };
    for (const name of Object.keys(MODELS)) nets[name] = await live.model(`letters-${name}`);
    const input = make('input', { type: 'text', value: 'Choose Insert - Picture, then choose Insert - Pic', maxLength: LONGEST, spellcheck: false }), lines = make('div', { className: 'live-letters' }), told = make('p', { ariaLive: 'polite', className: 'live-told' });
    let found = {}, tokens = [], waiting;
    const shown = (token) => nets.lstm.vocabulary.piece(token).replace('▁', '·'), space = (text) => (text === '·' ? say('space') : text);

    function draw() {
      const { at } = now, next = tokens[at + 1];
      lines.replaceChildren(...Object.entries(MODELS).map(([name, title]) => {
        const { probs, past } = found[name], lengths = past(at, next), most = Math.max(...lengths.slice(1)), line = make('span', { className: 'live-line' });
        tokens.slice(1).forEach((token, n) => {
          const before = n + 1 <= at, letter = make('span', { textContent: shown(token), title: before ? number(lengths[n + 1], 3) : '' });
          live.tint(letter, before ? lengths[n + 1] / most : 0);
          if (n === at) letter.className = 'live-at';
          letter.addEventListener('click', () => { now.at = n; position.set(n); draw(); });
          line.append(letter);
        });
        return make('div', {}, make('b', { textContent: title }), make('small', { textContent: ` ${say('P = {0}; half of the gradient is in the last {1} letters', number(probs[at][next], 3), half(lengths.slice(1)))}` }), line);
      }));
      told.textContent = say('The letter that is predicted, framed: “{0}”. The bluer an earlier letter is, the more a change of it would change the probability.', space(shown(next)));
    }

    async function compute() {
      const text = input.value, row = text ? nets.lstm.row(`${text}|`).slice(0, -1) : [];
      if (row.length < 4) { lines.replaceChildren(); told.textContent = say('Type something.'); return; }
      tokens = row;
      for (const name of Object.keys(MODELS)) found[name] = await opened(name, nets[name], text.trimEnd());
      position.limit(tokens.length - 2);
      now.at = Math.min(now.at, tokens.length - 2);
      position.set(now.at);
      draw();
    }

    const position = live.slider(say('letter'), { min: 1, max: 60, value: 1 }, (value) => { now.at = value; draw(); });
    input.addEventListener('input', () => { clearTimeout(waiting); waiting = setTimeout(compute, 150); });
    root.append(make('label', {}, say('Type English'), input), position, told, lines,
      make('p', { className: 'live-quiet', textContent: say('Letter models of 128 units, and a Transformer of two layers of 64 features, trained on the same text. The colour is the length of the gradient of log P at the embedding of the letter, as a share of the largest in the line.') }));
    await compute();
  }

  return { opened, half, mount };
})());
