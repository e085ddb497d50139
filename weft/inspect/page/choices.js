// Bars of the choices, position by position, and the alternatives of one of them. Read next: points.js.
weft.blocks.choices = (box, data) => {
  const row = weft.element('div', {class: 'choices scroll', role: 'group', 'aria-label': 'positions'});
  const others = weft.element('div', {class: 'others', 'aria-live': 'polite'});
  const bars = data.taken.map((taken, n) => weft.element('button', {onclick: () => show(n), onmouseenter: () => show(n), onfocus: () => show(n), title: taken},
    weft.element('small', {}, (100 * data.prob[n]).toFixed(0) + ' %'),
    weft.element('span', {class: 'well'}, weft.element('i', {style: `height:${Math.max(1, 100 * data.prob[n])}%`})),
    weft.element('b', {dir: 'auto'}, taken), ...(data.given[n] ? [weft.element('small', {dir: 'auto'}, data.given[n])] : [])));
  row.append(...bars);
  row.addEventListener('keydown', event => {
    const step = {ArrowLeft: -1, ArrowRight: 1}[event.key], at = bars.indexOf(document.activeElement);
    if (step && at >= 0 && bars[at + step]) { event.preventDefault(); bars[at + step].focus(); }
  });
  const show = n => {
    bars.forEach((bar, place) => bar.setAttribute('aria-pressed', place === n));
    others.replaceChildren(...data.others[n].flatMap(([name, prob]) => [
      weft.element(name === data.taken[n] ? 'b' : 'span', {dir: 'auto'}, name),
      weft.element('span', {}, weft.element('i', {style: `width:${100 * prob}%;${name === data.taken[n] ? '' : 'opacity:.45'}`})),
      weft.element('span', {}, (100 * prob).toFixed(2) + ' %')]));
  };
  if (bars.length > 1) box.append(row);
  box.append(others);
  show(0);
};
