// Pictures as pixels: decoded by the browser, put on white, and scaled as Pillow scales them (Lanczos).
const BITS = 22, REACH = 3; // precision of the weights, and the window of the filter
const sinc = (x) => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));
const lanczos = (x) => (Math.abs(x) < REACH ? sinc(x) * sinc(x / REACH) : 0);

// For each new place the first old one, and whole-number weights of it and those after it.
function weights(from, to) {
  const scale = from / to, wide = Math.max(scale, 1), reach = REACH * wide;
  return Array.from({ length: to }, (_, at) => {
    const centre = (at + 0.5) * scale, first = Math.max(0, Math.trunc(centre - reach + 0.5)), last = Math.min(from, Math.trunc(centre + reach + 0.5));
    const found = Array.from({ length: last - first }, (_, n) => lanczos((n + first - centre + 0.5) * (1 / wide))), sum = found.reduce((a, b) => a + b, 0);
    const whole = found.map((one) => (one / sum) * 2 ** BITS).map((one) => Math.trunc(one < 0 ? one - 0.5 : one + 0.5));
    return [first, whole];
  });
}

// Scales one axis of [rows, columns, 3] bytes, the columns; the result has its axes swapped.
function turned(pixels, rows, columns, size) {
  const found = new Uint8Array(size * rows * 3);
  weights(columns, size).forEach(([first, whole], at) => {
    for (let row = 0; row < rows; row++) {
      for (let colour = 0; colour < 3; colour++) {
        let sum = 2 ** (BITS - 1);
        whole.forEach((one, n) => { sum += one * pixels[(row * columns + first + n) * 3 + colour]; });
        found[(at * rows + row) * 3 + colour] = Math.min(255, Math.max(0, Math.floor(sum / 2 ** BITS)));
      }
    }
  });
  return found;
}

// The bytes [height, width, 3] of a file, and its height and width; scaled to a square if there is a size.
export async function pixels(file, size) {
  return scaled(await createImageBitmap(file, { colorSpaceConversion: 'none' }).catch(() => { throw new Error('This file is no picture that the browser can read.'); }), size);
}

// The same of `count` frames of an animated picture, evenly spaced, or the `whole` of it: [count, height, width, 3].
export async function clip(file, size, count, whole) {
  if (typeof ImageDecoder === 'undefined') throw new Error('This browser cannot read the frames of a clip; use a newer one.');
  const decoder = new ImageDecoder({ data: await file.arrayBuffer(), type: file.type || 'image/gif', colorSpaceConversion: 'none' });
  await Promise.all([decoder.tracks.ready, decoder.completed]).catch(() => { throw new Error('This file is no clip that the browser can read; use a .gif.'); });
  const all = decoder.tracks.selectedTrack?.frameCount ?? 0;
  if (whole && all !== count) throw new Error(`Expected a clip of ${count} frames, as the model was trained on, got ${all}.`);
  if (all < count) throw new Error(`Expected at least ${count} frames, got ${all}; use longer clips.`);
  const found = [];
  for (let n = 0; n < count; n++) {
    const place = (n * (all - 1)) / Math.max(1, count - 1), low = Math.floor(place), frameIndex = place - low === 0.5 ? low + (low % 2) : Math.round(place);
    const { image } = await decoder.decode({ frameIndex });
    found.push(scaled(image, size));
    image.close();
  }
  const plain = new Uint8Array(found.reduce((sum, one) => sum + one.plain.length, 0));
  found.forEach((one, at) => plain.set(one.plain, at * one.plain.length));
  return { plain, height: found[0].height, width: found[0].width };
}

function scaled(image, size) {
  const width = image.displayWidth ?? image.width, height = image.displayHeight ?? image.height, context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
  context.fillStyle = 'white';
  context.fillRect(0, 0, width, height);
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, width, height), plain = new Uint8Array(width * height * 3).map((_, at) => data[Math.floor(at / 3) * 4 + (at % 3)]);
  if (!size || (width === size && height === size)) return { plain, height, width };
  const across = width === size ? null : turned(plain, height, width, size); // [size, height, 3]
  return { plain: both(across, plain, width, height, size), height: size, width: size };
}

// Both axes in turn, the columns first; an axis that has the size already stays.
function both(across, plain, width, height, size) {
  const flipped = across ?? swapped(plain, height, width);
  return height === size ? swapped(flipped, size, height) : turned(flipped, size, height, size);
}

function swapped(pixels, rows, columns) {
  const found = new Uint8Array(pixels.length);
  for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) found.set(pixels.subarray((row * columns + column) * 3, (row * columns + column + 1) * 3), (column * rows + row) * 3);
  return found;
}
