// N-grams and a letter model side by side: what each thinks comes next, and what each would write.
live.part('letters', (() => {
  const { make, number, say } = live, START = '\u0002', ORDERS = 6, WRITTEN = 160;
  const add = (map, key, by = 1) => map.set(key, (map.get(key) ?? 0) + by);

  // Counts of a text's n-grams by context, for each order: [Map context -> Map letter -> count], as Kneser and Ney count.
  function counted(text, order) {
    const whole = [START, ...text], levels = Array.from({ length: order }, () => new Map());
    const into = (level, gram, by) => {
      const context = gram.slice(0, -1), letter = gram.at(-1);
      if (!levels[level].has(context)) levels[level].set(context, new Map());
      add(levels[level].get(context), letter, by);
    };
    const joined = whole.join(''), kinds = Array.from({ length: order + 1 }, () => new Map());
    for (let size = 1; size <= order; size++) for (let end = Math.max(size, 2); end <= joined.length; end++) add(kinds[size], joined.slice(end - size, end));
    for (let size = 1; size <= order; size++) {
      for (const [gram, count] of kinds[size]) if (size === order || gram[0] === START) into(size - 1, gram, count); // occurrences
      if (size < order) for (const gram of kinds[size + 1].keys()) into(size - 1, gram.slice(1), 1); // kinds of predecessors
    }
    return levels;
  }

  // D₁, D₂, D₃ of an order from its counts of counts.
  function discounts(level) {
    const n = [0, 0, 0, 0, 0];
    for (const letters of level.values()) for (const count of letters.values()) if (count <= 4) n[count] += 1;
    if (!n[1] || !n[2] || !n[3]) return [0.5, 1, 1.5];
    const y = n[1] / (n[1] + 2 * n[2]), found = [1 - 2 * y * n[2] / n[1], 2 - 3 * y * n[3] / n[2], 3 - 4 * y * n[4] / n[3]];
    return found.every((one, at) => one >= 0 && one <= at + 1) ? found : [0.5, 1, 1.5];
  }

  // An interpolated modified Kneser-Ney model of letters: { letters, probs(text) -> one probability for each letter }.
  function kneserNey(text, order) {
    const letters = [...new Set(text)].sort(), levels = counted(text, order), taken = levels.map(discounts);
    const probs = (before) => {
      const past = START + before;
      let found = letters.map(() => 1 / letters.length);
      for (let size = 0; size < order && size <= past.length; size++) {
        const seen = levels[size].get(past.slice(past.length - size));
        if (!seen) break;
        let total = 0, left = 0;
        const cut = (count) => (count ? taken[size][Math.min(count, 3) - 1] : 0);
        for (const count of seen.values()) { total += count; left += cut(count); }
        found = letters.map((letter, at) => { const count = seen.get(letter) ?? 0; return (count - cut(count)) / total + (left / total) * found[at]; });
      }
      return found;
    };
    return { letters, probs };
  }

  // A letter model drops the space at the end of a text; here it counts.
  function exact(net) {
    const row = net.row.bind(net);
    net.row = (text) => (text.endsWith(' ') ? row(`${text}x`).slice(0, -1) : row(text));
    return net;
  }

  const shown = (letter) => ({ ' ': '␣', '▁': '␣', '\n': '↵' }[letter] ?? letter);

  async function mount(root) {
    const [{ shaped }, text, net] = await Promise.all([live.runtime('writing.js'), live.data('letters-text'), live.model('letters-lstm').then(exact)]);
    const now = { order: 4, temperature: 1, topK: 0, topP: 1, seed: 1 }, models = new Map();
    const grams = () => { if (!models.has(now.order)) models.set(now.order, kneserNey(text, now.order)); return models.get(now.order); };
    const how = () => ({ temperature: now.temperature, topK: now.topK, topP: now.topP });
    const input = make('textarea', { rows: 2, value: 'Click the ', maxLength: 300, spellcheck: false }), known = new Set(text);
    const typed = () => [...input.value].filter((letter) => known.has(letter)).join('');
    const sides = [say('n-grams'), 'LSTM'].map((name) => ({ name, next: make('div'), said: make('output', { className: 'live-said', ariaLive: 'polite' }) }));

    function next() {
      const { letters, probs } = grams(), own = shaped(probs(typed()).map(Math.log), new Set(), how());
      const first = [...own.keys()].filter((at) => own[at] > 0).sort((a, b) => own[b] - own[a]).map((at) => [letters[at], own[at]]), other = net.next(typed(), how());
      [first, other.pieces.map((piece, at) => [piece, other.probs[at]])].forEach((rows, side) => {
        sides[side].next.replaceChildren(live.bars(rows.slice(0, 8).map(([letter, prob]) => [shown(letter), prob, number(prob, 3), `var(${side ? '--live-3' : '--live-2'})`])));
      });
    }

    async function write() {
      const chance = live.random(now.seed), { letters, probs } = grams(), begun = typed();
      let said = '';
      while (said.length < WRITTEN) {
        const own = shaped(probs(begun + said).map(Math.log), new Set(), how()), rest = chance();
        let sum = 0;
        said += letters[Math.max(0, own.findIndex((prob) => (sum += prob) > rest))];
      }
      sides[0].said.textContent = begun + said;
      const answer = await live.computing(sides[1].said, () => net.answer(begun, { ...how(), seed: now.seed, tokens: WRITTEN }));
      sides[1].said.textContent = answer.text;
    }

    const set = (key) => (value) => { now[key] = value; next(); };
    input.addEventListener('input', next);
    root.append(
      make('label', {}, say('Type the beginning of an English help page'), input),
      make('div', { className: 'live-columns' },
        make('div', {}, live.slider(say('n-grams: n'), { min: 1, max: ORDERS, value: now.order }, set('order')), live.slider(say('temperature'), { min: 0.1, max: 2, step: 0.1, value: 1, shown: (value) => number(value, 1) }, set('temperature'))),
        make('div', {}, live.slider('top-k', { min: 0, max: 20, value: 0, shown: (value) => (value ? String(value) : say('all')) }, set('topK')), live.slider('top-p', { min: 0.05, max: 1, step: 0.05, value: 1, shown: (value) => number(value, 2) }, set('topP')))),
      make('div', { className: 'live-columns' }, ...sides.map(({ name, next: bars, said }) => make('div', {}, make('h4', { textContent: say('{0}: the next letter', name) }), bars, said))),
      make('div', { className: 'live-row' }, live.button(say('Write'), () => { now.seed += 1; write(); })),
      make('p', { className: 'live-quiet', textContent: say('Both learned from the same {0},000 letters: n-grams with Kneser-Ney smoothing, and an LSTM of 128 units. ␣ is a space, ↵ the end of a line.', Math.round(text.length / 1000)) }),
    );
    next();
  }

  return { kneserNey, exact, mount };
})());
