// A picture with weights laid over it, one set of weights at a time. Read next: start.js.
weft.blocks.picture = (box, data) => {
  const canvas = weft.element('canvas', {tabindex: 0, role: 'img'});
  const looks = data.items.map(one => ({name: one.name, ...weft.unpack(one.values)}));
  const image = new Image();
  let chosen = -1;
  const buttons = [{name: 'the picture'}, ...looks].map((one, n) => weft.element('button', {onclick: () => show(n - 1)}, one.name.replace('▁', '')));
  const bar = weft.element('div', {class: 'bar', role: 'group', 'aria-label': 'looks'}, ...buttons);
  const note = weft.element('div', {class: 'note', 'aria-live': 'polite'});
  const legend = weft.element('div', {class: 'scale'});
  const scale = () => Math.max(1, Math.min(360 / data.height, Math.max(280, box.clientWidth - 8) / data.width));
  const draw = () => {
    const times = scale(), width = Math.round(data.width * times), height = Math.round(data.height * times);
    canvas.width = width; canvas.height = height;
    const context = canvas.getContext('2d');
    context.imageSmoothingEnabled = false;
    context.drawImage(image, 0, 0, width, height);
    const look = looks[chosen];
    if (!look) return;
    const top = Math.max(...look.values, 1e-12);
    look.values.forEach((value, n) => {
      const x = n % look.columns, y = Math.floor(n / look.columns);
      const [left, right] = [x, x + 1].map(at => Math.round(at * width / look.columns));
      const [above, below] = [y, y + 1].map(at => Math.round(at * height / look.rows));
      context.fillStyle = `rgba(0,0,0,${0.75 * (1 - value / top)})`;
      context.fillRect(left, above, right - left, below - above);
    });
  };
  const show = n => {
    chosen = n;
    buttons.forEach((button, place) => button.setAttribute('aria-pressed', place === n + 1));
    const look = looks[n];
    legend.hidden = !look;
    if (look) {
      const top = Math.max(...look.values);
      legend.replaceChildren(weft.element('i', {style: 'background:linear-gradient(to right,#404040,#fff)'}),
        weft.element('div', {}, ...[0, top / 2, top].map(value => weft.element('span', {}, weft.number(value)))));
    }
    note.textContent = look ? `${look.name.replace('▁', '')}: the largest weight is ${weft.number(Math.max(...look.values))}` : '';
    canvas.setAttribute('aria-label', look ? `the picture, bright where ${look.name} has its weight` : 'the picture');
    draw();
  };
  const walk = event => {
    const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!step) return;
    event.preventDefault();
    show(Math.min(looks.length - 1, Math.max(-1, chosen + step)));
    if (event.currentTarget === bar) buttons[chosen + 1].focus();
  };
  canvas.addEventListener('keydown', walk);
  bar.addEventListener('keydown', walk);
  canvas.addEventListener('mousemove', event => {
    const look = looks[chosen], place = canvas.getBoundingClientRect();
    if (!look) return;
    const x = Math.floor((event.clientX - place.left) / place.width * look.columns), y = Math.floor((event.clientY - place.top) / place.height * look.rows);
    if (x < 0 || y < 0 || x >= look.columns || y >= look.rows) return;
    weft.tip(event, `row ${y + 1}, column ${x + 1}\n${weft.number(look.values[y * look.columns + x])}`);
  });
  canvas.addEventListener('mouseleave', event => weft.tip(event));
  if (looks.length) box.append(bar);
  box.append(canvas, legend, note);
  image.onload = () => { weft.redraw(draw); show(looks.length ? 0 : -1); };
  image.src = data.image;
};
