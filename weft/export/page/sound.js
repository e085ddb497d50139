// Recordings as frames: the power of bands of frequencies in overlapping windows, as in Weft. Read next: writing.js.

const ZEROS = 16; // zero crossings on each side of the resampling filter
const MOST_PHASES = 4096;

// The numbers of a .npy file of floats [rows, columns], little-endian.
function table(bytes) {
  const size = bytes[6] === 1 ? new DataView(bytes.buffer, bytes.byteOffset).getUint16(8, true) : new DataView(bytes.buffer, bytes.byteOffset).getUint32(8, true), first = (bytes[6] === 1 ? 10 : 12) + size;
  const header = new TextDecoder().decode(bytes.subarray(0, first)), [rows, columns] = /'shape': \((\d+), (\d+)\)/.exec(header).slice(1).map(Number), body = bytes.slice(first).buffer;
  return { rows, columns, data: header.includes("'<f8'") ? new Float64Array(body) : new Float32Array(body) };
}

// A function from a file to its frames { data [count, bands], count, bands }.
export function sound({ rate, window: length, hop, least, normalise }, bytes) {
  const filters = table(bytes), points = 2 * (filters.columns - 1), hann = Float64Array.from({ length }, (_, at) => 0.5 - 0.5 * Math.cos((2 * Math.PI * at) / length));
  return async (file) => {
    const found = await samples(file, rate), moved = resample(found.samples, found.rate, rate), size = Math.max(length, moved.length), bands = filters.rows;
    const all = new Float32Array(size), count = Math.floor((size - length) / hop) + 1, data = new Float32Array(count * bands), frame = new Float64Array(points);
    all.set(moved);
    for (let at = 0; at < count; at++) {
      frame.fill(0);
      for (let n = 0; n < length; n++) frame[n] = Math.fround(all[at * hop + n] * Math.fround(hann[n]));
      const power = spectrum(frame);
      for (let band = 0; band < bands; band++) {
        let sum = 0;
        for (let n = 0; n < filters.columns; n++) sum += power[n] * filters.data[band * filters.columns + n];
        data[at * bands + band] = Math.log(Math.max(sum, least));
      }
    }
    if (normalise) scale({ data, count, bands });
    return { data, count, bands };
  };
}

// Scales every band of frames to mean 0 and deviation 1.
function scale({ data, count, bands }) {
  for (let band = 0; band < bands; band++) {
    let mean = 0, square = 0;
    for (let at = 0; at < count; at++) mean += data[at * bands + band] / count;
    for (let at = 0; at < count; at++) square += (data[at * bands + band] - mean) ** 2 / count;
    for (let at = 0; at < count; at++) data[at * bands + band] = (data[at * bands + band] - mean) / Math.max(Math.sqrt(square), 1e-2);
  }
}

// The frames, or of a recording longer than those of training, the parts between its pauses; see weft/data/sound.py.
export function parts({ data, count, bands }, { cuts: how, normalise }) {
  if (how === null || count <= how.longest) return [{ data, count, bands }];
  const { longest, pause, margin, smooth } = how, shift = Math.floor((smooth - 1) / 2);
  const means = Array.from({ length: count }, (_, at) => data.subarray(at * bands, (at + 1) * bands).reduce((sum, one) => sum + one, 0) / bands);
  const loud = means.map((_, at) => means.slice(Math.max(0, at + shift - smooth + 1), at + shift + 1).reduce((sum, one) => sum + one, 0) / smooth);
  const sorted = Float64Array.from(loud).sort(), quantile = (share) => {
    const place = share * (count - 1), low = Math.floor(place);
    return sorted[low] + (place - low) * (sorted[Math.min(low + 1, count - 1)] - sorted[low]);
  };
  const least = quantile(0.1) + 0.3 * (quantile(0.9) - quantile(0.1)), heard = [...loud.keys()].filter((at) => loud[at] >= least), found = [];
  const keep = (begin, end) => {
    const part = { data: data.slice(begin * bands, end * bands), count: end - begin, bands };
    if (normalise) scale(part);
    found.push(part);
  };
  let begin = heard[0];
  heard.forEach((at, n) => {
    if (n + 1 < heard.length && heard[n + 1] - at < pause) return;
    const end = at + 1;
    while (end - begin > longest) {
      const middle = begin + Math.floor(longest / 2), half = loud.slice(middle, begin + longest), cut = middle + half.indexOf(half.reduce((a, b) => Math.min(a, b)));
      keep(begin, cut);
      begin = cut;
    }
    keep(Math.max(0, begin - margin), Math.min(count, end + margin));
    begin = heard[n + 1];
  });
  return found;
}

// The squared spectrum of real numbers [N]: N / 2 + 1 values.
function spectrum(values) {
  const [real, imaginary] = transform(values, new Float64Array(values.length)), found = new Float64Array(values.length / 2 + 1);
  for (let at = 0; at < found.length; at++) found[at] = real[at] ** 2 + imaginary[at] ** 2;
  return found;
}

// The discrete Fourier transform, by halves as long as the length is even.
function transform(real, imaginary) {
  const size = real.length, a = new Float64Array(size), b = new Float64Array(size);
  if (size % 2) {
    for (let k = 0; k < size; k++) for (let n = 0; n < size; n++) {
      const angle = (-2 * Math.PI * ((k * n) % size)) / size, [c, s] = [Math.cos(angle), Math.sin(angle)];
      a[k] += real[n] * c - imaginary[n] * s;
      b[k] += real[n] * s + imaginary[n] * c;
    }
    return [a, b];
  }
  const half = size / 2, part = (values, from) => Float64Array.from({ length: half }, (_, at) => values[2 * at + from]);
  const [evenReal, evenImaginary] = transform(part(real, 0), part(imaginary, 0)), [oddReal, oddImaginary] = transform(part(real, 1), part(imaginary, 1));
  for (let k = 0; k < half; k++) {
    const angle = (-2 * Math.PI * k) / size, [c, s] = [Math.cos(angle), Math.sin(angle)], x = oddReal[k] * c - oddImaginary[k] * s, y = oddReal[k] * s + oddImaginary[k] * c;
    a[k] = evenReal[k] + x;
    b[k] = evenImaginary[k] + y;
    a[k + half] = evenReal[k] - x;
    b[k + half] = evenImaginary[k] - y;
  }
  return [a, b];
}

// The mean of the channels of a recording and its rate. A .wav is read here, other formats by the browser.
async function samples(file, wanted) {
  const bytes = new Uint8Array(file instanceof Uint8Array ? file : await file.arrayBuffer()), found = wav(bytes);
  if (found) return found;
  if (typeof OfflineAudioContext === 'undefined') throw new Error('This program reads .wav files only.');
  const audio = await new OfflineAudioContext(1, 1, Math.max(8000, wanted)).decodeAudioData(bytes.buffer).catch(() => { throw new Error('This file is no recording that the browser can read.'); });
  const channels = Array.from({ length: audio.numberOfChannels }, (_, at) => audio.getChannelData(at));
  return { samples: mean(channels), rate: audio.sampleRate };
}

const mean = (channels) => Float32Array.from(channels[0], (_, at) => channels.reduce((sum, one) => sum + one[at], 0) / channels.length);

function wav(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length), name = (at) => String.fromCharCode(...bytes.subarray(at, at + 4));
  if (bytes.length < 44 || name(0) !== 'RIFF' || name(8) !== 'WAVE') return null;
  let format = null;
  for (let at = 12; at + 8 <= bytes.length;) {
    const kind = name(at), size = view.getUint32(at + 4, true), body = at + 8;
    if (kind === 'fmt ') format = { code: view.getUint16(body, true) === 0xfffe ? view.getUint16(body + 24, true) : view.getUint16(body, true), channels: view.getUint16(body + 2, true), rate: view.getUint32(body + 4, true), bits: view.getUint16(body + 14, true) };
    if (kind === 'data' && format) return pcm(view, body, Math.min(size || Infinity, bytes.length - body), format);
    at = body + size + (size % 2);
  }
  return null;
}

function pcm(view, first, size, { code, channels, rate, bits }) {
  const width = bits / 8, read = {
    '1/8': (at) => (view.getUint8(at) - 128) / 128, '1/16': (at) => view.getInt16(at, true) / 2 ** 15, '1/24': (at) => ((view.getUint8(at + 2) << 24 | view.getUint8(at + 1) << 16 | view.getUint8(at) << 8) >> 8) / 2 ** 23,
    '1/32': (at) => view.getInt32(at, true) / 2 ** 31, '3/32': (at) => view.getFloat32(at, true), '3/64': (at) => view.getFloat64(at, true),
  }[`${code}/${bits}`];
  if (!read) return null;
  const count = Math.floor(size / width / channels);
  if (!count) throw new Error('The recording is empty or was cut off.');
  return { rate, samples: mean(Array.from({ length: channels }, (_, channel) => Float32Array.from({ length: count }, (_one, at) => read(first + (at * channels + channel) * width)))) };
}

// Samples at another rate, by a windowed sinc with a low-pass at the new Nyquist frequency.
function resample(given, rate, wanted) {
  if (rate === wanted) return given;
  const divisor = ((a, b) => { while (b) [a, b] = [b, a % b]; return a; })(rate, wanted), step = rate / divisor, phases = wanted / divisor;
  if (phases > MOST_PHASES) throw new Error(`${rate} Hz cannot be converted to ${wanted} Hz.`);
  const cut = 0.97 * Math.min(1, wanted / rate), reach = Math.ceil(ZEROS / cut), taps = 2 * reach + 2;
  const filters = Array.from({ length: phases }, (_, phase) => Float32Array.from({ length: taps }, (_one, at) => {
    const place = cut * (at - reach - ((phase * step) % phases) / phases), sinc = place === 0 ? 1 : Math.sin(Math.PI * place) / (Math.PI * place);
    return Math.abs(place) < ZEROS ? cut * sinc * Math.cos((Math.PI * place) / ZEROS / 2) ** 2 : 0;
  }));
  return Float32Array.from({ length: Math.ceil((given.length * wanted) / rate) }, (_, n) => {
    const first = Math.floor((n * step) / phases) - reach, filter = filters[n % phases];
    let sum = 0;
    for (let at = 0; at < taps; at++) sum += (given[first + at] ?? 0) * filter[at];
    return sum;
  });
}
