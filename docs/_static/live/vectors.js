// Word vectors: the neighbours of a word, and analogies.
live.part('vectors', (() => {
  const { make, number, say } = live, SHOWN = 8;

  // The words and their vectors, each of length 1.
  function table({ words, size, table: text }) {
    const names = words.split(' '), integers = Int8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const rows = names.map((_, at) => unit(Array.from(integers.subarray(at * size, (at + 1) * size))));
    return { names, rows, places: new Map(names.map((name, at) => [name, at])) };
  }

  function unit(row) {
    const length = Math.hypot(...row) || 1;
    return row.map((one) => one / length);
  }

  // The words nearest to a vector by cosine, without some: [[word, cosine]].
  function near({ names, rows }, vector, without = [], count = SHOWN) {
    const own = unit(vector), found = rows.map((row, at) => [names[at], row.reduce((sum, one, n) => sum + one * own[n], 0)]);
    return found.filter(([name]) => !without.includes(name)).sort((a, b) => b[1] - a[1]).slice(0, count);
  }

  const neighbours = (all, word) => near(all, all.rows[all.places.get(word)], [word]);

  // a is to b as c is to ...: the words nearest to b − a + c.
  function analogy(all, a, b, c) {
    const [x, y, z] = [a, b, c].map((word) => all.rows[all.places.get(word)]);
    return near(all, y.map((one, n) => one - x[n] + z[n]), [a, b, c]);
  }

  async function mount(root) {
    const all = table(await live.data('vectors')), list = make('datalist', { id: 'live-words' }, ...all.names.filter((name) => /^[A-Za-z]{3,}$/.test(name)).slice(0, 800).map((value) => make('option', { value })));
    const field = (label, value, change) => { const input = make('input', { type: 'text', value, spellcheck: false, autocapitalize: 'off' }); input.setAttribute('list', 'live-words'); input.addEventListener('input', change); return { input, node: make('label', {}, label, input) }; };
    const known = (word) => all.places.has(word), listed = (rows, colour) => live.bars(rows.map(([name, cosine]) => [name, cosine, number(cosine), `var(${colour})`]));
    const lacking = (words) => make('p', { textContent: say('Not among the {0} words: {1}.', all.names.length, words.filter((word) => !known(word)).join(', ') || say('(nothing typed)')) });
    const first = make('div', { 'aria-live': 'polite' }), second = make('div', { 'aria-live': 'polite' });
    const word = field(say('A word'), 'folder', () => showNear()), parts = [['a', 'row'], [say('is to b'), 'column'], [say('as c is to …'), 'rows']].map(([label, value]) => field(label, value, () => showAnalogy()));
    function showNear() { const text = word.input.value.trim().toLowerCase(); first.replaceChildren(known(text) ? listed(neighbours(all, text), '--live-1') : lacking([text])); }
    function showAnalogy() { const words = parts.map(({ input }) => input.value.trim().toLowerCase()); second.replaceChildren(words.every(known) ? listed(analogy(all, ...words), '--live-3') : lacking(words)); }
    root.append(list, make('div', { className: 'live-columns' }, make('div', {}, make('h4', { textContent: say('Neighbours') }), word.node, first), make('div', {}, make('h4', { textContent: say('Analogies') }), ...parts.map(({ node }) => node), second)));
    showNear();
    showAnalogy();
  }

  return { table, neighbours, analogy, mount };
})());
