// Heat maps of labelled matrices, one at a time; a row can be plotted as a line. Read next: lines.js.
weft.blocks.matrices = (box, data) => {
  let group = 0, item = 0, row = 0, column = 0, lit = false;
  const unpacked = new Map();
  const values = one => { if (!unpacked.has(one)) unpacked.set(one, weft.unpack(one.values)); return unpacked.get(one); };
  const note = weft.element('div', {class: 'note'});
  const canvas = weft.element('canvas', {tabindex: 0, role: 'img'});
  const scroll = weft.element('div', {class: 'scroll'}, canvas);
  const line = weft.element('div');
  const legend = weft.element('div');
  const bar = weft.element('div', {class: 'bar'});
  const groups = weft.choose(data.pick, data.groups.map(one => one.name), n => { group = n; item = Math.min(item, data.groups[n].items.length - 1); items(); draw(); });
  const each = weft.element('span');
  const items = () => {
    const list = weft.choose(data.each, data.groups[group].items.map(one => one.name), n => { item = n; draw(); });
    list.pick(item);
    each.replaceChildren(list);
  };
  bar.append(groups, each);
  box.append(bar, note, legend, scroll, line);
  let layout = null;

  const shorten = (context, text, room) => {
    if (context.measureText(text).width <= room) return text;
    while (text.length > 1 && context.measureText(text + '…').width > room) text = text.slice(0, -1);
    return text + '…';
  };

  const draw = () => {
    const one = data.groups[group].items[item], matrix = values(one);
    row = Math.min(row, matrix.rows - 1); column = Math.min(column, matrix.columns - 1);
    note.textContent = one.note || '';
    note.hidden = !one.note;
    legend.replaceChildren(weft.scale(one.low, one.high));
    canvas.setAttribute('aria-label', `${one.name}: ${matrix.rows} rows, ${matrix.columns} columns; arrow keys move through the cells`);
    const context = canvas.getContext('2d'), font = "'DejaVu Sans','Noto Sans',sans-serif";
    const room = Math.max(260, box.clientWidth - 8), dense = matrix.rows > 40;
    context.font = `12.5px ${font}`; // the largest font of a row label
    const names = one.rows.slice(0, 400).map(name => context.measureText(name).width);
    const left = Math.min(170, Math.max(36, Math.max(...names, 0) + 14));
    const tall = Math.min(120, Math.max(20, ...one.columns.slice(0, 400).map(name => context.measureText(name).width))) ;
    const wide = Math.max(data.lines ? 4 : 5, Math.min(data.lines ? 80 : 58, (room - left - 40) / matrix.columns));
    const high = data.lines && dense ? Math.max(3, Math.min(12, 420 / matrix.rows)) : Math.min(30, Math.max(dense ? 5 : 15, wide));
    const slanted = wide >= 13, above = slanted ? tall * 0.78 + 14 : wide >= 9 ? tall + 10 : Math.min(tall + 10, 110);
    const right = slanted ? Math.max(20, tall * 0.64) : 12;
    const width = Math.ceil(left + wide * matrix.columns + right), height = Math.ceil(above + high * matrix.rows + 6);
    const dots = Math.min(devicePixelRatio || 1, 16000 / Math.max(width, height));
    canvas.width = width * dots; canvas.height = height * dots;
    canvas.style.width = width + 'px'; canvas.style.height = height + 'px';
    context.scale(dots, dots);
    context.clearRect(0, 0, width, height);
    const image = document.createElement('canvas');
    image.width = matrix.columns; image.height = matrix.rows;
    const pixels = image.getContext('2d').createImageData(matrix.columns, matrix.rows);
    for (let n = 0; n < matrix.values.length; n++) {
      const colour = weft.colour(matrix.values[n], one.low, one.high);
      pixels.data.set([...colour, 255], 4 * n);
    }
    image.getContext('2d').putImageData(pixels, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(image, left, above, wide * matrix.columns, high * matrix.rows);
    context.strokeStyle = weft.css('--line');
    context.lineWidth = 1;
    if (wide >= 11 && high >= 11) {
      context.beginPath();
      for (let x = 0; x <= matrix.columns; x++) { context.moveTo(left + x * wide, above); context.lineTo(left + x * wide, above + high * matrix.rows); }
      for (let y = 0; y <= matrix.rows; y++) { context.moveTo(left, above + y * high); context.lineTo(left + wide * matrix.columns, above + y * high); }
      context.stroke();
    } else context.strokeRect(left, above, wide * matrix.columns, high * matrix.rows);
    if (wide >= 26 && high >= 16 && matrix.values.length <= 1600) {
      context.textAlign = 'center'; context.textBaseline = 'middle';
      context.font = `${Math.min(11, wide / 2.7)}px ${font}`;
      matrix.values.forEach((value, n) => {
        if (Math.abs(value) < 0.005) return;
        context.fillStyle = weft.contrast(weft.colour(value, one.low, one.high));
        const text = (Math.abs(value) >= 0.995 ? value.toFixed(1) : value.toFixed(2)).replace('0.', '.');
        context.fillText(text, left + wide * (n % matrix.columns + 0.5), above + high * (Math.floor(n / matrix.columns) + 0.55));
      });
    }
    context.fillStyle = weft.css('--ink');
    context.font = `${Math.min(12.5, Math.max(8, high))}px ${font}`;
    context.textAlign = 'right'; context.textBaseline = 'middle';
    const everyRow = Math.max(1, Math.ceil(10 / high)), everyColumn = Math.max(1, Math.ceil(11 / wide));
    one.rows.forEach((name, y) => { if (y % everyRow === 0) context.fillText(shorten(context, name, left - 10), left - 6, above + high * (y + 0.52)); });
    context.font = `12px ${font}`;
    context.textAlign = 'left';
    one.columns.forEach((name, x) => {
      if (x % everyColumn) return;
      context.save();
      context.translate(left + wide * (x + 0.5) + (slanted ? -2 : 0), above - 7);
      context.rotate(slanted ? -0.9 : -Math.PI / 2);
      context.fillText(shorten(context, name, slanted ? 122 : above - 10), 0, 0);
      context.restore();
    });
    if (lit) {
      context.strokeStyle = weft.css('--c1'); context.lineWidth = 2;
      context.strokeRect(left + wide * column, above + high * row, wide, high);
    }
    layout = {left, above, wide, high, matrix, one};
    if (data.lines) unit();
  };

  const unit = () => {
    const {matrix, one} = layout;
    const at = [...Array(matrix.columns).keys()];
    line.replaceChildren();
    weft.blocks.lines(line, {title: `${one.name}: ${one.rows[row]}`, x: 'position', y: '', log: false, labels: one.columns,
      series: [{name: one.rows[row], x: at, y: at.map(n => matrix.values[row * matrix.columns + n])}]});
  };
  const told = () => {
    const {matrix, one} = layout;
    return `${one.rows[row]}  ×  ${one.columns[column]}\n${weft.number(matrix.values[row * matrix.columns + column])}`;
  };
  const find = event => {
    const place = canvas.getBoundingClientRect();
    const x = Math.floor((event.clientX - place.left - layout.left) / layout.wide), y = Math.floor((event.clientY - place.top - layout.above) / layout.high);
    return x >= 0 && y >= 0 && x < layout.matrix.columns && y < layout.matrix.rows ? [y, x] : null;
  };
  canvas.addEventListener('mousemove', event => {
    const found = find(event);
    if (!found) { weft.tip(event); return; }
    [row, column] = found;
    weft.tip(event, told());
  });
  canvas.addEventListener('mouseleave', event => weft.tip(event));
  canvas.addEventListener('click', event => { const found = find(event); if (found) { [row, column] = found; lit = true; draw(); } });
  canvas.addEventListener('blur', event => { lit = false; weft.tip(event); draw(); });
  canvas.addEventListener('keydown', event => {
    const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
    if (!step) return;
    event.preventDefault();
    row = Math.min(layout.matrix.rows - 1, Math.max(0, row + step[0]));
    column = Math.min(layout.matrix.columns - 1, Math.max(0, column + step[1]));
    lit = true;
    draw();
    const place = canvas.getBoundingClientRect();
    weft.tip({clientX: place.left + layout.left + layout.wide * (column + 1), clientY: place.top + layout.above + layout.high * (row + 1)}, told());
  });
  items();
  weft.redraw(draw);
};
