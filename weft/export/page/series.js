// Models that forecast series: of numbers, or of the columns of a table. Read next: times.js; weft.js.
import { tensor } from './operators.js';
import { calendar, every, local, parsed, shown } from './times.js';

const floats = (values, dims) => tensor('float32', dims, Float32Array.from(values));
const EMPTY = new Set(['', 'na', 'n/a', 'nan', 'null', 'none']);
const numberIn = (cell) => (EMPTY.has(cell.trim().toLowerCase()) ? NaN : /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(cell) ? Number(cell) : undefined);
const readable = (value, deviation) => { // as readable in ../../data/values.py
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const exponent = (one) => Number(one.toExponential().split('e')[1]), size = exponent(value), finest = deviation > 0 ? exponent(deviation) : size, digits = Math.min(17, Math.max(6, size + 1, 6 + size - finest));
  return size < -4 || size >= digits ? value.toExponential(digits - 1).replace(/\.?0+e/, 'e').replace(/e([+-])(\d)$/, 'e$10$2') : String(Number(value.toPrecision(digits)));
};

// Missing values filled with the last one of their place in a season, or before them, or 0.
function filled(values, season = 1) {
  const found = [...values];
  for (const step of [season, 1]) for (let at = step; at < found.length; at++) if (!Number.isFinite(found[at])) found[at] = found[at - step];
  return found.map((value) => (Number.isFinite(value) ? value : 0));
}

class Scaled {
  constructor(content) {
    Object.assign(this, { about: content.settings, graph: content.graph('forecast_values') });
  }

  check(raw, called = '') {
    if (raw.length < this.about.lookback || !raw.some(Number.isFinite)) throw new Error(`${called}Expected at least ${this.about.lookback} rows, got ${raw.length}; give a longer past.`);
    if (raw.some((value) => Math.abs(value) >= 1e30)) throw new Error(`${called}Expected finite numbers below 1e30.`);
  }

  // Number, mean and deviation of a series; one that is new since training has its own scale.
  scale(name, raw) {
    const number = this.about.names.indexOf(name), real = raw.filter(Number.isFinite);
    if (number >= 0) return [number, this.about.mean[number], this.about.std[number]];
    const mean = real.reduce((a, b) => a + b, 0) / real.length;
    return [0, mean, Math.sqrt(real.reduce((a, b) => a + (b - mean) ** 2, 0) / real.length) || 1];
  }

  best(given, mean, std) { return Array.from(this.graph.run(given).best.data, (value) => (this.about.positive ? Math.max(value * std + mean, 0) : value * std + mean)); }
}

export class Forecaster extends Scaled {
  // The next values of numbers, oldest first, with spaces or commas between them; nan for a missing one.
  async answer(text, { series } = {}) {
    const cells = text.replaceAll(',', ' ').split(/\s+/u).filter(Boolean), raw = cells.map(numberIn), wrong = raw.indexOf(undefined);
    if (wrong >= 0) throw new Error(`“${cells[wrong].slice(0, 40)}” is no number.`);
    if (!raw.length) return { text: '', past: [], values: [] };
    this.check(raw);
    const [number, mean, std] = this.scale(series ?? this.about.names[0], raw), { lookback } = this.about;
    const values = this.best({ values: floats(filled(raw.map((value) => (value - mean) / std), this.about.fill).slice(-lookback), [1, lookback]), which: tensor('int32', [1], Int32Array.of(number)) }, mean, std);
    return { text: values.map((value) => readable(value, std)).join(' '), past: raw, values };
  }
}

export class TableForecaster extends Scaled {
  reads = 'table';

  // The next rows of every series of a CSV table; rows without targets at the end are the future.
  async answer(text) {
    const { columns, targets, names } = this.about, [header, rows, mark, comma] = cellsOf(text, columns.length ? columns : targets.length ? targets : names), lines = [['unique_id', 'ds', 'y'].join(mark)], series = [];
    for (const one of this.series(header, rows)) {
      one.columns.forEach((name, column) => {
        if (this.about.targets.length && !this.about.targets.includes(name)) return;
        const values = this.of(one, column, one.name || name), past = one.values.length, texts = shown(one.texts.slice(past - this.about.lookback)).slice(this.about.lookback);
        const [, , deviation] = this.scale(one.name || name, one.values.map((row) => row[column]));
        values.forEach((value, at) => lines.push([one.name || name, texts[at], comma ? readable(value, deviation).replace('.', ',') : readable(value, deviation)].map((cell) => quoted(cell, mark)).join(mark)));
        series.push({ name: one.name || name, past: one.values.map((row) => row[column]), values, times: texts });
      });
    }
    return { text: lines.join('\n'), series };
  }

  of(one, column, name) {
    const { lookback: past, horizon, known, covariates, channels } = this.about, raw = one.values.map((row) => row[column]), rows = raw.length;
    this.check(raw, `Series “${name}”: `);
    const [number, mean, std] = this.scale(name, raw), given = { values: floats(filled(raw.map((value) => (value - mean) / std), this.about.fill).slice(-past), [1, past]), which: tensor('int32', [1], Int32Array.of(number)) };
    const ahead = one.known.slice(rows - past, rows + horizon);
    if (known.length && (ahead.length < past + horizon || ahead.slice(past).some((row) => row.some(Number.isNaN)))) {
      throw new Error(`Series “${name}”: expected ${known.join(', ')} for the ${horizon} rows to forecast; add rows with an empty target at the end of the table.`);
    }
    const read = Array.from({ length: past + horizon }, (_, at) => [
      ...(known.length ? ahead[at].map((value, place) => { const scaled = (value - covariates.mean[place]) / covariates.std[place]; return Number.isNaN(scaled) ? 0 : scaled; }) : []),
      ...(this.about.calendar ? calendar(one.times[rows - past + at]) : []),
    ]);
    if (read[0].length) given.known = floats(read.flat(), [1, past + horizon, read[0].length]);
    const beside = one.past.map((row, at) => (this.about.columns.length ? [...one.values[at], ...row] : row)), width = beside[0].length;
    if (width) {
      const columns = Array.from({ length: width }, (_, place) => filled(beside.map((row) => (row[place] - channels.mean[place]) / channels.std[place])).slice(-past));
      given.seen = floats(Array.from({ length: past }, (_, at) => columns.map((values) => values[at])).flat(), [1, past, width]);
    }
    return this.best(given, mean, std);
  }

  // Each series of a table: its name, columns, times, texts of times, values, and other columns known ahead or of the past.
  series(header, rows) {
    const { about } = this, lower = header.map((name) => name.toLowerCase()), plain = !about.id.length && !about.targets.length && ['unique_id', 'ds', 'y'].every((name) => lower.includes(name));
    const place = (name) => {
      const called = (cells, one) => cells.flatMap((cell, at) => (cell === one ? [at] : [])), exact = called(header, name), [at = -1, ...more] = exact.length ? exact : called(lower, name.toLowerCase());
      if (more.length) throw new Error(`The columns ${[at, ...more].map((one) => one + 1).join(' and ')} are both called “${name}”; rename one.`);
      if (at < 0) throw new Error(`Expected a column “${name}”, got ${header.join(', ').slice(0, 300)}.`);
      return at;
    };
    const usual = header.findIndex((_, at) => about.times.includes(lower[at])), time = plain ? lower.indexOf('ds') : about.time !== null ? place(about.time) : usual >= 0 ? usual : numberIn(rows[0][0]) !== undefined ? -1 : 0;
    const ids = (about.id.length ? about.id : plain ? ['unique_id'] : []).map(place), named = [...about.known, ...about.past].map(place), taken = new Set([...ids, time, ...named]);
    const others = header.filter((_, at) => !taken.has(at)), columns = plain ? ['y'] : about.columns.length ? about.columns : about.targets.length ? about.targets : others;
    if (about.columns.length && String(others) !== String(about.columns)) throw new Error(`Expected the columns ${columns.join(', ')} in this order, got ${others.join(', ')}.`);
    const places = columns.map(place), groups = new Map();
    for (const row of rows) {
      const name = ids.map((at) => row[at]).join('/');
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(row);
    }
    return [...groups].map(([name, own]) => {
      const table = own.map((row) => [...places, ...named].map((at) => {
        const value = numberIn(row[at]);
        if (value === undefined) throw new Error(`Column “${header[at]}”: “${row[at].slice(0, 40)}” is no number.`);
        return value;
      }));
      return { name, columns, ...this.aligned(time >= 0 ? own.map((row) => row[time]) : null, table, places.length) };
    });
  }

  // A series with a row for each period.
  aligned(texts, given, width) {
    const { step, horizon, base, known } = this.about, empty = () => new Array(given[0].length).fill(NaN);
    let table = given, times = given.map((_, at) => at).concat(Array.from({ length: horizon }, (_, at) => given.length + at)), names = times.map(String);
    if (texts) {
      if (step === null) throw new Error('Expected rows without times, as in training; leave out that column.');
      const days = (step.seconds ?? 86400) % 86400 === 0, { times: found, zone } = parsed(texts, base ?? '', days), grid = every(found, step, horizon), places = new Map(grid.map((time, at) => [time, at]));
      table = grid.map(empty);
      found.forEach((time, at) => { table[places.get(time)] = given[at]; });
      ({ clocks: times, texts: names } = local(grid, zone, days));
    }
    const values = table.map((row) => row.slice(0, width)), measured = values.map((row, at) => (row.some(Number.isFinite) ? at : -1)).filter((at) => at >= 0), end = measured.length ? measured.at(-1) + 1 : values.length;
    const ahead = table.map((row) => row.slice(width, width + known.length));
    if (measured.some((at) => ahead[at].some(Number.isNaN))) throw new Error(`Expected numbers of ${known.join(', ')} in each row with a target.`);
    return { times: times.slice(0, end + horizon), texts: names.slice(0, end + horizon), values: values.slice(0, end), known: ahead, past: table.slice(0, end).map((row) => row.slice(width + known.length)) };
  }
}

const quoted = (cell, mark) => (/["\n\r]/.test(cell) || cell.includes(mark) ? `"${cell.replaceAll('"', '""')}"` : cell);

// The header and the rows of a table; columns without names are 1, 2, ...; a first row of numbers is the header if it names these columns, other than 1, 2, ...
// Numbers have a decimal comma in a column of such numbers only; the line sep=; of Excel names the mark between cells.
export function cellsOf(text, columns = []) {
  const named = /^\ufeff?sep=(.)\r?\n/iu.exec(text), plain = named ? text.slice(named[0].length) : text.replace(/^\ufeff/, ''), first = plain.split(/\r?\n/, 1)[0], mark = named?.[1] ?? (/^[^"]*\d,\d+;/u.test(first) ? ';' : [...',;\t|'].reduce((a, b) => (first.split(b).length > first.split(a).length ? b : a)));
  let rows = records(plain, mark);
  const local = /^\s*[-+]?(\d+|\d{1,3}(\.\d{3})+)(,\d*)?\s*$/u, commas = (rows[0] ?? []).map((_, at) => {
    const column = rows.slice(1).map((row) => row[at] ?? '').filter((cell) => !Number.isNaN(numberIn(cell)));
    return mark !== ',' && column.some((cell) => cell.includes(',')) && column.every((cell) => local.test(cell));
  });
  rows = rows.map((row) => row.map((cell, at) => (commas[at] && local.test(cell) ? cell.replaceAll('.', '').replace(',', '.') : cell)));
  const cells = (rows[0] ?? []).map((cell) => cell.trim()), dated = cells.length > 1 && /^\d/u.test(cells[0]) && numberIn(cells[0]) === undefined;
  const titled = !dated && columns.length > 0 && columns[0] !== '1' && columns.every((name) => cells.includes(name));
  if (rows.length && !titled && cells.slice(Number(dated)).every((cell) => numberIn(cell) !== undefined)) rows = [rows[0].map((_, at) => String(at + 1)), ...rows];
  if (rows.length < 2) throw new Error('Expected a header and rows of numbers, got no row.');
  const wrong = rows.findIndex((row) => row.length !== rows[0].length);
  if (wrong >= 0) throw new Error(`Row ${wrong + 1}: expected ${rows[0].length} cells, got ${rows[wrong].length}.`);
  return [rows[0].map((name) => name.trim()), rows.slice(1), mark, commas.includes(true)];
}

// The numbers of a plain list; or those of a column of a table, and its name: the first of the series in `names` that it has, else the last column.
export function numbersOf(text, names) {
  if (!/[a-z]|\d{4}-\d\d/i.test(text)) return [text.trim()];
  const [header, rows] = cellsOf(text), found = names.find((name) => header.includes(name)) ?? header.at(-1), column = header.lastIndexOf(found);
  return [rows.map((row) => row[column].trim() || 'nan').join(' '), found];
}

// The rows of a CSV text that are not empty.
function records(text, mark) {
  const rows = [[]];
  let cell = '', inside = false, begun = false;
  const close = () => { rows.at(-1).push(cell); cell = ''; begun = false; };
  for (let at = 0; at < text.length; at++) {
    const letter = text[at];
    if (inside) {
      if (letter !== '"') cell += letter;
      else if (text[at + 1] === '"') { cell += '"'; at++; } else inside = false;
    } else if (letter === '"' && !begun) { inside = begun = true; } else if (letter === mark) close();
    else if (letter === '\n' || letter === '\r') {
      if (letter === '\r' && text[at + 1] === '\n') at++;
      close();
      rows.push([]);
    } else { cell += letter; begun = true; }
  }
  close();
  return rows.filter((row) => row.length > 1 || row[0] !== '');
}
