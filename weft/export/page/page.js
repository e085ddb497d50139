// The page around weft.js. #test answers the texts of test.json and sends the answers back, for tests.
import { load } from './weft.js';

const at = (id) => document.getElementById(id);
const WORDS = {
  rewrite: ['Translate', 'Your text', 'A translator in this page'],
  continue: ['Continue', 'The beginning of a text', 'A language model in this page'],
  tagger: ['Tag', 'Words, with spaces between them', 'A tagger in this page'],
  classifier: ['Classify', 'Your text', 'A classifier in this page'],
  pictures: ['Classify', 'A picture', 'A classifier of pictures in this page'],
  filler: ['Fill', 'A text with [MASK] where a word is missing', 'A model in this page that fills gaps'],
  forecaster: ['Forecast', 'Numbers, oldest first', 'A forecaster in this page'],
};

function draw(found) {
  at('looked').hidden = !found.looks;
  if (!found.looks) return;
  const table = at('attention'), cell = (kind, text) => Object.assign(document.createElement(kind), { textContent: text });
  const head = document.createElement('tr'), body = document.createElement('tbody');
  head.append(cell('td', ''), ...found.source.map((piece) => cell('th', piece)));
  found.looks.forEach((row, place) => {
    const line = document.createElement('tr');
    line.append(cell('th', found.target[place]));
    row.forEach((weight, column) => {
      const box = cell('td', '');
      box.style.backgroundColor = `rgb(var(--hue), ${weight.toFixed(3)})`;
      box.title = `${found.target[place]} – ${found.source[column]}: ${weight.toFixed(2)}`;
      line.append(box);
    });
    body.append(line);
  });
  const top = document.createElement('thead');
  top.append(head);
  table.replaceChildren(top, body);
}

async function tested(model, loaded) {
  const options = await (await fetch('./test.json')).json(), found = [], took = [];
  for (const text of options.texts) {
    const begun = performance.now();
    const given = model.reads === 'picture' ? await (await fetch(text)).blob() : text;
    found.push((await model.answer(given, options)).text);
    took.push(performance.now() - begun);
  }
  await fetch('./report', { method: 'POST', body: JSON.stringify({ found, loaded, took }) });
}

try {
  const begun = performance.now(), model = await load(), loaded = performance.now() - begun;
  const kind = model.about.kind, [verb, asked, title] = WORDS[kind];
  document.title = at('title').textContent = title;
  at('asked').textContent = asked;
  at('go').textContent = verb;
  at('go').disabled = false;
  at('text').hidden = !(at('file').hidden = model.reads !== 'picture');
  at('asked').htmlFor = model.reads === 'picture' ? 'file' : 'text';
  if (model.beams) { at('wide').hidden = false; at('beam').value = model.beams; }
  if (model.directions?.length) {
    at('directed').hidden = false;
    at('direction').append(...model.directions.map((one) => new Option(one.replace('-', ' → '), one)));
  }
  at('took').textContent = `Loaded in ${(loaded / 1000).toFixed(1)} seconds.`;
  at('form').addEventListener('submit', async (event) => {
    event.preventDefault();
    at('go').disabled = true;
    at('problem').hidden = true;
    try {
      const begun = performance.now();
      const given = model.reads === 'picture' ? at('file').files[0] : at('text').value;
      if (given === undefined) throw new Error('Choose a picture first.');
      const found = await model.answer(given, { beam: Number(at('beam').value), direction: at('direction').value || undefined });
      at('answer').textContent = found.text;
      draw(found);
      at('took').textContent = `Computed in ${Math.round(performance.now() - begun)} milliseconds, in this page.`;
    } catch (error) {
      at('problem').textContent = error.message;
      at('problem').hidden = false;
    }
    at('go').disabled = false;
  });
  at('text').addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) at('form').requestSubmit();
  });
  if (location.hash === '#test') await tested(model, loaded);
} catch (error) {
  if (location.hash === '#test') await fetch('./report', { method: 'POST', body: JSON.stringify({ error: String(error) }) });
  at('go').textContent = 'Not available';
  at('problem').textContent = `The model could not be loaded: ${error.message}. Open this page through a web server, for example python -m http.server.`;
  at('problem').hidden = false;
}
