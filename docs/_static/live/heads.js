// The attention heads of a small Transformer that predicts the next word, on the reader's sentence.
live.part('heads', (() => {
  const { make, shape, number, say } = live, HEADS = 4, LONGEST = 32;

  // Signs stand by themselves, as in training.
  const spaced = (text) => text.replace(/[^\w\s'-]/g, ' $& ').replace(/\s+/g, ' ').trim();

  // Weights of every head for a text, and what the model expects after each piece: { pieces, weights: [layer][head][row][column],
  // next: [row] -> [[piece, probability]] }. Softmaxes inside the graph are read out, piece by piece.
  function look(net, text) {
    const { step, vocabulary, banned } = net, row = net.row(spaced(text)).slice(0, LONGEST), own = step.outputs, name = (token) => vocabulary.piece(token).replace(/▁/g, '');
    const inside = step.steps.filter(({ operator }) => operator === 'Softmax').map(({ outputs }) => outputs[0]), weights = inside.map(() => Array.from({ length: HEADS }, () => [])), next = [];
    let state = net.state(1);
    step.outputs = [...own, ...inside];
    for (const token of row) {
      const out = step.run({ token: { type: 'int32', dims: [1], data: Int32Array.of(token) }, ...state }), { data } = out.logp, seen = next.length + 1;
      inside.forEach((one, layer) => weights[layer].forEach((rows, head) => rows.push([...out[one].data.subarray(head * seen, (head + 1) * seen), ...new Array(row.length - seen).fill(0)])));
      next.push([...data.keys()].filter((one) => !banned.has(one)).sort((a, b) => data[b] - data[a]).slice(0, 3).map((one) => [one === net.about.eos ? '⏎' : name(one), Math.exp(data[one])]));
      state = { ...state };
      for (const key of net.changing) state[key] = out[`${key}_out`];
    }
    step.outputs = own;
    return { pieces: row.map((token) => (token === net.about.eos ? '⏎' : name(token))), weights, next };
  }

  // What a head mostly reads, as shares of its weight: the piece before, the piece itself, and, over the pieces that stood earlier
  // too (null without any), the pieces that followed there.
  function habit(pieces, weights) {
    const rows = [...weights.keys()].slice(1), share = (some, reads) => some.reduce((sum, y) => sum + weights[y].reduce((all, weight, x) => all + (reads(y, x) ? weight : 0), 0), 0) / some.length;
    const again = rows.filter((y) => pieces.slice(0, y).includes(pieces[y]));
    return { before: share(rows, (y, x) => x === y - 1), itself: share(rows, (y, x) => x === y), followed: again.length ? share(again, (y, x) => x > 0 && x <= y && pieces[x - 1] === pieces[y]) : null };
  }

  // One head's weights with the words at both axes: rows read columns.
  function named(weights, pieces, label) {
    const cell = 18, left = 14 + 7.5 * Math.max(...pieces.map((piece) => piece.length)), size = weights.length, high = left + size * cell;
    const svg = shape('svg', { viewBox: `0 0 ${high} ${high}`, role: 'img', 'aria-label': label });
    svg.style.width = `${high}px`;
    svg.style.maxWidth = 'none';
    pieces.forEach((piece, at) => {
      const middle = left + (at + 0.5) * cell;
      svg.append(shape('text', { x: left - 6, y: middle + 4, 'font-size': 12.5, 'text-anchor': 'end' }, piece), shape('text', { transform: `translate(${middle + 4} ${left - 6}) rotate(-90)`, 'font-size': 12.5 }, piece));
    });
    weights.forEach((row, y) => row.forEach((weight, x) => svg.append(shape('rect', { x: left + x * cell, y: left + y * cell, width: cell, height: cell, fill: x > y ? 'none' : 'var(--live-1)', 'fill-opacity': weight.toFixed(3), stroke: 'var(--pst-color-border)', 'stroke-width': 0.5 }, shape('title', {}, say('{0} reads {1}', pieces[y], `${pieces[x]}: ${number(weight)}`))))));
    return svg;
  }

  // A small map of one head's weights.
  function map(weights, cell, label) {
    const size = weights.length, svg = shape('svg', { viewBox: `0 0 ${size * cell} ${size * cell}`, role: 'img', 'aria-label': label }, shape('rect', { width: size * cell, height: size * cell, fill: 'var(--pst-color-background)', stroke: 'var(--pst-color-border)' }));
    weights.forEach((row, y) => row.forEach((weight, x) => { if (weight > 0.02) svg.append(shape('rect', { x: x * cell, y: y * cell, width: cell, height: cell, fill: 'var(--live-1)', 'fill-opacity': weight.toFixed(3) })); }));
    return svg;
  }

  async function mount(root) {
    const net = await live.model('heads'), now = { layer: 1, head: 2, word: 10, found: null };
    const input = make('input', { type: 'text', value: 'The first page has a footer and the last page has a header.', maxLength: 150 });
    const grid = make('div', { className: 'live-heads' }), words = make('p', { className: 'live-pieces' }), told = make('p', { 'aria-live': 'polite', className: 'live-told' }), usual = make('p'), large = make('div', { className: 'live-scroll', tabIndex: 0, role: 'group', ariaLabel: say('Map of the chosen head') });
    const listed = (pairs) => pairs.map(([piece, value]) => `“${piece}” ${number(value)}`).join('; ');

    function tint() {
      const { found: { pieces, weights, next }, layer, head, word } = now, row = weights[layer][head][word], percent = (value) => number(100 * value, 0);
      [...words.children].forEach((node, at) => { live.tint(node, row[at]); node.setAttribute('aria-pressed', String(at === word)); node.classList.toggle('live-at', at === word); });
      const best = [...row.keys()].sort((a, b) => row[b] - row[a]).slice(0, 3).filter((at) => row[at] > 0).map((at) => [pieces[at], row[at]]);
      told.textContent = `${say('Layer {0}, head {1}: “{2}” reads {3}.', layer + 1, head + 1, pieces[word], listed(best))} ${say('After it the model expects {0}.', listed(next[word]))}`;
      const { before, itself, followed } = habit(pieces, weights[layer][head]);
      usual.textContent = `${say('On average this head reads the word before with {0} %, the word itself with {1} %', percent(before), percent(itself))}${followed === null ? '' : say(', and at a word that stood earlier what followed there with {0} %', percent(followed))}.`;
    }

    function enlarge() {
      const { found: { pieces, weights }, layer, head } = now;
      large.replaceChildren(named(weights[layer][head], pieces, say('layer {0}, head {1}', layer + 1, head + 1)));
    }

    function draw() {
      const { found } = now;
      now.word = Math.min(now.word, found.pieces.length - 1);
      grid.replaceChildren(...found.weights.flatMap((heads, layer) => heads.map((weights, head) => {
        const name = say('layer {0}, head {1}', layer + 1, head + 1), node = make('button', { type: 'button', ariaPressed: String(layer === now.layer && head === now.head) }, map(weights, 6, name), make('span', { textContent: name }));
        node.addEventListener('click', () => { Object.assign(now, { layer, head }); [...grid.children].forEach((one) => { one.ariaPressed = String(one === node); }); enlarge(); tint(); });
        return node;
      })));
      words.replaceChildren(...found.pieces.map((piece, at) => {
        const node = make('button', { type: 'button', textContent: piece });
        for (const event of ['pointerenter', 'focus', 'click']) node.addEventListener(event, () => { now.word = at; tint(); });
        return node;
      }));
      enlarge();
      tint();
    }

    let waiting;
    const compute = () => { now.found = look(net, input.value); draw(); };
    input.addEventListener('input', () => { clearTimeout(waiting); waiting = setTimeout(compute, 200); });
    root.append(make('label', {}, say('English, as in a help page'), input), words, told, usual, grid, large, make('p', { className: 'live-quiet', textContent: say('Each small map is one head, and the large one the chosen head: rows are the words that read, columns the words that are read; the causal mask leaves the upper half empty. Choose a head, then point at a word, or choose it with Tab. The Transformer has two layers of four heads; it learned to predict the next word of lines of which a part is repeated.') }));
    live.onTheme(tint);
    compute();
  }

  return { look, habit, mount };
})());
