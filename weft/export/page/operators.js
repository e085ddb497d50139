// The operators of an exported graph on typed arrays, one function each. Read next: graph.js, which calls them; recurrent.js.
// A tensor is { type, dims, data }; whole numbers have 32 bits here, and truth values are bytes.

export const ARRAYS = { float32: Float32Array, float64: Float64Array, int32: Int32Array, uint8: Uint8Array, bool: Uint8Array };
export const tensor = (type, dims, data) => ({ type, dims, data: data ?? new ARRAYS[type](count(dims)) });
export const count = (dims) => dims.reduce((a, b) => a * b, 1);
const ints = (values) => tensor('int32', [values.length], Int32Array.from(values));
const axisOf = (axis, dims) => (axis < 0 ? axis + dims.length : axis);
const view = (one, dims) => ({ type: one.type, dims, data: one.data });

function strides(dims) {
  const found = new Array(dims.length);
  for (let axis = dims.length - 1, size = 1; axis >= 0; size *= dims[axis--]) found[axis] = size;
  return found;
}

function broadcast(...shapes) {
  const rank = Math.max(...shapes.map((dims) => dims.length)), found = new Array(rank).fill(1);
  for (const dims of shapes) dims.forEach((size, axis) => {
    const place = axis + rank - dims.length;
    if (size !== 1) {
      if (found[place] !== 1 && found[place] !== size) throw new Error(`shapes do not fit: ${shapes.map((one) => `[${one}]`).join(', ')}`);
      found[place] = size;
    }
  });
  return found;
}

// For each place of the result the place in the operand, or null if they are the same.
function places(dims, into) {
  if (dims.length === into.length && dims.every((size, axis) => size === into[axis])) return null;
  const own = strides(dims), ahead = into.length - dims.length, step = into.map((_, axis) => (axis < ahead || dims[axis - ahead] === 1 ? 0 : own[axis - ahead]));
  return walked(into, step);
}

// The place of each element of a shape, in order, given what each axis adds to it.
function walked(dims, step, first = 0) {
  const found = new Int32Array(count(dims));
  if (!found.length) return found;
  found[0] = first;
  let size = 1;
  for (let axis = dims.length - 1; axis >= 0; axis--) {
    for (let n = 1; n < dims[axis]; n++) for (let at = 0; at < size; at++) found[n * size + at] = found[at] + n * step[axis];
    size *= dims[axis];
  }
  return found;
}

function taken(one, dims, from) {
  const data = new one.data.constructor(from.length), { data: given } = one;
  for (let at = 0; at < from.length; at++) data[at] = given[from[at]];
  return { type: one.type, dims, data };
}

// Whether a tensor repeats itself, as a bias does, to fill another one.
function repeats(dims, into) {
  const inner = dims.slice(dims.findIndex((size) => size !== 1));
  return inner.length < into.length && count(dims) > 1 && inner.every((size, at) => size === into[into.length - inner.length + at]) && dims.length <= into.length;
}

const unary = (compute, type) => ([x]) => {
  const found = tensor(type ?? x.type, x.dims), { data } = x;
  for (let at = 0; at < data.length; at++) found.data[at] = compute(data[at]);
  return found;
};

const binary = (compute, type) => ([x, y]) => {
  const dims = broadcast(x.dims, y.dims), found = tensor(type ?? x.type, dims), out = found.data, a = x.data, b = y.data;
  if (repeats(y.dims, x.dims)) {
    for (let first = 0, size = b.length; first < out.length; first += size) for (let at = 0; at < size; at++) out[first + at] = compute(a[first + at], b[at]);
    return found;
  }
  const left = places(x.dims, dims), right = places(y.dims, dims);
  if (!left && !right) for (let at = 0; at < out.length; at++) out[at] = compute(a[at], b[at]);
  else if (!left && b.length === 1) for (let at = 0, value = b[0]; at < out.length; at++) out[at] = compute(a[at], value);
  else for (let at = 0; at < out.length; at++) out[at] = compute(a[left ? left[at] : at], b[right ? right[at] : at]);
  return found;
};

const many = (compute) => (values) => values.slice(1).reduce((before, one) => compute([before, one]), values[0]);

// [outer, axis, inner] sizes around an axis.
function around(dims, axis) {
  return [count(dims.slice(0, axis)), dims[axis], count(dims.slice(axis + 1))];
}

const reduce = (begin, add, end = (value) => value) => ([x, axes], { keepdims = 1, noop_with_empty_axes: noop = 0, axes: given }) => {
  const named = axes ? [...axes.data] : given ?? [];
  if (!named.length && noop) return x;
  const over = new Set(named.length ? named.map((axis) => axisOf(axis, x.dims)) : x.dims.keys());
  const kept = x.dims.map((size, axis) => (over.has(axis) ? 1 : size)), step = strides(kept).map((size, axis) => (over.has(axis) ? 0 : size));
  const into = walked(x.dims, step), sums = new Float64Array(count(kept)).fill(begin), { data } = x;
  for (let at = 0; at < data.length; at++) sums[into[at]] = add(sums[into[at]], data[at]);
  const found = tensor(x.type, keepdims ? kept : kept.filter((_, axis) => !over.has(axis))), size = data.length / (sums.length || 1);
  for (let at = 0; at < sums.length; at++) found.data[at] = end(sums[at], size);
  return found;
};

const softmax = (log) => ([x], { axis = -1 }) => {
  const [outer, size, inner] = around(x.dims, axisOf(axis, x.dims)), found = tensor(x.type, x.dims), { data } = x, out = found.data;
  for (let row = 0; row < outer; row++) for (let column = 0; column < inner; column++) {
    const first = row * size * inner + column;
    let most = -Infinity, sum = 0;
    for (let at = 0; at < size; at++) most = Math.max(most, data[first + at * inner]);
    for (let at = 0; at < size; at++) sum += Math.exp(data[first + at * inner] - most);
    const level = most + Math.log(sum);
    for (let at = 0; at < size; at++) {
      const place = first + at * inner;
      out[place] = log ? data[place] - level : Math.exp(data[place] - most) / sum;
    }
  }
  return found;
};

// out[m, n] += x[m, k] * y[k, n], from places in each; four rows of y at a time.
export function product(x, y, out, [m, k, n], [xs, ys, os] = [0, 0, 0]) {
  for (let row = 0; row < m; row++) {
    const from = xs + row * k, to = os + row * n;
    let at = 0;
    for (; at + 3 < k; at += 4) {
      const a = x[from + at], b = x[from + at + 1], c = x[from + at + 2], d = x[from + at + 3];
      if (a === 0 && b === 0 && c === 0 && d === 0) continue;
      const one = ys + at * n, two = one + n, three = two + n, four = three + n;
      for (let column = 0; column < n; column++) out[to + column] += a * y[one + column] + b * y[two + column] + c * y[three + column] + d * y[four + column];
    }
    for (; at < k; at++) {
      const a = x[from + at], one = ys + at * n;
      for (let column = 0; column < n; column++) out[to + column] += a * y[one + column];
    }
  }
}

// out[m, n] += x[m, k] * y[n, k]: products of rows.
export function rowProduct(x, y, out, [m, k, n], [xs, ys, os] = [0, 0, 0]) {
  for (let row = 0; row < m; row++) for (let column = 0; column < n; column++) {
    const from = xs + row * k, other = ys + column * k;
    let [a, b, c, d, at] = [0, 0, 0, 0, 0];
    for (; at + 3 < k; at += 4) {
      a += x[from + at] * y[other + at];
      b += x[from + at + 1] * y[other + at + 1];
      c += x[from + at + 2] * y[other + at + 2];
      d += x[from + at + 3] * y[other + at + 3];
    }
    for (; at < k; at++) a += x[from + at] * y[other + at];
    out[os + row * n + column] += a + b + (c + d);
  }
}

function matmul([x, y]) {
  const a = x.dims.length === 1 ? [1, ...x.dims] : x.dims, b = y.dims.length === 1 ? [...y.dims, 1] : y.dims;
  const [m, k] = a.slice(-2), n = b.at(-1), outer = broadcast(a.slice(0, -2), b.slice(0, -2));
  const dims = [...outer, ...(x.dims.length === 1 ? [] : [m]), ...(y.dims.length === 1 ? [] : [n])], found = tensor(x.type, dims);
  if (b.length === 2) { // rows of all outer axes at once
    product(x.data, y.data, found.data, [count(a) / (k || 1), k, n]);
    return found;
  }
  const left = places(a.slice(0, -2), outer), right = places(b.slice(0, -2), outer);
  for (let at = 0; at < count(outer); at++) product(x.data, y.data, found.data, [m, k, n], [(left ? left[at] : at) * m * k, (right ? right[at] : at) * k * n, at * m * n]);
  return found;
}

function gemm([x, y, bias], { alpha = 1, beta = 1, transA = 0, transB = 0 }) {
  const a = transA ? transpose([x], { perm: [1, 0] }) : x, [m, k] = a.dims, n = transB ? y.dims[0] : y.dims[1];
  const found = tensor(x.type, [m, n]);
  (transB ? rowProduct : product)(a.data, y.data, found.data, [m, k, n]);
  if (alpha !== 1) found.data.forEach((value, at) => { found.data[at] = alpha * value; });
  if (!bias) return found;
  const from = places(bias.dims, [m, n]);
  for (let at = 0; at < found.data.length; at++) found.data[at] += beta * bias.data[from ? from[at] : at];
  return found;
}

function transpose([x], { perm }) {
  const order = perm ?? x.dims.map((_, axis) => x.dims.length - 1 - axis), own = strides(x.dims), dims = order.map((axis) => x.dims[axis]);
  if (x.dims.filter((size) => size !== 1).length <= 1 || order.filter((axis) => x.dims[axis] !== 1).every((axis, at, all) => !at || all[at - 1] < axis)) return view(x, dims);
  return taken(x, dims, walked(dims, order.map((axis) => own[axis])));
}

function gather([x, index], { axis = 0 }) {
  const place = axisOf(axis, x.dims), [outer, size, inner] = around(x.dims, place), many = index.data.length;
  const found = tensor(x.type, [...x.dims.slice(0, place), ...index.dims, ...x.dims.slice(place + 1)]);
  for (let row = 0; row < outer; row++) for (let at = 0; at < many; at++) {
    const number = index.data[at] < 0 ? index.data[at] + size : index.data[at];
    if (!(number >= 0 && number < size)) throw new Error(`a table has ${size} rows, row ${number} is missing`);
    const from = (row * size + number) * inner, to = (row * many + at) * inner;
    if (inner === 1) found.data[to] = x.data[from]; else found.data.set(x.data.subarray(from, from + inner), to);
  }
  return found;
}

function gatherElements([x, index], { axis = 0 }) {
  const place = axisOf(axis, x.dims), own = strides(x.dims), size = x.dims[place];
  const from = walked(index.dims, own.map((one, at) => (at === place ? 0 : one)));
  index.data.forEach((number, at) => { from[at] += (number < 0 ? number + size : number) * own[place]; });
  return taken(x, index.dims, from);
}

function scatterElements([x, index, updates], { axis = 0, reduction = 'none' }) {
  const place = axisOf(axis, x.dims), own = strides(x.dims), size = x.dims[place], found = tensor(x.type, x.dims, x.data.slice());
  const into = walked(index.dims, own.map((one, at) => (at === place ? 0 : one)));
  index.data.forEach((number, at) => {
    const to = into[at] + (number < 0 ? number + size : number) * own[place], value = updates.data[at];
    found.data[to] = reduction === 'add' ? found.data[to] + value : value;
  });
  return found;
}

function gatherNd([x, index], { batch_dims: batch = 0 }) {
  const depth = index.dims.at(-1), inner = x.dims.slice(batch + depth), size = count(inner), own = strides(x.dims), many = count(index.dims.slice(batch, -1));
  const found = tensor(x.type, [...index.dims.slice(0, -1), ...inner]), outer = count(x.dims.slice(0, batch)), block = count(x.dims.slice(batch));
  for (let at = 0; at < count(index.dims.slice(0, -1)); at++) {
    let from = outer > 1 ? Math.floor(at / many) * block : 0;
    for (let axis = 0; axis < depth; axis++) { const number = index.data[at * depth + axis]; from += (number < 0 ? number + x.dims[batch + axis] : number) * own[batch + axis]; }
    found.data.set(x.data.subarray(from, from + size), at * size);
  }
  return found;
}

function scatterNd([x, index, updates], { reduction = 'none' }) {
  const depth = index.dims.at(-1), size = count(x.dims.slice(depth)), own = strides(x.dims), found = tensor(x.type, x.dims, x.data.slice());
  for (let at = 0; at < index.data.length / (depth || 1); at++) {
    let to = 0;
    for (let axis = 0; axis < depth; axis++) { const number = index.data[at * depth + axis]; to += (number < 0 ? number + x.dims[axis] : number) * own[axis]; }
    for (let n = 0; n < size; n++) found.data[to + n] = reduction === 'add' ? found.data[to + n] + updates.data[at * size + n] : updates.data[at * size + n];
  }
  return found;
}

function slice([x, starts, ends, axes, steps]) {
  const dims = [...x.dims], own = strides(x.dims), step = [...own];
  let first = 0;
  starts.data.forEach((start, at) => {
    const axis = axisOf(axes ? axes.data[at] : at, x.dims), size = x.dims[axis], by = steps ? steps.data[at] : 1;
    const clamped = (value, least, most) => Math.min(Math.max(value < 0 ? value + size : value, least), most);
    const begin = by > 0 ? clamped(start, 0, size) : clamped(start, 0, size - 1);
    const end = by > 0 ? clamped(ends.data[at], 0, size) : ends.data[at] < -size ? -1 : clamped(ends.data[at], -1, size - 1);
    dims[axis] = Math.max(0, Math.ceil((end - begin) / by));
    first += begin * own[axis];
    step[axis] = by * own[axis];
  });
  return taken(x, dims, walked(dims, step, first));
}

function concat(values, { axis }) {
  const place = axisOf(axis, values[0].dims), sizes = values.map((one) => one.dims[place]), dims = [...values[0].dims];
  dims[place] = sizes.reduce((a, b) => a + b, 0);
  const found = tensor(values[0].type, dims), [outer, whole, inner] = around(dims, place);
  let before = 0;
  values.forEach((one, at) => {
    const size = sizes[at] * inner;
    for (let row = 0; row < outer; row++) found.data.set(one.data.subarray(row * size, (row + 1) * size), (row * whole + before) * inner);
    before += sizes[at];
  });
  return found;
}

function split([x, sizes], { axis = 0, num_outputs: parts }) {
  const place = axisOf(axis, x.dims), size = x.dims[place], each = Math.ceil(size / parts);
  const widths = sizes ? [...sizes.data] : Array.from({ length: parts }, (_, at) => Math.min(each, size - at * each));
  let begin = 0;
  return widths.map((width) => {
    const found = slice([x, ints([begin]), ints([begin + width]), ints([place])]);
    begin += width;
    return found;
  });
}

function reshape([x, shape], { allowzero = 0 }) {
  const dims = [...shape.data].map((size, axis) => (size === 0 && !allowzero ? x.dims[axis] : size)), open = dims.indexOf(-1);
  if (open >= 0) dims[open] = x.data.length / (dims.reduce((a, b) => (b === -1 ? a : a * b), 1) || 1);
  return view(x, dims);
}

function unsqueeze([x, axes]) {
  const rank = x.dims.length + axes.data.length, places = new Set([...axes.data].map((axis) => (axis < 0 ? axis + rank : axis))), rest = [...x.dims];
  return view(x, Array.from({ length: rank }, (_, axis) => (places.has(axis) ? 1 : rest.shift())));
}

function squeeze([x, axes]) {
  const places = axes ? new Set([...axes.data].map((axis) => axisOf(axis, x.dims))) : null;
  return view(x, x.dims.filter((size, axis) => (places ? !places.has(axis) : size !== 1)));
}

function expand([x, shape]) {
  const dims = broadcast(x.dims, [...shape.data]), from = places(x.dims, dims);
  return from ? taken(x, dims, from) : x;
}

function where([test, x, y]) {
  const dims = broadcast(test.dims, x.dims, y.dims), found = tensor(x.type, dims), [t, a, b] = [test, x, y].map((one) => places(one.dims, dims));
  for (let at = 0; at < found.data.length; at++) found.data[at] = test.data[t ? t[at] : at] ? x.data[a ? a[at] : at] : y.data[b ? b[at] : at];
  return found;
}

function pad([x, pads, value, axes], { mode = 'constant' }) {
  const rank = x.dims.length, named = axes ? [...axes.data].map((axis) => axisOf(axis, x.dims)) : x.dims.map((_, axis) => axis);
  const before = new Array(rank).fill(0), dims = [...x.dims];
  named.forEach((axis, at) => { before[axis] = pads.data[at]; dims[axis] += pads.data[at] + pads.data[at + named.length]; });
  const found = tensor(x.type, dims), own = strides(x.dims), fill = value?.data[0] ?? 0, at = new Array(rank).fill(0);
  for (let to = 0; to < found.data.length; to++) {
    let from = 0, outside = false;
    for (let axis = 0; axis < rank; axis++) {
      const size = x.dims[axis];
      let place = at[axis] - before[axis];
      if (place < 0 || place >= size) {
        if (mode === 'constant') { outside = true; break; }
        place = mode === 'edge' ? Math.min(Math.max(place, 0), size - 1) : mode === 'wrap' ? (place + size) % size : place < 0 ? -place : 2 * (size - 1) - place;
      }
      from += place * own[axis];
    }
    found.data[to] = outside ? fill : x.data[from];
    for (let axis = rank - 1; axis >= 0 && ++at[axis] === dims[axis]; axis--) at[axis] = 0;
  }
  return found;
}

// Places of a window's first element, the size of the result, for each spatial axis.
function windows(x, kernel, { strides: steps = kernel.map(() => 1), pads = kernel.flatMap(() => [0, 0]), dilations = kernel.map(() => 1), ceil_mode: ceil = 0 }) {
  const round = ceil ? Math.ceil : Math.floor;
  return kernel.map((size, at) => ({ size, step: steps[at], before: pads[at], apart: dilations[at],
    out: round((x.dims[at + 2] + pads[at] + pads[at + kernel.length] - dilations[at] * (size - 1) - 1) / steps[at]) + 1 }));
}

// Calls visit(place in the image, place in the kernel) for the part of a window that lies inside.
function inWindow(sides, sizes, at, visit) {
  const inner = (axis, from, kernel) => {
    if (axis === sides.length) { visit(from, kernel); return; }
    const { size, step, before, apart } = sides[axis];
    for (let n = 0; n < size; n++) {
      const place = at[axis] * step - before + n * apart;
      if (place >= 0 && place < sizes[axis]) inner(axis + 1, from * sizes[axis] + place, kernel * size + n);
    }
  };
  inner(0, 0, 0);
}

const unravel = (place, dims) => { const found = new Array(dims.length); for (let axis = dims.length - 1; axis >= 0; axis--) { found[axis] = place % dims[axis]; place = Math.floor(place / dims[axis]); } return found; };

function conv([x, weight, bias], about) {
  const [rows, channels] = x.dims, [outs, per] = weight.dims, kernel = weight.dims.slice(2), sides = windows(x, kernel, about), groups = about.group ?? 1;
  const sizes = x.dims.slice(2), area = count(sizes), window = count(kernel), outSizes = sides.map((one) => one.out), outArea = count(outSizes);
  const found = tensor(x.type, [rows, outs, ...outSizes]), each = outs / groups;
  for (let place = 0; place < outArea; place++) {
    const froms = [], kernels = [];
    inWindow(sides, sizes, unravel(place, outSizes), (from, at) => { froms.push(from); kernels.push(at); });
    for (let row = 0; row < rows; row++) for (let out = 0; out < outs; out++) {
      const group = Math.floor(out / each);
      let sum = bias ? bias.data[out] : 0;
      for (let channel = 0; channel < per; channel++) {
        const from = (row * channels + group * per + channel) * area, other = (out * per + channel) * window;
        for (let n = 0; n < froms.length; n++) sum += x.data[from + froms[n]] * weight.data[other + kernels[n]];
      }
      found.data[(row * outs + out) * outArea + place] = sum;
    }
  }
  return found;
}

const pool = (begin, add, end) => ([x], about) => {
  const sides = windows(x, about.kernel_shape, about), sizes = x.dims.slice(2), area = count(sizes), outSizes = sides.map((one) => one.out), outArea = count(outSizes);
  const found = tensor(x.type, [...x.dims.slice(0, 2), ...outSizes]), whole = count(about.kernel_shape);
  for (let place = 0; place < outArea; place++) {
    const froms = [];
    inWindow(sides, sizes, unravel(place, outSizes), (from) => froms.push(from));
    for (let row = 0; row < count(x.dims.slice(0, 2)); row++) {
      const value = froms.reduce((before, from) => add(before, x.data[row * area + from]), begin);
      found.data[row * outArea + place] = end(value, about.count_include_pad ? whole : froms.length);
    }
  }
  return found;
};

function normalised([x, scale, bias], { axis = -1, epsilon = 1e-5 }, centred = true) {
  const size = count(x.dims.slice(axisOf(axis, x.dims))), found = tensor(x.type, x.dims), { data } = x;
  for (let first = 0; first < data.length; first += size) {
    let mean = 0, square = 0;
    if (centred) for (let at = 0; at < size; at++) mean += data[first + at] / size;
    for (let at = 0; at < size; at++) square += (data[first + at] - mean) ** 2 / size;
    const by = 1 / Math.sqrt(square + epsilon);
    for (let at = 0; at < size; at++) found.data[first + at] = (data[first + at] - mean) * by * (scale ? scale.data[at] : 1) + (bias ? bias.data[at] : 0);
  }
  return found;
}

function cumulated([x, axis], { exclusive = 0, reverse = 0 }) {
  const [outer, size, inner] = around(x.dims, axisOf(axis.data[0], x.dims)), found = tensor(x.type, x.dims);
  for (let row = 0; row < outer; row++) for (let column = 0; column < inner; column++) {
    let sum = 0;
    for (let n = 0; n < size; n++) {
      const place = (row * size + (reverse ? size - 1 - n : n)) * inner + column;
      if (exclusive) found.data[place] = sum;
      sum += x.data[place];
      if (!exclusive) found.data[place] = sum;
    }
  }
  return found;
}

const best = (better) => ([x], { axis = 0, keepdims = 1, select_last_index: last = 0 }) => {
  const place = axisOf(axis, x.dims), [outer, size, inner] = around(x.dims, place), kept = x.dims.flatMap((one, at) => (at !== place ? [one] : keepdims ? [1] : []));
  const found = tensor('int32', kept);
  for (let row = 0; row < outer; row++) for (let column = 0; column < inner; column++) {
    let chosen = 0;
    for (let at = 1; at < size; at++) {
      const value = x.data[(row * size + at) * inner + column], before = x.data[(row * size + chosen) * inner + column];
      if (better(value, before) || (last && value === before)) chosen = at;
    }
    found.data[row * inner + column] = chosen;
  }
  return found;
};

function topK([x, k], { axis = -1, largest = 1 }) {
  const place = axisOf(axis, x.dims), [outer, size, inner] = around(x.dims, place), wanted = k.data[0], dims = x.dims.map((one, at) => (at === place ? wanted : one));
  const values = tensor(x.type, dims), numbers = tensor('int32', dims), sign = largest ? -1 : 1;
  for (let row = 0; row < outer; row++) for (let column = 0; column < inner; column++) {
    const value = (at) => x.data[(row * size + at) * inner + column], order = Array.from({ length: size }, (_, at) => at).sort((a, b) => sign * (value(a) - value(b)) || a - b);
    for (let at = 0; at < wanted; at++) {
      values.data[(row * wanted + at) * inner + column] = value(order[at]);
      numbers.data[(row * wanted + at) * inner + column] = order[at];
    }
  }
  return [values, numbers];
}

function einsum(values, { equation }) {
  const [given, written] = equation.replace(/\s/g, '').split('->'), size = {};
  const more = given.split(',').map((term, at) => (term.includes('.') ? values[at].dims.length - term.length + 3 : 0)), digits = (rank) => '9876543210'.slice(10 - rank); // axes of an ellipsis
  const terms = given.split(',').map((term, at) => term.replace('...', digits(more[at]))), result = written.replace('...', digits(Math.max(...more)));
  terms.forEach((term, at) => [...term].forEach((letter, axis) => { size[letter] = Math.max(size[letter] ?? 0, values[at].dims[axis]); }));
  const inner = Object.keys(size).filter((letter) => !result.includes(letter)), letters = [...result, ...inner], dims = letters.map((letter) => size[letter]);
  const from = terms.map((term, at) => { const own = strides(values[at].dims); return walked(dims, letters.map((letter) => [...term].reduce((sum, one, axis) => sum + (one === letter && values[at].dims[axis] > 1 ? own[axis] : 0), 0))); });
  const found = tensor(values[0].type, [...result].map((letter) => size[letter])), block = count(inner.map((letter) => size[letter]));
  for (let at = 0; at < found.data.length; at++) {
    let sum = 0;
    for (let n = at * block; n < (at + 1) * block; n++) sum += values.reduce((before, one, term) => before * one.data[from[term][n]], 1);
    found.data[at] = sum;
  }
  return found;
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
// Abramowitz and Stegun 7.1.26 is too coarse; this series and continued fraction are exact to double precision.
function erf(x) {
  const a = Math.abs(x);
  if (a > 6) return Math.sign(x);
  if (a < 2.5) {
    let term = a, sum = a;
    for (let n = 1; Math.abs(term) > 1e-17 * sum; n++) { term *= -a * a / n; sum += term / (2 * n + 1); }
    return Math.sign(x) * 2 / Math.sqrt(Math.PI) * sum;
  }
  let fraction = 0;
  for (let n = 60; n > 0; n--) fraction = n / 2 / (a + fraction);
  return Math.sign(x) * (1 - Math.exp(-a * a) / Math.sqrt(Math.PI) / (a + fraction));
}

function even(x) { // rounds halves to even numbers
  const low = Math.floor(x), rest = x - low;
  return rest < 0.5 ? low : rest > 0.5 ? low + 1 : low % 2 ? low + 1 : low;
}

function range([start, limit, delta]) {
  const size = Math.max(0, Math.ceil((limit.data[0] - start.data[0]) / delta.data[0])), found = tensor(start.type, [size]);
  for (let at = 0; at < size; at++) found.data[at] = start.data[0] + at * delta.data[0];
  return found;
}

const TYPES = { 1: 'float32', 2: 'uint8', 3: 'int32', 6: 'int32', 7: 'int32', 9: 'bool', 10: 'float32', 11: 'float64' };
function cast([x], { to }) {
  const type = TYPES[to];
  if (type === x.type) return x;
  return unary(type === 'bool' ? (value) => (value === 0 ? 0 : 1) : type === 'int32' || type === 'uint8' ? Math.trunc : (value) => value, type)([x]);
}

function triangle([x, k], { upper = 1 }) {
  const [rows, columns] = x.dims.slice(-2), found = tensor(x.type, x.dims, x.data.slice()), shift = k?.data[0] ?? 0;
  for (let at = 0; at < found.data.length; at++) {
    const column = at % columns, row = Math.floor(at / columns) % rows;
    if (upper ? column < row + shift : column > row + shift) found.data[at] = 0;
  }
  return found;
}

function nonZero([x]) {
  const found = [...x.data.keys()].filter((at) => x.data[at]).map((at) => unravel(at, x.dims));
  return tensor('int32', [x.dims.length, found.length], Int32Array.from(x.dims.flatMap((_, axis) => found.map((one) => one[axis]))));
}

export const OPERATORS = {
  Abs: unary(Math.abs), Neg: unary((x) => -x), Exp: unary(Math.exp), Log: unary(Math.log), Sqrt: unary(Math.sqrt), Sin: unary(Math.sin), Cos: unary(Math.cos),
  Tanh: unary(Math.tanh), Sigmoid: unary(sigmoid), Relu: unary((x) => Math.max(0, x)), Erf: unary(erf), Floor: unary(Math.floor), Ceil: unary(Math.ceil), Round: unary(even),
  Reciprocal: unary((x) => 1 / x), Sign: unary(Math.sign), Softplus: unary((x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)))), Not: unary((x) => (x ? 0 : 1)),
  Elu: ([x], { alpha = 1 }) => unary((value) => (value > 0 ? value : alpha * Math.expm1(value)))([x]),
  LeakyRelu: ([x], { alpha = 0.01 }) => unary((value) => (value > 0 ? value : alpha * value))([x]),
  Gelu: ([x], { approximate = 'none' }) => unary(approximate === 'tanh' ? (v) => 0.5 * v * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (v + 0.044715 * v ** 3))) : (v) => 0.5 * v * (1 + erf(v / Math.SQRT2)))([x]),
  HardSigmoid: ([x], { alpha = 0.2, beta = 0.5 }) => unary((v) => Math.min(1, Math.max(0, alpha * v + beta)))([x]),
  IsNaN: unary((x) => (Number.isNaN(x) ? 1 : 0), 'bool'), IsInf: unary((x) => (Math.abs(x) === Infinity ? 1 : 0), 'bool'), Identity: ([x]) => x,
  Add: binary((a, b) => a + b), Sub: binary((a, b) => a - b), Mul: binary((a, b) => a * b), Div: (pair) => binary(pair[0].type === 'int32' ? (a, b) => Math.trunc(a / b) : (a, b) => a / b)(pair),
  Pow: binary((a, b) => a ** b), Min: many(binary((a, b) => Math.min(a, b))), Max: many(binary((a, b) => Math.max(a, b))), Sum: many(binary((a, b) => a + b)),
  Mod: ([x, y], { fmod = 0 }) => binary(fmod ? (a, b) => a % b : (a, b) => a - b * Math.floor(a / b))([x, y]),
  Equal: binary((a, b) => (a === b ? 1 : 0), 'bool'), Less: binary((a, b) => (a < b ? 1 : 0), 'bool'), LessOrEqual: binary((a, b) => (a <= b ? 1 : 0), 'bool'),
  Greater: binary((a, b) => (a > b ? 1 : 0), 'bool'), GreaterOrEqual: binary((a, b) => (a >= b ? 1 : 0), 'bool'),
  And: binary((a, b) => a & b, 'bool'), Or: binary((a, b) => a | b, 'bool'), Xor: binary((a, b) => a ^ b, 'bool'),
  Clip: ([x, low, high]) => unary((value) => Math.min(Math.max(value, low?.data[0] ?? -Infinity), high?.data[0] ?? Infinity))([x]),
  ReduceSum: reduce(0, (a, b) => a + b), ReduceMean: reduce(0, (a, b) => a + b, (sum, size) => sum / size), ReduceMax: reduce(-Infinity, Math.max), ReduceMin: reduce(Infinity, Math.min),
  ReduceProd: reduce(1, (a, b) => a * b), ReduceSumSquare: reduce(0, (a, b) => a + b * b), ReduceL1: reduce(0, (a, b) => a + Math.abs(b)), ReduceL2: reduce(0, (a, b) => a + b * b, Math.sqrt),
  ReduceLogSumExp: ([x, axes], about) => {
    const most = OPERATORS.ReduceMax([x, axes], { ...about, keepdims: 1 }), inner = OPERATORS.ReduceSum([OPERATORS.Exp([OPERATORS.Sub([x, most])]), axes], { ...about, keepdims: 1 });
    const found = OPERATORS.Add([OPERATORS.Log([inner]), most]);
    return about.keepdims === 0 ? OPERATORS.ReduceSum([found, axes], about) : found;
  },
  Softmax: softmax(false), LogSoftmax: softmax(true), MatMul: matmul, Gemm: gemm, Einsum: einsum, Conv: conv,
  MaxPool: pool(-Infinity, Math.max, (value) => value), AveragePool: pool(0, (a, b) => a + b, (sum, size) => sum / size),
  GlobalAveragePool: ([x]) => OPERATORS.ReduceMean([x, ints(x.dims.map((_, axis) => axis).slice(2))], {}),
  LayerNormalization: (values, about) => normalised(values, about), RMSNormalization: ([x, scale], about) => normalised([x, scale], about, false), SimplifiedLayerNormalization: ([x, scale], about) => normalised([x, scale], about, false),
  InstanceNormalization: ([x, scale, bias], { epsilon }) => {
    const own = (one) => view(one, [x.dims[1], ...x.dims.slice(2).map(() => 1)]);
    return OPERATORS.Add([OPERATORS.Mul([normalised([x], { axis: 2, epsilon }), own(scale)]), own(bias)]);
  },
  Transpose: transpose, Reshape: reshape, Unsqueeze: unsqueeze, Squeeze: squeeze, Expand: expand, Where: where, Concat: concat, Split: split, Slice: slice, Pad: pad,
  Flatten: ([x], { axis = 1 }) => view(x, [count(x.dims.slice(0, axis)), count(x.dims.slice(axis))]),
  Tile: ([x, repeats]) => [...repeats.data].reduce((one, times, axis) => concat(new Array(times).fill(one), { axis }), x),
  Gather: gather, GatherElements: gatherElements, GatherND: gatherNd, ScatterElements: scatterElements, ScatterND: scatterNd, CumSum: cumulated, ArgMax: best((a, b) => a > b), ArgMin: best((a, b) => a < b), TopK: topK,
  Trilu: triangle, NonZero: nonZero, Range: range, Cast: cast, CastLike: ([x, y]) => (x.type === y.type ? x : unary((value) => value, y.type)([x])),
  Shape: ([x], { start = 0, end }) => ints(x.dims.slice(start, end)), Size: ([x]) => tensor('int32', [], Int32Array.of(x.data.length)),
  ConstantOfShape: ([shape], { value }) => { const found = tensor(value?.type ?? 'float32', [...shape.data]); found.data.fill(value?.data[0] ?? 0); return found; },
};
