// The translator of `weft demo` in small: its alignment, and the search tree of its beam, step by step.
live.part('translator', (() => {
  const { make, shape, number, say } = live, LONGEST = 160, PAUSE = 450;

  // A translation with the beam after each step: [{ live: [{ piece, parent, sum, path }], ended }]. `parent` is a rank in the step before.
  async function search(net, text, beam) {
    const steps = [];
    const onstep = ({ live: kept, ended, tokens }) => steps.push({
      live: kept.map(({ sum, path }, rank) => ({ sum, path: path.join(' '), piece: net.target.piece(path.at(-1)), parent: tokens[rank].row })),
      ended: ended.map(({ path }) => path.join(' ')),
    });
    const found = await net.answer(text, { beam, onstep });
    return { ...found, steps };
  }

  const plain = (piece) => piece.replace(/▁/g, ' ').trim() || piece;

  // The ranks of the best answer in each step, as far as it was alive: [rank or -1].
  function winner({ steps, pieces }) {
    const wanted = pieces.map(plain).join(' ');
    return steps.map(({ live: kept }, time) => kept.findIndex((one) => time < pieces.length && one.line === wanted.split(' ').slice(0, time + 1).join(' ')));
  }

  // Each live hypothesis as a line of pieces, for comparing it with the answer.
  function named(found) {
    let before = [''];
    for (const { live: kept } of found.steps) {
      for (const one of kept) one.line = `${before[one.parent] ?? ''} ${plain(one.piece)}`.trim();
      before = kept.map((one) => one.line);
    }
    return found;
  }

  function tree(found, until) {
    const wide = 92, tall = 40, steps = found.steps.slice(0, until), beam = Math.max(1, ...found.steps.map((one) => one.live.length)), best = winner(found);
    const [x, y] = [(time) => 26 + time * wide, (rank) => 20 + rank * tall], width = x(found.steps.length) + 30, height = y(beam - 1) + 20;
    const svg = shape('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': say('Search tree, step {0}; the best hypotheses now: {1}', steps.length, steps.at(-1)?.live.map((one) => one.line).join('; ') ?? '–') });
    svg.style.width = `${width}px`;
    svg.style.maxWidth = 'none';
    svg.append(shape('circle', { cx: 14, cy: y(0), r: 5, fill: 'var(--pst-color-text-muted)' }));
    steps.forEach(({ live: kept }, time) => kept.forEach((one, rank) => {
      const chosen = best[time] === rank, from = time ? [x(time - 1) + wide - 34, y(one.parent)] : [19, y(0)], goes = time + 1 < steps.length ? steps[time + 1].live.some((next) => next.parent === rank) : true;
      svg.append(shape('path', { d: `M${from[0]} ${from[1]}C${from[0] + 16} ${from[1]} ${x(time) + 6 - 16} ${y(rank)} ${x(time) + 6} ${y(rank)}`, fill: 'none', stroke: chosen ? 'var(--live-1)' : 'var(--pst-color-text-muted)', 'stroke-width': chosen ? 3 : 1, opacity: goes || chosen ? 1 : 0.45 }));
      const text = plain(one.piece);
      svg.append(shape('text', { x: x(time) + 10, y: y(rank) + 4, 'font-size': 12.5, 'font-weight': chosen ? 700 : 400, opacity: goes || chosen ? 1 : 0.65 }, text.length > 7 ? `${text.slice(0, 3)}…${text.slice(-3)}` : text, shape('title', {}, say('{0}: {1} nats', one.line, number(one.sum, 2)))));
      svg.append(shape('text', { class: 'quiet', x: x(time) + 10, y: y(rank) + 16, 'font-size': 10.5 }, number(one.sum, 2)));
    }));
    return svg;
  }

  async function mount(root) {
    const net = await live.model('translator'), now = { beam: 3, until: 0, found: null, run: 0 };
    const input = make('input', { type: 'text', value: 'Open the folder that contains the picture.', maxLength: LONGEST, lang: 'en' }), source = make('p', { className: 'live-pieces', lang: 'en' }), target = make('p', { className: 'live-pieces', lang: 'es', ariaLive: 'polite' });
    const busy = make('p', { className: 'live-quiet', role: 'status' }), drawn = make('div', { className: 'live-scroll', tabIndex: 0, role: 'group', ariaLabel: say('Search tree') }), list = make('ol');
    let timer;

    function tint(row) {
      [...source.children].forEach((node, at) => { live.tint(node, row ? row[at] : 0); if (!row) node.removeAttribute('style'); });
    }

    function show() {
      const { found } = now;
      source.replaceChildren(...found.source.map((piece) => make('span', { textContent: plain(piece) })));
      target.replaceChildren(...found.pieces.map((piece, at) => {
        const node = make('button', { type: 'button', textContent: plain(piece) });
        for (const name of ['pointerenter', 'focus', 'click']) node.addEventListener(name, () => tint(found.attention?.[at]));
        for (const name of ['pointerleave', 'blur']) node.addEventListener(name, () => tint(null));
        return node;
      }));
      list.replaceChildren(...found.hypotheses.slice(0, now.beam).map((one) => make('li', {}, `${one.text} `, make('span', { className: 'live-quiet', textContent: number(one.score, 3) }))));
      step.limit(found.steps.length);
      reveal(found.steps.length);
    }

    function reveal(until) {
      now.until = until;
      step.set(until);
      drawn.replaceChildren(tree(now.found, until));
    }

    async function translate() {
      const own = ++now.run, text = input.value.trim();
      clearInterval(timer);
      if (!text) { for (const node of [source, target, list, drawn]) node.replaceChildren(); return; }
      const found = await live.computing(busy, async () => (own === now.run ? named(await search(net, text, now.beam)) : null));
      if (!found || own !== now.run) return;
      now.found = found;
      show();
    }

    function play() {
      clearInterval(timer);
      if (!now.found) return;
      reveal(0);
      timer = setInterval(() => {
        reveal(now.until + 1);
        drawn.scrollLeft = Math.max(0, now.until * 92 - drawn.clientWidth + 120);
        if (now.until >= now.found.steps.length) clearInterval(timer);
      }, PAUSE);
    }

    let waiting;
    input.addEventListener('input', () => { clearTimeout(waiting); waiting = setTimeout(translate, 300); });
    const step = live.slider(say('step'), { min: 0, max: 1, value: 1 }, (value) => { clearInterval(timer); if (now.found) reveal(value); });
    root.append(
      make('label', {}, say('English, as in a help page'), input), busy, target, source, make('p', { className: 'live-quiet', textContent: say('Point at a Spanish piece, or choose it with Tab: the English pieces that were read turn blue.') }),
      live.slider(say('beam width'), { min: 1, max: 8, value: now.beam }, (value) => { now.beam = value; translate(); }),
      make('h4', { textContent: say('The search') }), make('div', { className: 'live-row' }, live.button(say('▶ Play'), play)), step, drawn,
      make('p', { className: 'live-quiet', textContent: say('Each column is a step; its rows are the hypotheses that were kept, the best on top, each with its log-probability so far. The bold path became the answer; it may end before the others.') }),
      make('p', { textContent: say('Finished hypotheses, by log-probability per piece:') }), list,
    );
    await translate();
  }

  return { search, named, winner, mount };
})());
