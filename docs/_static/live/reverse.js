// Encoder-decoders that write a string of letters in reverse: without attention, and with attention that enters late or early.
live.part('reverse', (() => {
  const { make, shape, number, say } = live, LETTERS = 'abcdefghijklmnop', KINDS = ['never', 'late', 'input'], TRIED = 20;
  const TITLES = { never: say('no attention'), late: say('attention, late'), input: say('attention, input') };

  const drawn = (chance, length) => Array.from({ length }, () => LETTERS[Math.floor(chance() * LETTERS.length)]);
  const reversed = (letters) => [...letters].reverse();

  // What a model writes for letters: { written, attention [written][read] or null }.
  async function answer(net, letters) {
    const found = await net.answer(letters.join(' '));
    return { written: found.text.split(' ').filter(Boolean), attention: found.attention };
  }

  // How many of some random strings of a length are reversed without an error.
  async function score(net, length, count = TRIED) {
    const chance = live.random(length);
    let right = 0;
    for (let n = 0; n < count; n++) {
      const letters = drawn(chance, length), { written } = await answer(net, letters);
      right += written.join('') === reversed(letters).join('');
    }
    return right / count;
  }

  // The alignment: rows are letters written, columns letters read.
  function alignment(letters, { written, attention }) {
    const cell = 20, [rows, columns] = [written.length, letters.length], text = (x, y, letter) => shape('text', { x, y, 'font-size': 13, 'text-anchor': 'middle' }, letter);
    const svg = shape('svg', { viewBox: `0 0 ${(columns + 1) * cell} ${(rows + 1) * cell}`, role: 'img', 'aria-label': say('Alignment: {0}', written.map((letter, row) => { const weights = [...attention[row]]; return say('{0} reads {1}', letter, letters[weights.indexOf(Math.max(...weights))]); }).join(', ')) });
    letters.forEach((letter, column) => svg.append(text((column + 1.5) * cell, 14, letter)));
    written.forEach((letter, row) => {
      svg.append(text(cell / 2, (row + 1.7) * cell, letter));
      [...(attention[row] ?? [])].forEach((weight, column) => svg.append(shape('rect', { x: (column + 1) * cell + 0.5, y: (row + 1) * cell + 0.5, width: cell - 1, height: cell - 1, fill: 'var(--live-1)', 'fill-opacity': weight.toFixed(3), stroke: 'var(--pst-color-border)', 'stroke-width': 0.5 })));
    });
    return svg;
  }

  async function mount(root) {
    const nets = Object.fromEntries(await Promise.all(KINDS.map(async (kind) => [kind, await live.model(`reverse-${kind}`)])));
    const now = { length: 8, kind: 'input', seed: 1 }, lines = make('div', { 'aria-live': 'polite' }), picture = make('div'), chart = make('div'), busy = make('p', { className: 'live-quiet', role: 'status' }), scores = {};

    async function show() {
      const letters = drawn(live.random(now.seed * 100 + now.length), now.length), wanted = reversed(letters), own = now.seed * 100 + now.length;
      const rows = [];
      let chosen;
      for (const kind of KINDS) {
        const found = await answer(nets[kind], letters), wrong = wanted.filter((letter, at) => letter !== found.written[at]).length + Math.max(0, found.written.length - wanted.length);
        if (kind === now.kind) chosen = found;
        const said = found.written.map((letter, at) => make(letter === wanted[at] ? 'span' : 'mark', { textContent: letter }));
        rows.push(make('tr', {}, make('th', { scope: 'row', textContent: TITLES[kind] }), make('td', { className: 'live-mono' }, ...said), make('td', { textContent: wrong ? say('{0} wrong', wrong) : say('right') })));
      }
      if (own !== now.seed * 100 + now.length) return;
      const given = make('tr', {}, make('th', { scope: 'row', textContent: say('given') }), make('td', { className: 'live-mono', textContent: letters.join('') }), make('td'));
      lines.replaceChildren(make('table', {}, make('tbody', {}, given, ...rows)));
      picture.replaceChildren(chosen.attention ? alignment(letters, chosen) : make('p', { textContent: say('Without attention there is no alignment: the decoder got one vector.') }));
    }

    function plot() {
      const colours = { never: '--live-2', late: '--live-3', input: '--live-1' }, dashes = { never: '', late: '6 3', input: '2 3' };
      chart.replaceChildren(live.lines({
        label: `${say('Share of strings without an error, by length:')} ${KINDS.map((kind) => `${TITLES[kind]} ${(scores[kind] ?? []).map(([length, share]) => `${length}: ${number(share)}`).join('; ')}`).join('; ')}`,
        x: [3, 16], y: [0, 1], ticks: { x: [3, 6, 10, 13, 16], y: [0, 0.5, 1] }, axes: [say('length; training had at most 10'), ''],
        series: KINDS.map((kind) => ({ name: TITLES[kind], colour: colours[kind], dashes: dashes[kind], points: scores[kind] ?? [] })),
      }));
    }

    const measure = live.button(say('Try {0} strings of each length', TRIED), async () => {
      measure.disabled = true;
      for (const kind of KINDS) scores[kind] = [];
      await live.computing(busy, async () => {
        for (let length = 3; length <= 16; length++) {
          for (const kind of KINDS) scores[kind].push([length, await score(nets[kind], length)]);
          plot();
          await new Promise((done) => setTimeout(done));
        }
      });
      measure.disabled = false;
    });

    root.append(
      live.slider(say('length'), { min: 3, max: 16, value: now.length }, (value) => { now.length = value; show(); }),
      make('div', { className: 'live-row' }, live.button(say('Another string'), () => { now.seed += 1; show(); }), measure),
      lines, live.choice(say('Alignment of'), KINDS.map((kind) => [kind, TITLES[kind]]), now.kind, (kind) => { now.kind = kind; show(); }),
      make('div', { className: 'live-square' }, picture), make('p', { className: 'live-quiet', textContent: say('Rows: letters that were written. Columns: letters that were read. The stronger the colour, the more weight.') }),
      make('p', { textContent: say('Share of strings without an error, by length:') }), busy, chart,
    );
    plot();
    await show();
  }

  return { answer, drawn, reversed, score, mount };
})());
