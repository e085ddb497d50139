// Gradient reach: the product of the factors of one unit, step by step, beside the measured reach of trained networks.
live.part('reach', (() => {
  const { make, number, say } = live;

  // The derivative of the last state with respect to the state `lag` steps before it, for lag 0, 1, …; h_t = f(w h_(t-1)).
  function products(weight, steps, { tanh = true, start = 0.5 } = {}) {
    const factors = [];
    for (let t = 0, h = start; t < steps; t++) {
      h = tanh ? Math.tanh(weight * h) : weight * h;
      factors.push(weight * (tanh ? 1 - h * h : 1));
    }
    let product = 1;
    return [1, ...factors.reverse().map((factor) => { product *= factor; return product; })];
  }

  const power = (value) => `10${[...String(value)].map((one) => '⁰¹²³⁴⁵⁶⁷⁸⁹'[one] ?? '⁻').join('')}`;
  const level = (value) => Math.log10(Math.max(1e-30, Math.abs(value)));
  const three = (value) => live.local(value, { maximumSignificantDigits: 3 });

  function shown(value) {
    if (!value || (value >= 0.001 && value < 10000)) return three(value);
    const [digits, exponent] = value.toExponential(2).split('e').map(Number);
    return `${three(digits)} · ${power(exponent)}`;
  }

  async function mount(root) {
    const measured = await live.data('reach'), now = { weight: 0.9, steps: 50, tanh: true, start: 0.5 }, chart = make('div'), told = make('p', { 'aria-live': 'polite', className: 'live-told' });
    const show = () => {
      const { weight, steps, tanh, start } = now, own = products(weight, steps, now), last = Math.abs(own.at(-1));
      chart.replaceChildren(live.lines({
        label: say('Reach of the gradient over the distance'), x: [0, 100], y: [-12, 6], ticks: { x: [0, 25, 50, 75, 100], y: [-12, -6, 0, 6] }, shown: (value) => (value ? power(value) : '1'), axes: [say('distance T − t, in steps'), ''],
        series: [
          { name: say('one unit'), colour: '--live-2', points: own.map((value, lag) => [lag, level(value)]) },
          { name: say('{0}, trained', 'Elman'), colour: '--live-1', dashes: '6 3', points: measured.Elman.map((value, lag) => [lag, value]) },
          { name: say('{0}, trained', 'LSTM'), colour: '--live-3', dashes: '2 3', points: measured.LSTM.map((value, lag) => [lag, value]) },
        ],
      }));
      const size = last > 1.05 ? say('Over the distance {0} the gradient grows to {1}.', live.local(steps), shown(last)) : last < 0.95 ? say('Over the distance {0} the gradient shrinks to {1}.', live.local(steps), shown(last)) : say('Over the distance {0} the gradient stays at {1}.', live.local(steps), shown(last));
      const reason = tanh ? say('The state begins at {0}; each factor is w(1 − h²).', number(start, 1)) : say('Without tanh every factor is w.');
      told.textContent = `${size} ${reason}`;
    };
    const set = (key) => (value) => { now[key] = value; show(); };
    root.append(
      live.slider(say('weight w'), { min: 0, max: 2, step: 0.02, value: now.weight, shown: (value) => number(value) }, set('weight')),
      live.slider(say('steps'), { min: 1, max: 100, value: now.steps }, set('steps')),
      live.slider(say('first state'), { min: 0, max: 2, step: 0.1, value: now.start, shown: (value) => number(value, 1) }, set('start')),
      live.choice(say('Unit'), [[true, 'tanh'], [false, say('linear')]], true, set('tanh')), told, chart,
      make('p', { className: 'live-quiet', textContent: say('Trained: networks of 16 units, whose recurrent weights start from N(0, 1/16), after 600 updates on the adding problem of length 30; the mean of three seeds. The vertical axis is logarithmic.') }),
    );
    show();
  }

  return { products, shown, mount };
})());
