// The page around weft.js: loads the model, asks it, shows the answer. A link that ends in #text=… asks at once.
import { SHOWN, make } from './draw.js';
import { numbersOf } from './series.js';
import { textIn } from './vocabulary.js';
import { load } from './weft.js';

const at = (id) => document.getElementById(id);
const WORDS = { // verb, name of the input, name of the answer
  rewrite: ['Translate', 'Your text', 'Translation'], continue: ['Continue', 'The beginning of a text', 'Continued'], tagger: ['Tag', 'Words, with spaces between them', 'Tags'],
  classifier: ['Classify', 'Your text', 'Class'], pictures: ['Classify', 'A picture', 'Class'], captions: ['Describe', 'A picture', 'Caption'], recordings: ['Transcribe', 'A recording', 'Transcript'],
  filler: ['Fill', 'A text with [MASK] where a word is missing', 'Filled'], contexts: ['Compare', 'A word, then two sentences with it, one per line; or one sentence', 'Similarity in each layer'],
  forecaster: ['Forecast', 'Numbers, oldest first', 'Forecast'], tables: ['Forecast', 'A table (CSV), oldest row first', 'Forecast'],
};
const ACCEPTED = { picture: 'image/*', sound: 'audio/*', table: '.csv,.tsv,.txt,text/csv', text: '.txt,.md,.csv,text/plain' };
let model, given = null, asking = null, answer = '';

async function bytes() {
  const stored = at('model');
  if (!stored) return (await fetch('./model.weft')).arrayBuffer();
  const text = stored.textContent.trim();
  stored.remove();
  return Uint8Array.fromBase64?.(text) ?? Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
}

const size = (bytes) => (bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
const fail = (text) => { at('problem').textContent = text; at('problem').hidden = !text; };
const language = (code) => { try { return new Intl.DisplayNames(['en'], { type: 'language' }).of(code); } catch { return code; } };

function prepare() {
  const { kind, decoding } = model.about, [verb, asked, answered] = WORDS[kind], { task, languages } = document.body.dataset, reads = model.reads;
  at('go').textContent = task === 'summarise' ? 'Summarise' : verb;
  at('answered').textContent = task === 'summarise' ? 'Summary' : answered;
  at('asked').textContent = asked;
  if (languages && kind === 'rewrite' && task === 'translate') [at('asked').textContent, at('answered').textContent] = languages.split('-').map(language);
  at('text').hidden = reads === 'picture' || reads === 'sound';
  at('asked').htmlFor = at('text').hidden ? 'open' : 'text';
  at('file').accept = ACCEPTED[reads];
  if (model.beams && !model.samples) { at('wide').hidden = false; at('beam').value = model.beams; }
  if (model.samples) { at('heated').hidden = false; at('heat').value = decoding.temperature; }
  if (kind === 'continue') { at('long').hidden = false; at('tokens').value = decoding.max_tokens; }
  if (model.directions?.length) {
    at('directed').hidden = false;
    at('direction').append(...model.directions.map((one) => new Option(one.split('-').map(language).join(' → '), one)));
    at('swap').hidden = !model.directions.some((one) => model.directions.includes(back(one)));
  }
  at('settings').hidden = [...at('settings').children].every((one) => one.hidden);
  at('go').disabled = false;
}

const back = (direction) => direction.split('-').reverse().join('-');

function swap() {
  const other = back(at('direction').value);
  if (!model.directions.includes(other)) { fail(`The model does not translate ${other.split('-').map(language).join(' to ')}.`); return; }
  at('direction').value = other;
  if (answer) { at('text').value = answer; ask(); }
}

async function take(file) {
  fail('');
  at('named').textContent = file.name;
  if (model.reads === 'picture' || model.reads === 'sound') {
    given = file;
    const url = URL.createObjectURL(file);
    at('shown').replaceChildren(...(model.reads === 'picture' ? [make('img', { src: url, alt: file.name })] : []));
    ask();
    return;
  }
  const text = textIn(await file.arrayBuffer());
  if (text === null) { fail(`${file.name}: expected a text in UTF-8 or UTF-16, got other data; save it as UTF-8.`); return; }
  if (model.about.kind !== 'forecaster') { at('text').value = text.trimEnd(); ask(); return; }
  try {
    const [values, column] = numbersOf(text, model.about.names);
    at('text').value = values;
    if (column) at('named').textContent = `${file.name}, column ${column}`;
    ask();
  } catch (error) { fail(error.message); }
}

function options() {
  const number = (id) => (at(id).value === '' ? undefined : Number(at(id).value)), { kind } = model.about;
  const found = { signal: asking.signal, direction: at('direction').value || undefined };
  if (!at('wide').hidden) found.beam = number('beam');
  if (model.samples) { found.temperature = number('heat'); found.seed = Math.floor(Math.random() * 2 ** 31); }
  if (kind === 'continue') found.tokens = number('tokens');
  return found;
}

async function ask() {
  asking?.abort();
  const own = asking = new AbortController(), { kind } = model.about, text = kind === 'contexts' ? at('text').value.trim().replace(/\n/g, '\t') : at('text').value;
  fail('');
  at('go').classList.add('wait');
  at('stop').hidden = false;
  await new Promise((done) => setTimeout(done)); // draws the page first
  try {
    const begun = performance.now(), source = at('text').hidden ? given : text;
    if (source === null) throw new Error(`Choose ${model.reads === 'picture' ? 'a picture' : 'a recording'} first.`);
    const found = await model.answer(source, options()), shown = SHOWN[kind](found, model, text);
    if (own !== asking) return;
    answer = found.text;
    at('answer').replaceChildren(...shown.answer);
    at('details').replaceChildren(...(shown.below ?? []));
    at('copy').hidden = at('save').hidden = !answer;
    at('took').textContent = `Computed in ${Math.round(performance.now() - begun)} milliseconds, on this device.`;
  } catch (error) {
    if (own !== asking) return;
    if (error.name === 'AbortError') at('took').textContent = 'Stopped.'; else fail(error.message);
  }
  at('go').classList.remove('wait');
  at('stop').hidden = true;
}

async function copy() {
  try { await navigator.clipboard.writeText(answer); } catch { // a file:// page may have no clipboard
    getSelection().selectAllChildren(at('answer'));
    document.execCommand('copy');
  }
  at('copy').textContent = 'Copied';
  setTimeout(() => { at('copy').textContent = 'Copy'; }, 1500);
}

function save() {
  const link = make('a', { download: model.reads === 'table' ? 'forecast.csv' : 'answer.txt', href: URL.createObjectURL(new Blob([`${answer}\n`], { type: 'text/plain' })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function listen() {
  at('form').addEventListener('submit', (event) => { event.preventDefault(); ask(); });
  at('text').addEventListener('keydown', (event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) ask(); });
  document.addEventListener('keydown', (event) => { if (event.key === 'Escape') asking?.abort(); });
  at('stop').addEventListener('click', () => asking?.abort());
  at('swap').addEventListener('click', swap);
  at('copy').addEventListener('click', copy);
  at('save').addEventListener('click', save);
  at('open').addEventListener('click', () => at('file').click());
  at('file').addEventListener('change', () => { if (at('file').files[0]) take(at('file').files[0]); });
  const pane = at('given');
  document.addEventListener('dragover', (event) => { event.preventDefault(); pane.classList.add('over'); });
  document.addEventListener('dragleave', (event) => { if (!event.relatedTarget) pane.classList.remove('over'); });
  document.addEventListener('drop', (event) => {
    event.preventDefault();
    pane.classList.remove('over');
    if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  });
}

async function main() {
  try {
    const begun = performance.now(), content = await bytes();
    model = await load(content);
    at('size').textContent = `A model of ${size(content.byteLength)}, in this page.`;
    prepare();
    listen();
    at('took').textContent = `Ready after ${((performance.now() - begun) / 1000).toFixed(1)} seconds. Ctrl+Enter asks, Escape stops.`;
    if (location.hash.startsWith('#text=')) {
      at('text').value = decodeURIComponent(location.hash.slice(6));
      await ask();
    }
  } catch (error) {
    at('go').textContent = 'Not available';
    at('took').textContent = '';
    fail(`The model could not be loaded: ${error.message}`);
  }
}

main();
