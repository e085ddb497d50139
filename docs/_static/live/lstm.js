// One step of an LSTM by hand: the gates of three units are sliders, and every product is shown. Read next: gates.js, a trained LSTM.
live.part('lstm', (() => {
  const { make, say, number, signs, view, plain } = live;
  const RANGES = { f: [0, 1], i: [0, 1], g: [-1, 1], o: [0, 1], c: [-3, 3] };
  const TITLES = { f: say('forget gate f'), i: say('input gate i'), g: say('candidate c̃'), o: say('output gate o'), c: say('cell state c') };
  const START = { f: [0.9, 0.1, 1], i: [0.2, 0.8, 0], g: [0.5, -0.7, 1], o: [0.5, 1, 0.1], c: [2, 1.5, -1] };
  const ABOUT = { columns: ['1', '2', '3'], rows: [say('unit')], keys: ['row', 'unit'], digits: 3 };

  // All numbers of a step, a list with one for each unit, and the way back from δh = 1.
  function step({ f, i, g, o, c }) {
    const each = (compute) => c.map((_, n) => compute(n));
    const kept = each((n) => f[n] * c[n]), written = each((n) => i[n] * g[n]), next = each((n) => kept[n] + written[n]), bounded = next.map(Math.tanh), h = each((n) => o[n] * bounded[n]);
    const dc = each((n) => o[n] * (1 - bounded[n] ** 2));
    return {
      f, i, g, o, c, kept, written, next, bounded, h, dc,
      back: each((n) => dc[n] * f[n]),
      zf: each((n) => dc[n] * c[n] * f[n] * (1 - f[n])),
      zi: each((n) => dc[n] * g[n] * i[n] * (1 - i[n])),
      zg: each((n) => dc[n] * i[n] * (1 - g[n] ** 2)),
      zo: each((n) => bounded[n] * o[n] * (1 - o[n])),
    };
  }

  const row = (label, values) => plain(label, [values], ABOUT);
  const computed = (label, values, explain) => view(label, [values], (_, n) => ({ text: explain(n) }), ABOUT);
  const times = (...factors) => factors.map(signs).join(' · ');
  const STEPS = [
    [say('Forget'), ({ c, f, kept }) => [say('Each number of the old cell state times its forget gate, element by element: the Hadamard product ⊙. 1 keeps, 0 erases.'), [row('c', c), row('f', f), computed('f ⊙ c', kept, (n) => times(f[n], c[n]))]]],
    [say('Write'), ({ i, g, written }) => [say('The candidate is what could be written; the input gate says how much of it is.'), [row('c̃', g), row('i', i), computed('i ⊙ c̃', written, (n) => times(i[n], g[n]))]]],
    [say('Add'), ({ kept, written, next }) => [say('What was kept and what is written are added: the new cell state. Nothing is multiplied by a matrix here.'), [row('f ⊙ c', kept), row('i ⊙ c̃', written), computed('c′ = f ⊙ c + i ⊙ c̃', next, (n) => `${signs(kept[n])} + ${signs(written[n])}`)]]],
    [say('Show'), ({ next, bounded, o, h }) => [say('tanh bounds the new cell state, and the output gate says how much of it the other layers see. A closed gate hides a number without erasing it.'), [row('c′', next), computed('tanh(c′)', bounded, (n) => `tanh(${number(next[n], 3)})`), row('o', o), computed('h′ = o ⊙ tanh(c′)', h, (n) => times(o[n], bounded[n]))]]],
  ];
  const BACK = [
    [say('To the state'), ({ o, bounded, dc, f, back }) => [say('The gradient of h′ is 1 here. It reaches the new cell state through the output gate, and the old one through the forget gate: its factor is f.'), [computed('δc′ = δh′ ⊙ o ⊙ (1 − tanh² c′)', dc, (n) => `1 · ${signs(o[n])} · (1 − ${signs(bounded[n])}²)`), row('f', f), computed('δc = f ⊙ δc′', back, (n) => times(f[n], dc[n]))]]],
    [say('To the gates'), ({ dc, c, f, i, g, o, bounded, zf, zi, zg, zo }) => [say('Each gate gets its gradient before its sigmoid. A gate at 0 or at 1 gets none: σ (1 − σ) is 0 there.'), [
      computed('zᶠ = δc′ ⊙ c ⊙ f ⊙ (1 − f)', zf, (n) => times(dc[n], c[n], f[n], 1 - f[n])), computed('zⁱ = δc′ ⊙ c̃ ⊙ i ⊙ (1 − i)', zi, (n) => times(dc[n], g[n], i[n], 1 - i[n])),
      computed('zᶜ = δc′ ⊙ i ⊙ (1 − c̃²)', zg, (n) => `${times(dc[n], i[n])} · (1 − ${signs(g[n])}²)`), computed('zᵒ = δh′ ⊙ tanh(c′) ⊙ o ⊙ (1 − o)', zo, (n) => `1 · ${times(bounded[n], o[n], 1 - o[n])}`)]]],
  ];

  function mount(root) {
    const now = { unit: 0 }, values = structuredClone(START), told = make('p', { className: 'live-quiet', ariaLive: 'polite' });
    let times = 0;
    live.stepped(root, [[say('Forwards'), STEPS], [say('The way back'), BACK]], now, () => step(values), (draw) => {
      const sliders = Object.entries(RANGES).map(([name, [min, max]]) => [name, live.slider(TITLES[name], { min, max, step: 0.05, value: values[name][0], shown: (value) => number(value) }, (value) => { values[name][now.unit] = value; draw(); })]);
      now.marked = () => {
        for (const [name, slider] of sliders) slider.set(values[name][now.unit]);
        told.textContent = `${say('The sliders move unit {0}; pick another one in a row of numbers.', now.unit + 1)} ${say('Steps taken: {0}.', times)}`;
      };
      const go = (from, taken) => () => { Object.assign(values, from()); times = taken(); draw(); };
      return [
        told, ...sliders.map(([, slider]) => slider),
        make('div', { className: 'live-row' }, live.button(say('Take the step: c becomes c′'), go(() => ({ c: step(values).next }), () => times + 1)), live.button(say('Start again'), go(() => structuredClone(START), () => 0))),
      ];
    });
  }

  return { step, mount };
})());
