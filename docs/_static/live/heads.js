// The attention heads of a small Transformer that fills gaps, on the reader's sentence.
live.part('heads', (() => {
  const { make, shape, number } = live, HEADS = 4, LONGEST = 30;

  // Weights of every head for a text: { pieces, weights: [layer][head][row][column] }. Softmaxes inside the graph are read out.
  function look(net, text) {
    const { graph, vocabulary } = net, { sos, eos, mask } = net.about, inner = vocabulary.encode(text.replace(/\[mask\]/gi, '')).slice(0, LONGEST), tokens = [sos, ...inner, eos], size = tokens.length;
    const inside = graph.steps.filter(({ operator }) => operator === 'Softmax').map(({ outputs }) => outputs[0]), own = graph.outputs;
    graph.outputs = [...own, ...inside];
    const tensor = (type, data) => ({ type, dims: [1, size], data });
    const out = graph.run({ tokens: tensor('int32', Int32Array.from(tokens)), mask: tensor('bool', new Uint8Array(size).fill(1)) });
    graph.outputs = own;
    const weights = inside.map((name) => Array.from({ length: HEADS }, (_, head) => Array.from({ length: size }, (_, row) => Array.from(out[name].data.subarray((head * size + row) * size, (head * size + row + 1) * size)))));
    return { pieces: ['<s>', ...inner.map((token) => vocabulary.piece(token).replace(/▁/g, '')), '</s>'], weights, mask };
  }

  // A map of one head's weights: rows read columns.
  function map(weights, cell, label) {
    const size = weights.length, svg = shape('svg', { viewBox: `0 0 ${size * cell} ${size * cell}`, role: 'img', 'aria-label': label }, shape('rect', { width: size * cell, height: size * cell, fill: 'var(--pst-color-background)', stroke: 'var(--pst-color-border)' }));
    weights.forEach((row, y) => row.forEach((weight, x) => { if (weight > 0.02) svg.append(shape('rect', { x: x * cell, y: y * cell, width: cell, height: cell, fill: 'var(--live-1)', 'fill-opacity': weight.toFixed(3) })); }));
    return svg;
  }

  // What a head mostly does: how far its rows look, on average, and which place they like.
  function habit(weights) {
    const size = weights.length, mean = (compute) => weights.reduce((sum, row, y) => sum + row.reduce((own, weight, x) => own + weight * compute(y, x), 0), 0) / size;
    const [before, itself, after] = [mean((y, x) => x === y - 1), mean((y, x) => x === y), mean((y, x) => x === y + 1)];
    return [['the piece before', before], ['itself', itself], ['the piece after', after]].map(([name, share]) => `${name} ${number(100 * share, 0)} %`).join(', ');
  }

  async function mount(root) {
    const net = await live.model('heads'), now = { layer: 0, head: 0, word: 1, found: null };
    const input = make('input', { type: 'text', value: 'Click the button to open the dialog and choose a file.', maxLength: 150 });
    const grid = make('div', { className: 'live-heads' }), words = make('p', { className: 'live-pieces' }), told = make('p', { 'aria-live': 'polite', className: 'live-told' });

    function tint() {
      const { found, layer, head, word } = now, row = found.weights[layer][head][word];
      [...words.children].forEach((node, at) => { live.tint(node, row[at]); node.setAttribute('aria-pressed', String(at === word)); node.classList.toggle('live-at', at === word); });
      const best = [...row.keys()].sort((a, b) => row[b] - row[a]).slice(0, 3).map((at) => `“${found.pieces[at]}” ${number(row[at])}`);
      told.textContent = `Layer ${layer + 1}, head ${head + 1}: “${found.pieces[word]}” reads ${best.join(', ')}. On average this head reads ${habit(found.weights[layer][head])}.`;
    }

    function draw() {
      const { found } = now;
      now.word = Math.min(now.word, found.pieces.length - 1);
      grid.replaceChildren(...found.weights.flatMap((heads, layer) => heads.map((weights, head) => {
        const name = `layer ${layer + 1}, head ${head + 1}`, node = make('button', { type: 'button', ariaPressed: String(layer === now.layer && head === now.head) }, map(weights, 6, name), make('span', { textContent: name }));
        node.addEventListener('click', () => { Object.assign(now, { layer, head }); [...grid.children].forEach((one) => { one.ariaPressed = String(one === node); }); tint(); });
        return node;
      })));
      words.replaceChildren(...found.pieces.map((piece, at) => {
        const node = make('button', { type: 'button', textContent: piece });
        for (const event of ['pointerenter', 'focus', 'click']) node.addEventListener(event, () => { now.word = at; tint(); });
        return node;
      }));
      tint();
    }

    let waiting;
    const compute = () => { now.found = look(net, input.value); draw(); };
    input.addEventListener('input', () => { clearTimeout(waiting); waiting = setTimeout(compute, 200); });
    root.append(make('label', {}, 'English, as in a help page', input), words, told, grid, make('p', { className: 'live-quiet', textContent: 'Each map is one head: rows are the pieces that read, columns the pieces that are read. Choose a head, then point at a piece, or choose it with Tab. The Transformer has two layers of four heads and was trained briefly to fill gaps in help pages.' }));
    live.onTheme(tint);
    compute();
  }

  return { look, mount };
})());
