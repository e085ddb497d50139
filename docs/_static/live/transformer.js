// One Transformer, opened: every number between a text and the next word, step by step. The model is that of heads.js.
live.part('transformer', (() => {
  const { make, number, say, products, softmax, dot, table, linear, signs, view, plain, summed, mapping } = live, HEADS = 4, LONGEST = 16, SHOWN = 10, EPSILON = 1e-5;
  const mean = (row) => row.reduce((sum, one) => sum + one, 0) / row.length, variance = (row) => mean(row.map((one) => (one - mean(row)) ** 2));
  const add = (a, b) => a.map((row, at) => row.map((one, n) => one + b[at][n]));
  const part = (rows, n, of) => rows.map((row) => row.slice((n * row.length) / of, ((n + 1) * row.length) / of));
  const norm = (rows, { gain, bias }) => rows.map((row) => { const middle = mean(row), spread = Math.sqrt(variance(row) + EPSILON); return row.map((one, n) => ((one - middle) / spread) * gain[n] + bias[n]); });

  // Each pair of features is turned by position · frequency.
  const turned = (rows, frequencies) => rows.map((row, at) => row.map((one, n) => {
    const angle = at * frequencies[n >> 1];
    return n % 2 ? row[n - 1] * Math.sin(angle) + one * Math.cos(angle) : one * Math.cos(angle) - row[n + 1] * Math.sin(angle);
  }));

  // The weights by what they do, out of the graph that the page runs. `from` has a row for each feature that comes out.
  function weights({ step: { known, steps } }) {
    const own = (name) => [...known.get(`module.model.${name}`).data], normed = (name) => ({ gain: own(`${name}.weight`), bias: own(`${name}.bias`) });
    const mapped = (name) => {
      const sum = steps.find(({ inputs }) => inputs[1] === `module.model.${name}.bias`), rows = table(known.get(steps.find(({ outputs }) => outputs[0] === sum.inputs[0]).inputs[1]));
      return { from: rows[0].map((_, n) => rows.map((row) => row[n])), bias: own(`${name}.bias`) };
    };
    const layer = (name) => {
      const both = mapped(`${name}.attention.key_value`), half = both.bias.length / 2, cut = (...at) => ({ from: both.from.slice(...at), bias: both.bias.slice(...at) });
      return { norm1: normed(`${name}.attention_norm`), q: mapped(`${name}.attention.query`), k: cut(0, half), v: cut(half), o: mapped(`${name}.attention.out`), norm2: normed(`${name}.network_norm`), h: mapped(`${name}.network.first`), f: mapped(`${name}.network.second`) };
    };
    return { table: table(known.get('module.model.source_embed.table.weight')), layers: [0, 1].map((n) => layer(`decoder.blocks.${n}`)), last: normed('decoder.last_norm'), bias: own('head.bias'), frequencies: [...[...known.values()].find(({ type }) => type === 'float64').data] };
  }

  // Every tensor for tokens, by the names of the chapter's formulas; of q to z one for each head.
  async function trace(net, tokens) {
    const { OPERATORS } = await live.runtime('operators.js'), w = weights(net), every = (f) => Array.from({ length: HEADS }, (_, n) => f(n));
    const gelu = (row) => [...OPERATORS.Gelu([{ type: 'float64', dims: [row.length], data: Float64Array.from(row) }], {}).data], embedding = tokens.map((token) => w.table[token]), layers = [];
    let x = embedding;
    for (const own of w.layers) {
      const n = norm(x, own.norm1), [q, k, v] = [own.q, own.k, own.v].map((map) => { const rows = linear(n, map); return every((head) => part(rows, head, HEADS)); });
      const [q2, k2] = [q, k].map((heads) => heads.map((rows) => turned(rows, w.frequencies)));
      const s = every((head) => q2[head].map((query) => k2[head].map((key) => dot(query, key) / Math.sqrt(query.length)))), masked = s.map((rows) => rows.map((row, at) => row.map((one, other) => (other > at ? -Infinity : one)))), a = masked.map((rows) => rows.map(softmax));
      const z = every((head) => a[head].map((row) => v[head][0].map((_, n2) => row.reduce((sum, weight, other) => sum + weight * v[head][other][n2], 0)))), joined = tokens.map((_, at) => z.flatMap((rows) => rows[at])), o = linear(joined, own.o);
      const x1 = add(x, o), n1 = norm(x1, own.norm2), h = linear(n1, own.h), g = h.map(gelu), f = linear(g, own.f), x2 = add(x1, f);
      layers.push({ x, n, q, k, v, q2, k2, s, masked, a, z, joined, o, x1, n1, h, g, f, x2 });
      x = x2;
    }
    const last = norm(x, w.last), logits = last.map((row) => w.table.map((one, n) => dot(one, row) + w.bias[n]));
    const name = (token) => (token === net.about.eos ? '⏎' : net.vocabulary.piece(token).replace(/▁/g, ''));
    return { w, tokens, pieces: tokens.map(name), embedding, layers, x, last, logits, probs: logits.map(softmax), name };
  }

  // ---------------------------------------------------------------- steps
  const three = (value) => number(value, 3);
  const adding = (label, a, b, values) => view(label, values, (at, n) => ({ text: `${signs(a[at][n])} + ${signs(b[at][n])}` }));
  const norming = (label, rows, values, { gain, bias }) => view(label, values, (at, n) => ({ text: `(${signs(rows[at][n])} − ${signs(mean(rows[at]))}) / √(${number(variance(rows[at]), 5)} + ε) · ${signs(gain[n])} + ${signs(bias[n])}` }));
  const turning = (label, rows, values, frequencies) => view(label, values, (at, n) => {
    const pair = n - (n % 2), angle = `(${at} · ${three(frequencies[n >> 1])})`, [a, b] = [rows[at][pair], rows[at][pair + 1]].map(signs);
    return { text: n % 2 ? `${a} · sin${angle} + ${b} · cos${angle}` : `${a} · cos${angle} − ${b} · sin${angle}` };
  });

  // What a step shows: a sentence, and matrices of which each can explain its numbers.
  const START = [
    [say('Tokens'), ({ tokens, w }) => [say('The text becomes pieces that the model knows, each with its number in a vocabulary of {0}. ⏎ begins a line.', live.local(w.table.length)), [view(say('number'), tokens.map((token) => [token]), () => ({ text: '' }), { columns: [''], digits: 0, most: Infinity, keys: ['word', 'only'] })]]],
    [say('Embedding'), ({ embedding, tokens }) => [say('Each number picks a row of the table E: {0} learned features. From here on, each word is one row. Blue is positive, orange negative.', embedding[0].length), [view('x = E[…]', embedding, (at, n) => ({ text: `E[${tokens[at]}, ${n + 1}]` }))]]],
  ];
  const NORM = say('Each row gets mean 0 and variance 1; then each feature is scaled by a learned g and shifted by a learned b.');
  const LAYER = [
    [say('Norm'), ({ t, own }) => [NORM, [plain('x', t.x), norming('n = norm(x)', t.x, t.n, own.norm1)]]],
    ['q, k, v', ({ t, own, head }) => [say('Three linear maps make a query, a key and a value of {0} features from each row, for each head its own.', t.q[0][0].length), [plain('n', t.n), ...['q', 'k', 'v'].map((one) => mapping(`${one} = W n + b`, t.n, t[one][head], own[one], { first: head * t.q[0][0].length }))]]],
    [say('Positions'), ({ t, w, head }) => [say('This model has rotary positions: each pair of features of q and k is turned by an angle that grows with the position. The values stay as they are.'), ['q', 'k'].flatMap((one) => [plain(one, t[one][head]), turning(`${one}′`, t[one][head], t[`${one}2`][head], w.frequencies)])]],
    [say('Scores'), ({ t, head, pieces }) => [say('The score of the word that reads (row) for a word that is read (column) is the product of query and key, divided by the root of their {0} features.', t.q[0][0].length), [plain('q′', t.q2[head]), plain('k′', t.k2[head], { keys: ['read', 'f24'] }), view(`s = q′ · k′ / √${t.q[0][0].length}`, t.s[head], (at, other) => { const { text, more } = summed(t.q2[head][at], t.k2[head][other]); return { text: `(${text}) / √${t.q[0][0].length}`, more }; }, { columns: pieces })]]],
    [say('Mask'), ({ t, head, pieces }) => [say('A word may read itself and what stands before it. All later scores become −∞.'), [view('s', t.masked[head], (at, other) => ({ text: other > at ? say('“{0}” stands later', pieces[other]) : 's' }), { columns: pieces })]]],
    ['Softmax', ({ t, head, pieces }) => [say('Each row becomes weights: e to the power of each score, divided by the sum over the row. −∞ becomes 0.'), [plain('s', t.masked[head], { columns: pieces }), view('a = softmax(s)', t.a[head], (at, other) => { const all = t.masked[head][at].map(Math.exp); return { text: `${other > at ? 0 : `e^${signs(t.s[head][at][other])}`} / (${all.slice(0, at + 1).map(three).join(' + ')}) = ${three(all[other])} / ${three(all.reduce((sum, one) => sum + one))}` }; }, { columns: pieces })]]],
    [say('Weighted sum'), ({ t, head, pieces }) => [say('The result of the head for a word: the values of the words that it reads, each times its weight, added up.'), [plain('a', t.a[head], { columns: pieces }), plain('v', t.v[head], { keys: ['read', 'f24'] }), view('z = a v', t.z[head], (at, n) => products(t.a[head][at].slice(0, at + 1).map((weight, other) => [weight, t.v[head][other][n], pieces[other]])))]]],
    [say('Heads joined'), ({ t, own }) => [say('The results of the {0} heads stand side by side, and one more linear map mixes them.', HEADS), [plain('(z₁, z₂, z₃, z₄)', t.joined), mapping('o = W z + b', t.joined, t.o, own.o)]]],
    [say('Residual'), ({ t }) => [say('The result of attention is added to what was there; nothing is overwritten.'), [plain('x', t.x), plain('o', t.o), adding('x′ = x + o', t.x, t.o, t.x1)]]],
    [say('Norm'), ({ t, own }) => [NORM, [plain('x′', t.x1), norming('n′ = norm(x′)', t.x1, t.n1, own.norm2)]]],
    [say('Feed-forward'), ({ t, own }) => [say('Each row by itself goes through two linear maps, with {0} features between them. GELU multiplies each by Φ, the normal distribution function: positive numbers mostly stay, negative ones come close to 0.', t.h[0].length), [plain('n′', t.n1), mapping('h = W₁ n′ + b', t.n1, t.h, own.h), view('g = GELU(h)', t.g, (at, n) => ({ text: `${signs(t.h[at][n])} · Φ(${three(t.h[at][n])})` })), mapping('f = W₂ g + b', t.g, t.f, own.f)]]],
    [say('Residual'), ({ t }) => [say('The result of the feed-forward layer is added too. The next part reads the sum.'), [plain('x′', t.x1), plain('f', t.f), adding('x″ = x′ + f', t.x1, t.f, t.x2)]]],
  ];
  const PLACES = ({ best, name }) => ({ rows: best.map(name), columns: [''], digits: 3, keys: ['place', 'only'] });
  const END = [
    [say('Norm'), ({ x, last, w }) => [NORM, [plain('x', x), norming('n = norm(x)', x, last, w.last)]]],
    [say('Logits'), (all) => [say('The row of the chosen word is multiplied by every row of E, because E is also the output layer. These are the largest of {0} logits.', live.local(all.w.table.length)), [plain('n', all.last), view('ℓ = E n + b', all.best.map((one) => [all.logits[all.word][one]]), (place) => summed(all.last[all.word], all.w.table[all.best[place]], [[all.w.bias[all.best[place]], 'b']]), PLACES(all))]]],
    [say('Next word'), (all) => [say('Softmax turns all {0} logits into probabilities. After “{1}” the model expects “{2}”.', live.local(all.w.table.length), all.pieces[all.word], all.name(all.best[0])), [plain('ℓ', all.best.map((one) => [all.logits[all.word][one]]), PLACES(all)), view('p = softmax(ℓ)', all.best.map((one) => [all.probs[all.word][one]]), (place) => ({ text: `e^${signs(all.logits[all.word][all.best[place]])} / ${number(all.logits[all.word].reduce((sum, one) => sum + Math.exp(one), 0), 1)}` }), PLACES(all))]]],
  ];

  async function mount(root) {
    const net = await live.model('heads'), now = { head: 0, word: Infinity, group: 0 };
    const groups = [[say('Input'), START], [say('Layer {0}', 1), LAYER], [say('Layer {0}', 2), LAYER], [say('Output'), END]];
    const input = make('input', { type: 'text', value: 'Save the new file and save the', maxLength: 80 }), words = make('p', { className: 'live-pieces' });
    let found, waiting;

    // The word that is read most is the first that is shown.
    function begin(group = now.group) {
      now.group = group;
      const row = found?.layers[Math.max(0, Math.min(1, group - 1))].a[now.head][now.word];
      now.read = row?.indexOf(Math.max(...row));
      heads.hidden = !(group === 1 || group === 2);
    }

    function content() {
      if (!found) return null;
      const { word, head, group } = now, best = [...found.logits[word].keys()].filter((one) => !net.banned.has(one)).sort((a, b) => found.logits[word][b] - found.logits[word][a]).slice(0, SHOWN);
      return { ...found, rows: found.pieces, t: found.layers[group - 1], own: found.w.layers[group - 1], head, word, best };
    }

    async function compute() {
      found = await trace(net, net.row(live.spaced(input.value)).slice(0, LONGEST));
      live.chips(words, found.pieces, (at) => choose('word', at));
      choose('word', Math.min(now.word, found.pieces.length - 1));
    }

    function choose(key, value) {
      now[key] = value;
      begin();
      draw();
    }

    const heads = live.choice(say('Head'), [0, 1, 2, 3].map((n) => [n, String(n + 1)]), now.head, (head) => choose('head', head));
    const { steps, shown, draw } = live.opened(groups, now, content, begin, () => [...words.children].forEach((node, at) => { node.ariaPressed = String(at === now.word); }));
    input.addEventListener('input', () => { clearTimeout(waiting); waiting = setTimeout(compute, 200); });
    root.append(make('label', {}, say('English, as in a help page'), input), make('p', { className: 'live-quiet', textContent: say('The word that you follow:') }), words, steps, heads, ...shown);
    steps.begin();
    await compute();
  }

  return { trace, part, turned, mean, variance, EPSILON, HEADS, mount };
})());
