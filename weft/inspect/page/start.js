// Puts every view on the page: those near the window at once, those further down on scrolling.
(() => {
  const main = document.querySelector('main'), nav = document.querySelector('nav');
  const waiting = new Map();
  const build = section => {
    const view = waiting.get(section);
    if (!view) return;
    waiting.delete(section);
    section.style.minHeight = '';
    // Charts are placed side by side if the window is wide enough, each with the text that follows it.
    const side = view.blocks.filter(block => block.kind === 'lines').length > 1;
    let grid = null, cell = null, rest = null;
    const places = view.blocks.map(block => {
      if (side && block.kind === 'lines') {
        if (!grid) section.append(grid = weft.element('div', {class: 'charts'}));
        grid.append(cell = weft.element('div'));
        rest = null;
      } else if (block.kind !== 'text') grid = cell = null;
      if (cell) return cell;
      if (!rest) section.append(rest = weft.element('div'));
      return rest;
    }); // create all boxes before drawing, because each chart uses the width that it finds
    view.blocks.forEach((block, n) => weft.blocks[block.kind](places[n], block));
  };
  const margin = 1200;
  const near = new IntersectionObserver(seen => seen.forEach(one => { if (one.isIntersecting) { near.unobserve(one.target); build(one.target); } }), {rootMargin: `${margin}px`});
  const views = JSON.parse(document.getElementById('data').textContent);
  views.forEach((view, n) => {
    const name = 'view-' + (n + 1);
    nav.append(weft.element('a', {href: '#' + name}, view.title));
    const section = weft.element('section', {id: name, 'aria-label': view.title, style: 'min-height:420px'}, weft.element('h2', {}, view.title));
    main.append(section);
    waiting.set(section, view);
  });
  [...waiting.keys()].filter(section => section.getBoundingClientRect().top < innerHeight + margin).forEach(build);
  for (const section of waiting.keys()) near.observe(section);
  addEventListener('beforeprint', () => [...waiting.keys()].forEach(build));
  addEventListener('keydown', event => { if (event.key === 'Escape') weft.tip(event); });
  document.documentElement.dataset.ready = 'yes';
})();
