// Byte pairs, merge by merge: which two pieces stand side by side most often, and what the words become.
live.part('pairs', (() => {
  const { make, say, view, plain } = live, MERGES = 8, SHOWN = 8;

  // Pieces with each neighbouring pair `two` joined.
  function joined(pieces, two) {
    const made = [];
    for (let at = 0; at < pieces.length; at++) {
      const fits = two && pieces[at] === two[0] && pieces[at + 1] === two[1];
      made.push(fits ? two.join('') : pieces[at]);
      if (fits) at++;
    }
    return made;
  }

  // "low 5 newest" as [[word, count]]; without a number a word counts once.
  function counted(text) {
    const words = new Map();
    for (const [, word, count] of text.toLowerCase().matchAll(/(\p{L}+)\s*(\d{1,4})?/gu)) words.set(word, (words.get(word) ?? 0) + Number(count ?? 1));
    return [...words];
  }

  // Each merge: the pairs with their counts, most frequent first, and all words after it. `word` is split by the same merges.
  function merges(words, word, most = MERGES) {
    let rows = words.map(([one, count]) => [['▁', ...one], count]), other = ['▁', ...word];
    return Array.from({ length: most }, () => {
      const counts = new Map();
      rows.forEach(([pieces, count], n) => pieces.slice(1).forEach((piece, at) => {
        const name = `${pieces[at]} ${piece}`, seen = counts.get(name) ?? { two: [pieces[at], piece], count: 0, from: new Map() };
        seen.count += count;
        seen.from.set(words[n][0], (seen.from.get(words[n][0]) ?? 0) + count);
        counts.set(name, seen);
      }));
      const pairs = [...counts].map(([name, seen]) => ({ name, ...seen })).sort((a, b) => b.count - a.count), two = pairs[0]?.two;
      rows = rows.map(([pieces, count]) => [joined(pieces, two), count]);
      other = joined(other, two);
      return { pairs, rows, other };
    });
  }

  const column = (label, names, values, about) => view(label, values.map((value) => [value]), (at) => ({ text: about?.(at) ?? '' }), { rows: names, columns: [''], digits: 0, wide: true, keys: [label, 'only'] });
  const step = (n) => [String(n + 1), ({ all }) => {
    const { pairs, rows, other } = all[n];
    if (!pairs.length) return [say('Every word is one piece: no pair is left.'), [column(say('words after the merge'), rows.map(([pieces]) => pieces.join(' ')), rows.map(([, count]) => count))]];
    const shown = pairs.slice(0, SHOWN), first = shown[0];
    return [say('Merge {0}: “{1}” stands side by side most often, {2} times. It becomes the piece “{3}”.', n + 1, first.name, live.local(first.count), first.two.join('')), [
      column(say('words after the merge'), rows.map(([pieces]) => pieces.join(' ')), rows.map(([, count]) => count)),
      ...(other.length > 1 ? [column(say('pieces of the new word'), [other.join(' ')], [other.length])] : []),
      column(say('how often the pair occurs'), shown.map(({ name }) => name), shown.map(({ count }) => count), (at) => [...shown[at].from].map(([word, count]) => `${live.local(count)} (${word})`).join(' + '))]];
  }];

  function mount(root) {
    const text = make('input', { type: 'text', value: 'low 5 lower 2 newest 6 widest 3', maxLength: 200 }), word = make('input', { type: 'text', value: 'lowest', maxLength: 30 });
    const content = () => { const words = counted(text.value); return words.length ? { all: merges(words, word.value.toLowerCase().trim()) } : null; };
    live.stepped(root, [[say('Merges'), Array.from({ length: MERGES }, (_, n) => step(n))]], {}, content, (draw) => {
      for (const input of [text, word]) input.addEventListener('input', draw);
      return [make('label', {}, say('Words of the text, with their counts'), text), make('label', {}, say('A new word'), word)];
    });
  }

  return { counted, merges, mount };
})());
