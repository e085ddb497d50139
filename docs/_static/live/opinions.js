// A bag of words and an LSTM judge the same sentence: did the writer like it? Only the order of the words tells.
live.part('opinions', (() => {
  const { make, number, say } = live;
  const EXAMPLES = ['It was good, not bad', 'It was bad, not good', 'I did like it, I did not see all of it', 'I did not like it, I did see all of it'];

  // Words and commas with spaces between them, as in training.
  const split = (text) => text.toLowerCase().replace(/[,.!?;]/g, ' , ').split(/\s+/).filter(Boolean).join(' ').replace(/ ,$/, '');

  // The probability of "liked" for words.
  async function liked(net, words) {
    const { probs } = await net.answer(words);
    return probs.find((one) => one.label === 'liked').prob;
  }

  // What both say of a text and of its words in alphabetical order; unknown words are left out. Null of words that nobody knows.
  async function judged(nets, text) {
    const all = split(text).split(' ').filter(Boolean), known = (word) => nets.lstm.vocabulary.named(word).names.length === 0;
    const [kept, unknown] = [all.filter(known), [...new Set(all.filter((word) => !known(word)))]];
    if (!kept.some((word) => word !== ',')) return { unknown, words: null };
    const words = kept.join(' '), sorted = [...kept].sort().join(' ');
    return { unknown, words, sorted, bag: await liked(nets.bag, words), lstm: await liked(nets.lstm, words), shuffled: { bag: await liked(nets.bag, sorted), lstm: await liked(nets.lstm, sorted) } };
  }

  async function mount(root) {
    const nets = { bag: await live.model('opinions-bag'), lstm: await live.model('opinions-lstm') }, found = make('div', { 'aria-live': 'polite' });
    const input = make('input', { type: 'text', value: EXAMPLES[0], maxLength: 100, spellcheck: false });
    async function show() {
      const text = input.value, { unknown, words, sorted, bag, lstm, shuffled } = await judged(nets, text);
      if (text !== input.value) return;
      const rows = (title, one, other) => [make('p', { textContent: title }), live.bars([[say('bag of words'), one, `${number(100 * one, 0)} %`, 'var(--live-2)'], ['LSTM', other, `${number(100 * other, 0)} %`, 'var(--live-3)']])];
      const left = unknown.length ? [make('p', { className: 'live-quiet', textContent: say('Left out, because the models do not know it: {0}.', unknown.join(', ')) })] : [];
      const verdict = words === null ? [make('p', { textContent: say('Type some of the words below.') })] : [...rows(say('“{0}”: probability of “liked it”', words), bag, lstm), ...rows(say('The same words in alphabetical order, “{0}”', sorted), shuffled.bag, shuffled.lstm)];
      found.replaceChildren(...left, ...verdict);
    }
    input.addEventListener('input', show);
    const buttons = EXAMPLES.map((text, at) => live.button(say('Example {0}', at + 1), () => { input.value = text; show(); }));
    const words = 'it was, I did, not, all of it; like, love, enjoy, want, value, praise; see, read, watch, hear, finish, follow; good, great, funny, clever, lovely, exciting; bad, boring, dull, poor, silly, slow';
    root.append(make('label', {}, say('Your sentence'), input), make('div', { className: 'live-row' }, ...buttons), found, make('p', { className: 'live-quiet' }, say('The words that they know:'), ' ', make('span', { lang: 'en', textContent: words })));
    await show();
  }

  return { split, judged, mount };
})());
