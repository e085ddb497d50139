// A beam search by hand, with its scores: the small grammar of the chapter, step by step. Read next: translator.js, a real one.
live.part('beam', (() => {
  const { say, number, signs, view } = live, LONGEST = 4;
  const AFTER = {
    '<s>': { the: 0.55, a: 0.4, '</s>': 0.05 }, the: { dog: 0.45, cat: 0.35, '</s>': 0.2 }, a: { cat: 0.8, dog: 0.2 },
    cat: { sat: 0.8, ran: 0.15, '</s>': 0.05 }, dog: { sat: 0.4, ran: 0.35, '</s>': 0.25 }, sat: { '</s>': 1 }, ran: { '</s>': 1 },
  };
  const MARK = { kept: '✓', ended: '⏎', dropped: '✗' };

  // [{ text, before, logp, sum, fate }] for each step, best first; a text that ended does not take the place of one that can still grow.
  function search(width) {
    let alive = [{ text: [], last: '<s>', sum: 0 }];
    return Array.from({ length: LONGEST }, () => {
      const longer = alive.flatMap(({ text, last, sum }) => Object.entries(AFTER[last]).map(([word, prob]) => ({ text: [...text, word], last: word, before: sum, logp: Math.log(prob), sum: sum + Math.log(prob) })));
      longer.sort((a, b) => b.sum - a.sum);
      alive = [];
      longer.forEach((one, rank) => {
        one.fate = one.last === '</s>' ? (rank < width ? 'ended' : 'dropped') : alive.length < width ? 'kept' : 'dropped';
        if (one.fate === 'kept') alive.push(one);
      });
      return longer;
    });
  }

  // The finished texts with log P, length and score, the best score first.
  const finished = (steps, alpha) => steps.flat().filter(({ fate }) => fate === 'ended').map((one) => ({ ...one, score: one.sum / one.text.length ** alpha })).sort((a, b) => b.score - a.score);

  const text = (one) => one.text.join(' ');
  const table = (label, rows, columns, values, explain, digits = 3) => view(label, values, (at, n) => ({ text: explain(at, n) }), { rows, columns, digits, wide: true, keys: [label, 'column'], most: 5 });
  const step = (n) => [String(n + 1), ({ steps, width }) => {
    const found = steps[n], kept = found.filter(({ fate }) => fate === 'kept').map(text);
    if (!found.length) return [say('Every hypothesis has ended.'), [table('log P(y)', [''], [''], [[0]], () => '')]];
    const sentence = kept.length ? say('Each hypothesis grows by every word that may follow. The best {0} of those that can still grow are kept ({1}); a text that ends among the best {0} is finished ({2}).', width, MARK.kept, MARK.ended) : say('Here every text ends; those among the best {0} are finished.', width);
    return [sentence, [table('log P(y)', found.map((one) => `${MARK[one.fate]} ${text(one)}`), [say('before'), 'log P', say('sum')], found.map(({ before, logp, sum }) => [before, logp, sum]),
      (at, column) => (column === 2 ? `${signs(found[at].before)} + ${signs(found[at].logp)}` : column ? `ln ${number(Math.exp(found[at].logp))}` : ''))]];
  }];
  const END = [say('Finished texts'), ({ steps, alpha }) => {
    const found = finished(steps, alpha);
    return [say('The finished texts are compared by log P / Tᵅ, with T tokens and α = {0}. The best one is the answer: “{1}”.', number(alpha, 1), text(found[0])), [table(say('score'), found.map(text), ['log P', 'T', say('score')], found.map((one) => [one.sum, one.text.length, one.score]),
      (at, column) => (column === 2 ? `${signs(found[at].sum)} / ${found[at].text.length}^${number(alpha, 1)}` : ''), [3, 0, 3])]];
  }];

  function mount(root) {
    const values = { width: 2, alpha: 0 };
    live.stepped(root, [[say('Steps of the search'), Array.from({ length: LONGEST }, (_, n) => step(n))], [say('Answer'), [END]]], { column: 2 }, () => ({ ...values, steps: search(values.width) }), (draw) => [
      live.slider(say('beam width'), { min: 1, max: 4, value: 2 }, (value) => { values.width = value; draw(); }),
      live.slider(say('length penalty α'), { min: 0, max: 2, step: 0.1, value: 0, shown: (value) => number(value, 1) }, (value) => { values.alpha = value; draw(); })]);
  }

  return { search, finished, mount };
})());
