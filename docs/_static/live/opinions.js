// A bag of words and an LSTM judge the same sentence: did the writer like it?
live.part('opinions', (() => {
  const { make, number, say } = live;
  const EXAMPLES = ['I liked it, I did not see all of it', 'I did not like it, I saw all of it', 'I did not see all of it, I liked it'];

  // Words and commas with spaces between them, as in training.
  const split = (text) => text.toLowerCase().replace(/[,.!?;]/g, ' , ').split(/\s+/).filter(Boolean).join(' ').replace(/ ,$/, '');

  // The probability of "liked" for a text, and for its words sorted.
  async function liked(net, text) {
    const { probs } = await net.answer(text);
    return probs.find((one) => one.label === 'liked').prob;
  }

  async function judged(nets, text) {
    const words = split(text), sorted = words.split(' ').sort().join(' ');
    return { words, sorted, bag: await liked(nets.bag, words), lstm: await liked(nets.lstm, words), shuffled: { bag: await liked(nets.bag, sorted), lstm: await liked(nets.lstm, sorted) } };
  }

  async function mount(root) {
    const nets = { bag: await live.model('opinions-bag'), lstm: await live.model('opinions-lstm') }, found = make('div', { 'aria-live': 'polite' });
    const input = make('input', { type: 'text', value: EXAMPLES[0], maxLength: 100, spellcheck: false });
    async function show() {
      const text = input.value, { words, sorted, bag, lstm, shuffled } = await judged(nets, text);
      if (text !== input.value) return;
      const rows = (title, one, other) => [make('p', { textContent: title }), live.bars([[say('bag of words'), one, `${number(100 * one, 0)} %`, 'var(--live-2)'], ['LSTM', other, `${number(100 * other, 0)} %`, 'var(--live-3)']])];
      found.replaceChildren(...rows(say('“{0}”: probability of “liked it”', words), bag, lstm), ...rows(say('The same words in alphabetical order, “{0}”', sorted), shuffled.bag, shuffled.lstm));
    }
    input.addEventListener('input', show);
    const buttons = EXAMPLES.map((text, at) => live.button(say('Example {0}', at + 1), () => { input.value = text; show(); }));
    root.append(make('label', {}, say('Your sentence, with like, love, enjoy, want, value or praise, and see, read, watch, hear, finish or follow'), input), make('div', { className: 'live-row' }, ...buttons), found);
    await show();
  }

  return { split, judged, mount };
})());
