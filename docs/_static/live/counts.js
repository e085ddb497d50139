// Kneser-Ney's counts by steps: bigrams of a few lines, discounts, what they leave for the words, and the probabilities.
live.part('counts', (() => {
  const { make, say, number, signs, view } = live, START = '<s>';

  // Counts and probabilities of the lines, with discounts for what was seen once, twice and more often.
  function estimate(lines, discounts) {
    const texts = lines.map((line) => line.split(/\s+/).filter(Boolean)).filter((one) => one.length), words = [...new Set(texts.flat())], contexts = [START, ...words];
    const count = contexts.map(() => words.map(() => 0)), taken = (value) => (value ? discounts[Math.min(value, 3) - 1] : 0), sum = (values) => values.reduce((all, one) => all + one, 0);
    for (const text of texts) text.forEach((word, n) => { count[contexts.indexOf(n ? text[n - 1] : START)][words.indexOf(word)] += 1; });
    const before = words.map((_, w) => contexts.filter((_, v) => count[v][w])), kinds = before.map((one) => one.length), all = sum(kinds), left = sum(kinds.map(taken)) / all;
    const lower = kinds.map((one) => (one - taken(one)) / all + left / words.length);
    const total = count.map(sum), gamma = count.map((row, v) => (total[v] ? sum(row.map(taken)) / total[v] : 1));
    const seen = count.map((row, v) => row.map((one) => (total[v] ? (one - taken(one)) / total[v] : 0)));
    return { words, contexts, count, before, kinds, all, left, lower, total, gamma, seen, taken, prob: seen.map((row, v) => row.map((one, w) => one + gamma[v] * lower[w])) };
  }

  const BOTH = ({ words, contexts }) => ({ rows: contexts, columns: words, digits: 4, keys: ['v', 'w'] });
  const WORDS = ({ words }) => ({ rows: [''], columns: words, digits: 4, keys: ['row', 'w'] });
  const counts = (all) => view('C(v w)', all.count, () => ({ text: '' }), { ...BOTH(all), digits: 0 });
  const kinds = (all) => view('N(w)', [all.kinds], (_, w) => ({ text: all.before[w].join(', ') }), { ...WORDS(all), digits: 0 });
  const lower = (all) => view('P(w) = (N(w) − D) / Σ N + γ / V', [all.lower], (_, w) => ({ text: `(${all.kinds[w]} − ${number(all.taken(all.kinds[w]))}) / ${all.all} + ${number(all.left, 4)} / ${all.words.length}` }), WORDS(all));
  const seen = (all) => view('(C(v w) − D) / C(v ·)', all.seen, (v, w) => ({ text: all.count[v][w] ? `(${all.count[v][w]} − ${number(all.taken(all.count[v][w]))}) / ${all.total[v]}` : '' }), BOTH(all));
  const gamma = (all) => view('γ(v)', all.gamma.map((one) => [one]), (v) => ({ text: all.total[v] ? `(${all.count[v].filter(Boolean).map((one) => number(all.taken(one))).join(' + ')}) / ${all.total[v]}` : say('nothing follows') }), { rows: all.contexts, columns: [''], digits: 4, keys: ['v', 'only'] });
  const STEPS = [
    [say('Counts'), (all) => [say('How often the word of the column follows the word of the row. {0} stands before each line.', START), [counts(all)]]],
    [say('Words before'), (all) => [say('In each column the rows that are not 0: after how many different words it occurs. That is N(w), not how often the word occurs.'), [counts(all), kinds(all)]]],
    [say('Single words'), (all) => [say('Every N is reduced by its discount D. What the discounts took, γ, is shared equally by all {0} words.', all.words.length), [kinds(all), lower(all)]]],
    [say('Discount'), (all) => [say('Every count of a pair is reduced too, and divided by the sum of its row.'), [counts(all), seen(all)]]],
    [say('What is left'), (all) => [say('The discounts taken in a row, divided by its sum: the probability that is left for words that have not followed yet.'), [counts(all), gamma(all)]]],
    ['P(w | v)', (all) => [say('The rest is shared as P(w) says. A pair that was never seen gets γ(v) · P(w), and each row adds up to 1.'), [lower(all), gamma(all), view('P(w | v) = (C − D) / C(v ·) + γ(v) P(w)', all.prob, (v, w) => ({ text: `${number(all.seen[v][w], 4)} + ${number(all.gamma[v], 4)} · ${number(all.lower[w], 4)}` }), BOTH(all))]]],
  ];

  function mount(root) {
    const text = make('textarea', { rows: 3, value: 'new york is old\nnew york is big\nold is new', maxLength: 300 }), discounts = [0.5, 1, 1.5], now = { v: 1, w: 1 };
    const content = () => { const found = estimate(text.value.toLowerCase().split('\n'), discounts); return found.words.length ? found : null; };
    live.stepped(root, [[say('Kneser-Ney'), STEPS]], now, content, (draw) => {
      text.addEventListener('input', draw);
      return [make('label', {}, say('Lines of a text'), text), ...['₁', '₂', '₃'].map((sub, n) => live.slider(`D${sub}`, { min: 0, max: n + 1, step: 0.05, value: discounts[n], shown: (value) => number(value) }, (value) => { discounts[n] = value; draw(); }))];
    });
  }

  return { estimate, mount };
})());
