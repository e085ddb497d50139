// A vote on a claim or a question: choose, then the verdict opens; a class is counted by hand. Read next: docs/_ext/vote.py.
live.part('vote', (() => {
  const { make, choice, say } = live, VERDICTS = ['holds', 'contradicted', 'undecided', 'not shown at this scale'];
  const WORDS = { holds: say('holds'), contradicted: say('contradicted'), undecided: say('undecided'), 'not shown at this scale': say('not shown at this scale') };
  const word = (one) => WORDS[one] ?? one;

  // How many votes of [[vote, verdict]] agree with their verdicts, as a sentence.
  const tally = (votes) => say('Votes: {0}; right: {1}.', votes.length, votes.filter(([vote, verdict]) => vote === verdict).length);

  // The raised hands of a class: a number for each option, and bars.
  function hands(options) {
    const counts = options.map(() => 0), bars = make('div'), node = make('details', { className: 'live-hands' }, make('summary', { textContent: say('Count the hands of a class') }));
    const show = () => bars.replaceChildren(live.bars(options.map((one, n) => [word(one), counts[n], String(counts[n])]), Math.max(1, ...counts)));
    const inputs = options.map((one, n) => {
      const input = make('input', { type: 'number', min: 0, max: 999, value: 0, inputMode: 'numeric' });
      input.addEventListener('input', () => { counts[n] = Math.max(0, Math.floor(Number(input.value) || 0)); show(); });
      return make('label', {}, word(one), ' ', input);
    });
    show();
    node.append(make('div', { className: 'live-row' }, ...inputs), bars);
    return node;
  }

  function mount(root, place) {
    const details = place.querySelector('.live-verdict'), { verdict } = details.dataset, told = make('p', { 'aria-live': 'polite', className: 'live-told' }), asked = place.querySelector('.live-options');
    const options = asked ? [...asked.children].map((_, n) => 'ABCD'[n]) : VERDICTS;
    root.append(choice(say('Your vote'), options.map((one) => [one, word(one)]), null, (vote) => {
      place.dataset.vote = vote;
      details.open = true;
      const votes = [...document.querySelectorAll('[data-vote]')].map((one) => [one.dataset.vote, one.querySelector('.live-verdict').dataset.verdict]);
      const sentence = asked ? say('Your vote: {0}. Right is {1}.', vote, verdict) : say('Your vote: {0}. Measured: {1}.', word(vote), word(verdict));
      told.textContent = `${sentence} ${votes.length > 1 ? tally(votes) : ''}`;
    }), told, hands(options));
  }

  return { tally, mount };
})());
