// Back-propagation through time, arrow by arrow, in a network of one unit: h = tanh(w x + u h). Read next: reach.js.
live.part('bptt', (() => {
  const { say, number, signs, view, plain } = live, INPUTS = [1, 0.5, -0.5, 1], LAST = INPUTS.length;
  const sub = (n) => '₀₁₂₃₄'[n];

  // States h₀ to h₄, the loss, its gradient at each state, and those of both weights.
  function run({ w, u, y }) {
    const h = [0];
    for (const x of INPUTS) h.push(Math.tanh(w * x + u * h.at(-1)));
    const slope = h.map((one) => 1 - one ** 2), delta = new Array(LAST + 1).fill(0);
    delta[LAST] = h[LAST] - y;
    for (let t = LAST; t > 1; t--) delta[t - 1] = delta[t] * slope[t] * u;
    const inner = delta.map((one, t) => one * slope[t]), sum = (other) => inner.slice(1).reduce((all, one, t) => all + one * other[t], 0);
    return { w, u, y, h, slope, delta, inner, loss: (h[LAST] - y) ** 2 / 2, du: sum(h), dw: sum(INPUTS) };
  }

  // A row of numbers for the steps from `first` on.
  const row = (label, values, first, explain = () => '') => view(label, [values], (_, n) => ({ text: explain(n + first) }), { columns: values.map((_, n) => `t = ${n + first}`), rows: [''], keys: ['row', `t${first}`], digits: 4 });
  const one = (label, value, text) => view(label, [[value]], () => ({ text }), { columns: [''], rows: [''], keys: ['row', 'only'], digits: 4 });
  const x = (until = LAST) => row('x', INPUTS.slice(0, until), 1);
  const state = ({ w, u, h }) => (t) => `tanh(${signs(w)} · ${signs(INPUTS[t - 1])} + ${signs(u)} · ${signs(h[t - 1])})`;
  const forward = (t) => [`h${sub(t)}`, (all) => [say('Step {0}: the input times w, the state before times u, and tanh.', t), [x(t), row('h = tanh(w x + u h)', all.h.slice(1, t + 1), 1, state(all))]]];
  const back = (t) => [`δ${sub(t)}`, (all) => [
    t === LAST ? say('The gradient begins at the last state: the derivative of the loss.') : say('One arrow back: times the slope of tanh at step {0}, times u.', t + 1),
    [row('h', all.h.slice(t), t), row('1 − h²', all.slope.slice(t), t, (n) => `1 − ${signs(all.h[n])}²`),
      row('δ = δ · (1 − h²) · u', all.delta.slice(t), t, (n) => (n === LAST ? `${signs(all.h[LAST])} − ${signs(all.y)}` : [all.delta[n + 1], all.slope[n + 1], all.u].map(signs).join(' · ')))]]];
  const weight = (name, factor, values, sentence) => [`∂L/∂${name}`, (all) => [sentence, [
    row('δ · (1 − h²)', all.inner.slice(1), 1, (n) => `${signs(all.delta[n])} · ${signs(all.slope[n])}`), values(all),
    one(`∂L/∂${name} = Σ δ · (1 − h²) · ${factor}`, all[`d${name}`], INPUTS.map((input, n) => `${signs(all.inner[n + 1])} · ${signs(name === 'u' ? all.h[n] : input)}`).join(' + '))]]];
  const GROUPS = [
    [say('Forwards'), [...INPUTS.map((_, n) => forward(n + 1)), ['L', (all) => [say('The loss is half of the squared distance between the last state and the target y.'), [one('h₄', all.h[LAST], ''), one('L = (h₄ − y)² / 2', all.loss, `(${signs(all.h[LAST])} − ${signs(all.y)})² / 2`)]]]]],
    [say('Backwards'), INPUTS.map((_, n) => back(LAST - n))],
    [say('Weights'), [
      weight('u', 'h', ({ h }) => row(say('h, one step before'), h.slice(0, LAST), 1), say('u was used at every step, so its gradient is a sum over all steps. The far ones add little when δ has faded.')),
      weight('w', 'x', () => x(), say('The same for w, with the input in place of the state before.'))]],
  ];

  function mount(root) {
    const values = { w: 0.5, u: 0.9, y: 1 };
    live.stepped(root, GROUPS, {}, () => run(values), (draw) => [['w', say('weight w'), -2, 2], ['u', say('weight u'), -2, 2], ['y', say('target y'), -1, 1]].map(([name, label, min, max]) => live.slider(label, { min, max, step: 0.05, value: values[name], shown: (value) => number(value) }, (value) => { values[name] = value; draw(); })));
  }

  return { run, mount };
})());
