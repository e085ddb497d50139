// An LSTM and a GRU reading what you type: the gates and the state of one unit as coloured letters.
live.part('gates', (() => {
  const { make, number, say } = live;
  const ROWS = {
    lstm: { i: say('input gate i'), f: say('forget gate f'), o: say('output gate o'), g: say('candidate g'), c: say('cell state c'), h: say('output h') },
    gru: { u: say('update gate u'), r: say('reset gate r'), g: say('candidate g'), h: say('state h') },
  };
  const KEEPS = { lstm: 'f', gru: 'u' };

  const sigmoid = (x) => 1 / (1 + Math.exp(-x));

  // The weights of a letter model: of its embeddings, as they reach the cell, and of the cell.
  function weights(net) {
    const of = (ending) => [...net.step.known].find(([name]) => name.endsWith(ending))?.[1];
    const scale = net.step.steps.find(({ operator }) => operator === 'Mul'), by = net.step.known.get(scale.inputs[1])?.data[0] ?? 1;
    return { table: of('table.weight'), by, x: of('weight_x'), h: of('weight_h'), bias: of('0.bias').data, inner: of('bias_n')?.data };
  }

  // matrix [rows, columns] times vector
  const times = ({ dims: [rows, columns], data }, vector) => Array.from({ length: rows }, (_, row) => vector.reduce((sum, one, at) => sum + data[row * columns + at] * one, 0));

  // One step of an LSTM (gates stacked i, f, g, o) or of a GRU (r, u, g): all gates and the new state.
  function step(cell, { x, h: back, bias, inner }, input, { h, c }) {
    const size = h.length, fed = times(x, input).map((one, at) => one + bias[at]), turned = times(back, h), sum = (gate, n) => fed[gate * size + n] + turned[gate * size + n], each = (compute) => h.map((_, n) => compute(n));
    if (cell === 'lstm') {
      const [i, f, g, o] = [each((n) => sigmoid(sum(0, n))), each((n) => sigmoid(sum(1, n))), each((n) => Math.tanh(sum(2, n))), each((n) => sigmoid(sum(3, n)))];
      const next = each((n) => f[n] * c[n] + i[n] * g[n]);
      return { i, f, o, g, c: next, h: each((n) => o[n] * Math.tanh(next[n])) };
    }
    const [r, u] = [each((n) => sigmoid(sum(0, n))), each((n) => sigmoid(sum(1, n)))];
    const g = each((n) => Math.tanh(fed[2 * size + n] + r[n] * (turned[2 * size + n] + inner[n])));
    return { u, r, g, h: each((n) => u[n] * h[n] + (1 - u[n]) * g[n]) };
  }

  // For each letter that a model reads { piece, gates: { name: values of all units } }.
  function read(cell, net, text) {
    const own = weights(net), [size, width] = [own.h.dims[1], own.table.dims[1]], zeros = new Array(size).fill(0);
    let state = { h: zeros, c: zeros };
    return net.row(text).map((token) => {
      state = step(cell, own, Array.from(own.table.data.subarray(token * width, (token + 1) * width), (one) => one * own.by), state);
      return { piece: net.vocabulary.piece(token), gates: state };
    });
  }

  // The unit whose gate keeps most of its state, on average over a text.
  function keeper(steps, gate) {
    const sums = [...steps[0].gates[gate].keys()].map((unit) => steps.reduce((sum, step) => sum + step.gates[gate][unit], 0));
    return sums.indexOf(Math.max(...sums));
  }

  async function mount(root) {
    const nets = { lstm: await live.model('letters-lstm'), gru: await live.model('letters-gru') }, now = { cell: 'lstm', unit: 0, at: 0 };
    const input = make('input', { type: 'text', value: 'Open the "File" menu, then click the icon.', maxLength: 80, spellcheck: false }), table = make('div', { className: 'live-letters' }), told = make('p', { 'aria-live': 'polite', className: 'live-told' });
    let steps = [];
    const values = (step, name) => step.gates[name][now.unit];
    const size = (value) => Math.max(-1, Math.min(1, value / (now.cell === 'lstm' ? 2 : 1)));

    function tell() {
      const step = steps[now.at];
      if (!step) { told.textContent = say('Type something.'); return; }
      told.textContent = say('Unit {0} at “{1}”: {2}.', now.unit, step.piece === '▁' ? say('space') : step.piece, Object.keys(ROWS[now.cell]).map((name) => `${name} = ${number(values(step, name), 2)}`).join('; '));
    }

    function draw() {
      const rows = Object.entries(ROWS[now.cell]).map(([name, title]) => {
        const signed = 'gch'.includes(name), line = make('span', { className: 'live-line' });
        steps.forEach((step, at) => {
          const value = values(step, name), letter = make('span', { textContent: step.piece === '▁' ? '·' : step.piece, title: `${name} = ${number(value, 3)}` });
          live.tint(letter, name === 'c' ? size(value) : value);
          if (at === now.at) letter.className = 'live-at';
          letter.addEventListener('pointerenter', () => { now.at = at; position.set(at); mark(); });
          line.append(letter);
        });
        return make('div', {}, make('b', { textContent: title }), make('small', { textContent: name === 'c' ? ' −2 … 2' : signed ? ' −1 … 1' : ' 0 … 1' }), line);
      });
      table.replaceChildren(...rows);
      tell();
    }

    function mark() {
      table.querySelectorAll('.live-line').forEach((line) => [...line.children].forEach((letter, at) => letter.classList.toggle('live-at', at === now.at)));
      tell();
    }

    function compute() {
      steps = input.value ? read(now.cell, nets[now.cell], input.value).slice(1) : [];
      now.at = Math.max(0, steps.length - 1);
      position.limit(Math.max(0, steps.length - 1));
      position.set(now.at);
      draw();
    }

    const unit = live.slider(say('unit'), { min: 0, max: 127, value: 0 }, (value) => { now.unit = value; draw(); });
    const position = live.slider(say('letter'), { min: 0, max: 40, value: 0 }, (value) => { now.at = value; mark(); });
    const choose = (value) => { now.unit = value; unit.set(value); draw(); };
    input.addEventListener('input', compute);
    root.append(
      live.choice(say('Cell'), [['lstm', 'LSTM'], ['gru', 'GRU']], 'lstm', (cell) => { now.cell = cell; compute(); }),
      make('label', {}, say('Type English'), input), unit, position,
      make('div', { className: 'live-row' }, live.button(say('The unit that keeps most'), () => { if (steps.length) choose(keeper(steps, KEEPS[now.cell])); })),
      told, table,
      make('p', { className: 'live-quiet', textContent: say('Letter models of 128 units. Blue is positive, orange negative, and what is nearly 0 has the colour of the page. In the GRU, u is the share of the old state that is kept.') }),
    );
    live.onTheme(draw);
    compute();
  }

  return { weights, read, keeper, mount };
})());
