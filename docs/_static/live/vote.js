// A vote on a claim: choose, then the verdict opens. Read next: docs/_ext/vote.py.
live.part('vote', (() => {
  const { make, choice } = live, VERDICTS = ['holds', 'contradicted', 'undecided', 'not shown at this scale'];

  // How many votes of [[vote, verdict]] agree with their verdicts, as a sentence.
  const tally = (votes) => `You have voted ${votes.length} times and agreed with the measurement ${votes.filter(([vote, verdict]) => vote === verdict).length} times.`;

  function mount(root, place) {
    const details = place.querySelector('.live-verdict'), { verdict } = details.dataset, told = make('p', { 'aria-live': 'polite', className: 'live-told' });
    root.append(choice('Your vote', VERDICTS.map((one) => [one, one]), null, (vote) => {
      place.dataset.vote = vote;
      details.open = true;
      const votes = [...document.querySelectorAll('[data-vote]')].map((one) => [one.dataset.vote, one.querySelector('.live-verdict').dataset.verdict]);
      told.textContent = `Your vote: ${vote}. Measured: ${verdict}. ${votes.length > 1 ? tally(votes) : ''}`;
    }), told);
  }

  return { tally, mount };
})());
