// Complex numbers beside the unit circle. Read next: start.js.
weft.blocks.plane = (box, data) => {
  const outer = weft.element('figure', {style: 'margin:10px 0 4px'});
  box.append(outer);
  weft.redraw(() => {
    const size = Math.max(260, Math.min(460, box.clientWidth || 460)), middle = size / 2;
    const reach = Math.max(1.05, ...data.x.map(Math.abs), ...data.y.map(Math.abs)), scale = (middle - 24) / reach;
    const px = x => middle + x * scale, py = y => middle - y * scale;
    const svg = weft.svg('svg', {width: size, height: size, role: 'img', 'aria-label': `${data.title}; ${data.x.length} points`});
    svg.append(weft.svg('line', {x1: 8, x2: size - 8, y1: middle, y2: middle, stroke: weft.css('--line')}));
    svg.append(weft.svg('line', {x1: middle, x2: middle, y1: 8, y2: size - 8, stroke: weft.css('--line')}));
    svg.append(weft.svg('circle', {cx: middle, cy: middle, r: scale, fill: 'none', stroke: weft.css('--faint'), 'stroke-width': 1.2}));
    svg.append(weft.svg('text', {x: px(1) + 4, y: middle + 14, class: 'faint'}, '1'));
    svg.append(weft.svg('text', {x: middle + 5, y: py(1) - 4, class: 'faint'}, 'i'));
    data.x.forEach((x, n) => {
      const y = data.y[n], size = Math.hypot(x, y), turn = Math.abs(Math.atan2(y, x));
      const point = weft.svg('circle', {cx: px(x), cy: py(y), r: 3.2, fill: weft.css('--c0'), 'fill-opacity': 0.7});
      point.addEventListener('mousemove', event => weft.tip(event, `${weft.number(x)} ${y < 0 ? '−' : '+'} ${weft.number(Math.abs(y))} i\nsize ${weft.number(size)}` +
        (turn > 1e-6 ? `\none turn in ${weft.number(2 * Math.PI / turn)} steps` : '')));
      point.addEventListener('mouseleave', event => weft.tip(event));
      svg.append(point);
    });
    outer.replaceChildren(weft.element('h3', {}, data.title), svg);
  });
};
