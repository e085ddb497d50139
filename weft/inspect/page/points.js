// Named points in a plane. Read next: plane.js.
weft.blocks.points = (box, data) => {
  const outer = weft.element('figure', {style: 'margin:10px 0 4px'});
  box.append(outer);
  weft.redraw(() => {
    const width = Math.max(280, Math.min(1400, box.clientWidth || 800)), height = Math.round(Math.min(680, width * 0.7));
    const [x0, x1, y0, y1] = [Math.min(...data.x), Math.max(...data.x), Math.min(...data.y), Math.max(...data.y)];
    const px = x => 24 + (x - x0) / (x1 - x0 || 1) * (width - 110), py = y => height - 18 - (y - y0) / (y1 - y0 || 1) * (height - 40);
    const svg = weft.svg('svg', {width, height, role: 'img', 'aria-label': data.title});
    if (data.joined) svg.append(weft.svg('polyline', {points: data.x.map((x, n) => `${px(x)},${py(data.y[n])}`).join(' '), fill: 'none', stroke: weft.css('--line'), 'stroke-width': 1.5}));
    const taken = [];
    const order = [...data.names.keys()].sort((a, b) => data.ours[b] - data.ours[a]);
    order.forEach(n => {
      const ours = data.ours[n], [x, y] = [px(data.x[n]), py(data.y[n])], size = ours ? 13 : 11;
      svg.append(weft.svg('circle', {cx: x, cy: y, r: ours ? 4 : 2.5, fill: weft.css(ours ? '--c0' : '--faint')}));
      const length = 0.62 * size * data.names[n].length;
      const place = [[6, 4], [6, -6], [6, 14], [-6 - length, 4]].map(([dx, dy]) => [x + dx, y + dy]).find(([a, b]) =>
        a > 0 && a + length < width && !taken.some(([c, d, e]) => a < c + e && c < a + length && Math.abs(b - d) < size));
      const text = weft.svg('text', {x: (place || [x + 6])[0], y: (place || [x, y + 4])[1], class: ours ? '' : 'faint', style: `font-size:${size}px${place ? '' : ';display:none'}`}, data.names[n]);
      if (place) taken.push([...place, length]);
      svg.append(text);
      const hit = weft.svg('circle', {cx: x, cy: y, r: 9, fill: 'transparent'});
      hit.addEventListener('mousemove', event => weft.tip(event, data.names[n]));
      hit.addEventListener('mouseleave', event => weft.tip(event));
      svg.append(hit);
    });
    outer.replaceChildren(weft.element('h3', {}, data.title), svg);
  });
};
