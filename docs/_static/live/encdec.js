// An encoder-decoder with attention, opened: every number between a string and the letter that is written next. The model is that of reverse.js.
live.part('encdec', (() => {
  const { make, number, say, dot, table, linear, signs, view, plain, summed, mapping, products, softmax } = live, LONGEST = 10;
  const sigmoid = (x) => 1 / (1 + Math.exp(-x)), ends = (rows, from, to) => rows.slice(from, to);

  // The weights by what they do, out of the graphs that the page runs. Gates are r, u and the candidate.
  function weights({ step, start }) {
    const vector = (graph, name) => [...graph.known.get(`module.model.${name}`).data], rows = (graph, name) => table(graph.known.get(`module.model.${name}`));
    const made = (graph, name) => graph.steps.find(({ outputs }) => outputs.includes(name)), turned = (matrix) => matrix[0].map((_, n) => matrix.map((row) => row[n]));
    const cut = (x, h, bias, inner) => { const size = h[0].length, gate = (n) => ({ x: ends(x, n * size, (n + 1) * size), h: ends(h, n * size, (n + 1) * size), bias: bias.slice(n * size, (n + 1) * size) }); return { r: gate(0), u: gate(1), g: { ...gate(2), inner } }; };
    const reader = (name) => { // of ONNX: u, r, candidate, each with two biases
      let node = made(start, name);
      while (node.operator !== 'GRU') node = made(start, node.inputs[0]);
      const [x, h, bias] = node.inputs.slice(1, 4).map((one) => start.known.get(one)), size = h.dims[2], order = (all) => [...ends(all, size, 2 * size), ...ends(all, 0, size), ...ends(all, 2 * size)], own = [...bias.data];
      return cut(order(table(x)), order(table(h)), order(own.slice(0, 3 * size).map((one, n) => one + (n < 2 * size ? own[3 * size + n] : 0))), own.slice(5 * size));
    };
    const [forward, backward] = made(start, 'state_2').inputs.map(reader), query = step.steps.find(({ inputs }) => inputs[1]?.endsWith('score.query.bias')), energy = step.steps.find(({ operator, inputs }) => operator === 'MatMul' && made(step, inputs[0])?.operator === 'Tanh');
    return {
      table: rows(step, 'source_embed.table.weight'), forward, backward,
      key: { from: turned(table(start.known.get(made(start, 'state_1').inputs[1]))) },
      bridge: { from: rows(start, 'decoder.bridge.maps.0.0.weight'), bias: vector(start, 'decoder.bridge.maps.0.0.bias') },
      query: { from: turned(table(step.known.get(made(step, query.inputs[0]).inputs[1]))), bias: vector(step, 'decoder.attention.score.query.bias') },
      energy: [...step.known.get(energy.inputs[1]).data],
      cell: cut(rows(step, 'decoder.stack.forwards.0.weight_x'), rows(step, 'decoder.stack.forwards.0.weight_h'), vector(step, 'decoder.stack.forwards.0.bias'), vector(step, 'decoder.stack.forwards.0.bias_n')),
      project: { from: rows(step, 'head.project.weight') }, output: { from: rows(step, 'source_embed.table.weight'), bias: vector(step, 'head.bias') },
    };
  }

  // One step of a GRU: the old state, the gates, the candidate and the new state.
  function gru(x, old, { r: reset, u: update, g: candidate }) {
    const gate = ({ x: wx, h: wh, bias }) => bias.map((one, n) => sigmoid(dot(wx[n], x) + dot(wh[n], old) + one)), r = gate(reset), u = gate(update);
    const g = candidate.bias.map((one, n) => Math.tanh(dot(candidate.x[n], x) + one + r[n] * (dot(candidate.h[n], old) + candidate.inner[n])));
    return { x, old, r, u, g, h: u.map((one, n) => one * old[n] + (1 - one) * g[n]) };
  }

  // All tensors for letters: of the encoder a row for each letter read, of the decoder one for each letter written; greedy.
  function trace(net, letters) {
    const w = weights(net), tokens = net.source.encode(letters.join(' ')), scale = Math.sqrt(w.table[0].length), embed = (token) => w.table[token].map((one) => one * scale), x = tokens.map(embed), zero = w.forward.r.bias.map(() => 0);
    const course = (rows, cell) => rows.reduce((all, row) => [...all, gru(row, all.at(-1)?.h ?? zero, cell)], []), forward = course(x, w.forward), backward = course([...x].reverse(), w.backward).reverse();
    const h = tokens.map((_, at) => [...forward[at].h, ...backward[at].h]), k = linear(h, w.key), last = [...forward.at(-1).h, ...backward[0].h], s0 = linear([last], w.bridge)[0].map(Math.tanh), steps = [];
    for (let token = net.about.sos, old = s0; steps.length < LONGEST + 2 && token !== net.about.eos;) {
      const [q] = linear([old], w.query), mixed = k.map((key) => key.map((one, n) => Math.tanh(q[n] + one))), e = mixed.map((row) => dot(row, w.energy)), a = softmax(e), c = h[0].map((_, n) => a.reduce((sum, one, at) => sum + one * h[at][n], 0));
      const y = embed(token), cell = gru([...y, ...c], old, w.cell), [p] = linear([cell.h], w.project), [logits] = linear([p], w.output), probs = softmax(logits);
      const written = [...logits.keys()].filter((one) => !net.banned.has(one)).reduce((best, one) => (logits[one] > logits[best] ? one : best));
      steps.push({ before: token, token: written, q, mixed, e, a, c, y, ...cell, p, logits, probs });
      [token, old] = [written, cell.h];
    }
    const name = (token) => ({ [net.about.sos]: '▷', [net.about.eos]: '⏎' })[token] ?? net.target.piece(token).replace(/▁/g, '');
    return { w, tokens, pieces: tokens.map(name), x, forward, backward, h, k, last, s0, steps, written: steps.map(({ token }) => name(token)), before: steps.map(({ before }) => name(before)), symbols: w.table.map((_, token) => name(token)) };
  }

  // ---------------------------------------------------------------- steps
  const LETTER = (rows, values) => ({ rows, keys: ['read', `f${values[0].length}`] });
  const all = (steps, key) => steps.map((one) => one[key]);

  // The four views of a GRU: two gates, the candidate, the new state.
  function cell(steps, { r, u, g }, names, about) {
    const pairs = ({ x, old }, gate, n) => [...x.map((one, at) => [one, gate.x[n][at], `x${at + 1}`]), ...old.map((one, at) => [one, gate.h[n][at], `${names.h}${at + 1}`])];
    const gated = (key, gate) => view(`${key} = σ(W x + U ${names.h} + b)`, all(steps, key), (at, n) => { const { text, more } = products(pairs(steps[at], gate, n), [[gate.bias[n], 'b']]); return { text: `σ(${text})`, more }; }, about);
    return [plain(names.h, all(steps, 'old'), about), gated('r', r), gated('u', u),
      view(`g = tanh(W x + b + r (U ${names.h} + b′))`, all(steps, 'g'), (at, n) => { const { x, old, r: reset } = steps[at]; return { text: `tanh(${signs(dot(g.x[n], x))} + ${signs(g.bias[n])} + ${signs(reset[n])} · (${signs(dot(g.h[n], old))} + ${signs(g.inner[n])}))` }; }, about),
      view(`${names.next} = u ${names.h} + (1 − u) g`, all(steps, 'h'), (at, n) => { const { u: update, old, g: candidate } = steps[at]; return { text: `${signs(update[n])} · ${signs(old[n])} + ${signs(1 - update[n])} · ${signs(candidate[n])}` }; }, about)];
  }

  const ENCODER = [
    [say('Letters'), ({ tokens, pieces }) => [say('Each letter has a number in the vocabulary.'), [plain(say('number'), tokens.map((token) => [token]), { rows: pieces, columns: [''], digits: 0, most: Infinity, keys: ['read', 'only'] })]]],
    [say('Embedding'), ({ x, tokens, pieces, w }) => [say('Each number picks a row of the table E: {0} learned features, times √{0}.', x[0].length), [view('x = √32 E[…]', x, (at, n) => ({ text: `√32 · ${signs(w.table[tokens[at]][n])}` }), LETTER(pieces, x))]]],
    [say('Forward'), ({ x, forward, pieces, w }) => [say('A GRU reads the letters from left to right: the gate u keeps a share of the old state, the rest comes from the candidate g.'), [plain('x', x, LETTER(pieces, x)), ...cell(forward, w.forward, { h: 'h', next: 'h→' }, LETTER(pieces, [forward[0].h]))]]],
    [say('Backward'), ({ x, backward, pieces, w }) => [say('A second GRU reads them from right to left, so that each state also knows what follows.'), [plain('x', x, LETTER(pieces, x)), ...cell(backward, w.backward, { h: 'h', next: '←h' }, LETTER(pieces, [backward[0].h]))]]],
    [say('States and keys'), ({ h, k, pieces, w }) => [say('Both states of a letter stand side by side: the state h. A linear map makes its key.'), [plain('h', h, LETTER(pieces, h)), mapping('k = W h', h, k, w.key, LETTER(pieces, k))]]],
    [say('First state'), ({ last, s0, w }) => [say('The last state of each direction, through a linear map and tanh, is the first state of the decoder.'), [plain('h', [last], { rows: ['h→ ←h'] }), view('s₀ = tanh(W h + b)', [s0], (at, n) => { const { text, more } = summed(last, w.bridge.from[n], [[w.bridge.bias[n], 'b']]); return { text: `tanh(${text})`, more }; }, { rows: ['s₀'] })]]],
  ];
  const ATTENTION = [
    [say('Query'), ({ steps, w }) => [say('Before the decoder writes a letter, its old state s becomes a query. One row for each letter that it wrote.'), [plain('s', all(steps, 'old')), mapping('q = W s + b', all(steps, 'old'), all(steps, 'q'), w.query)]]],
    [say('Energies'), ({ steps, k, pieces, w }) => [say('The query is compared with the key of each letter that was read: a sum, tanh, and a weighted sum of its features.'), [plain('q', all(steps, 'q')), plain('k', k, LETTER(pieces, k)), view('e = w · tanh(q + k)', all(steps, 'e'), (at, other) => summed(steps[at].mixed[other], w.energy), { columns: pieces })]]],
    ['Softmax', ({ steps, pieces }) => [say('Each row becomes weights: e to the power of each energy, divided by the sum over the row.'), [plain('e', all(steps, 'e'), { columns: pieces }), view('α = softmax(e)', all(steps, 'a'), (at, other) => { const powers = steps[at].e.map(Math.exp); return { text: `e^${signs(steps[at].e[other])} / (${powers.map((one) => number(one, 3)).join(' + ')})` }; }, { columns: pieces })]]],
    [say('Context'), ({ steps, h, pieces }) => [say('The context is the sum of the states that were read, each times its weight.'), [plain('α', all(steps, 'a'), { columns: pieces }), plain('h', h, LETTER(pieces, h)), view('c = Σ α h', all(steps, 'c'), (at, n) => products(steps[at].a.map((one, other) => [one, h[other][n], pieces[other]])))]]],
  ];
  const DECODER = [
    [say('Input'), ({ steps, before }) => [say('The letter before ({0} at the start), embedded, and the context stand side by side.', '▷'), [plain('y', all(steps, 'y'), { rows: before }), plain('c', all(steps, 'c')), plain('x = (y, c)', all(steps, 'x'))]]],
    [say('New state'), ({ steps, w }) => [say('The GRU of the decoder reads this input: the gate u keeps a share of the old state, the rest comes from the candidate g.'), [plain('x', all(steps, 'x')), ...cell(steps, w.cell, { h: 's', next: 's′' })]]],
    [say('Logits'), ({ steps, symbols, w }) => [say('The new state, mapped to {0} features, is multiplied by every row of E: a number for each symbol.', steps[0].p.length), [mapping('p = W s′', all(steps, 'h'), all(steps, 'p'), w.project), mapping('ℓ = E p + b', all(steps, 'p'), all(steps, 'logits'), w.output, { columns: symbols, keys: ['word', 'symbol'] })]]],
    [say('Next letter'), ({ steps, symbols, written, now }) => [say('Softmax makes probabilities. The likeliest letter, “{0}”, is written and becomes the next input.', written[now.word]), [plain('ℓ', all(steps, 'logits'), { columns: symbols, keys: ['word', 'symbol'] }), view('p = softmax(ℓ)', all(steps, 'probs'), (at, token) => ({ text: `e^${signs(steps[at].logits[token])} / ${number(steps[at].logits.reduce((sum, one) => sum + Math.exp(one), 0), 3)}` }), { columns: symbols, keys: ['word', 'symbol'] })]]],
  ];

  async function mount(root) {
    const net = await live.model('reverse-input'), now = { word: 0, read: 0 };
    const input = make('input', { type: 'text', value: 'blank', maxLength: LONGEST }), written = make('p', { className: 'live-pieces' });
    let found;

    // The letter that is read most, and the one that is written, are the first that are shown.
    function begin() {
      const { a, token } = found.steps[now.word];
      now.read = a.indexOf(Math.max(...a));
      now.symbol = token;
    }

    function choose(at) {
      now.word = Math.min(at, found.steps.length - 1);
      begin();
      draw();
    }

    function compute() {
      const letters = [...input.value.toLowerCase()].filter((one) => one >= 'a' && one <= 'p');
      if (!letters.length) return;
      found = trace(net, letters);
      live.chips(written, found.written, choose);
      choose(now.word);
    }

    const { steps, shown, draw } = live.opened([[say('Encoder'), ENCODER], [say('Attention'), ATTENTION], [say('Decoder'), DECODER]], now, () => found && { ...found, rows: found.written, now }, begin, () => [...written.children].forEach((node, at) => { node.ariaPressed = String(at === now.word); }));
    input.addEventListener('input', compute);
    root.append(make('label', {}, say('Letters from a to p'), input), make('p', { className: 'live-quiet', textContent: say('Written in reverse order; the letter that you follow:') }), written, steps, ...shown);
    steps.begin();
    compute();
  }

  return { trace, mount };
})());
