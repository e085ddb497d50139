// ONNX's recurrent layers, forwards in time. A probe sees the gates of every step: see graph.js.
import { rowProduct, tensor } from './operators.js';

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const ACTIVATIONS = { Tanh: Math.tanh, Relu: (x) => Math.max(0, x), Sigmoid: sigmoid };

// Calls step(row, inputs of the gates, state) for every real position; returns all states, the last, and the last cells.
function layer(values, gates, size, step, probe, names) {
  const [x, wx, wh, biases, lengths, first, firstCell] = values, [steps, rows, width] = x.dims, all = gates * size;
  const y = tensor('float32', [steps, 1, rows, size]), last = tensor('float32', [1, rows, size], first?.data.slice()), cells = tensor('float32', [1, rows, size], firstCell?.data.slice());
  const seen = Object.fromEntries(probe ? names.map((name) => [name, tensor('float32', [steps, rows, size])]) : []);
  const fed = new Float32Array(steps * rows * all), back = new Float32Array(all);
  rowProduct(x.data, wx.data, fed, [steps * rows, width, all]);
  for (let time = 0; time < steps; time++) for (let row = 0; row < rows; row++) {
    if (lengths && time >= lengths.data[row]) continue;
    back.fill(0);
    const state = last.data.subarray(row * size, (row + 1) * size), cell = cells.data.subarray(row * size, (row + 1) * size), at = time * rows + row;
    rowProduct(state, wh.data, back, [1, size, all]);
    const found = step(fed.subarray(at * all, (at + 1) * all), back, biases?.data ?? new Float32Array(2 * all), state, cell);
    y.data.set(state, at * size);
    for (const name of Object.keys(seen)) seen[name].data.set(found[name], at * size);
  }
  probe?.(seen);
  return [y, last, cells];
}

export function lstm(values, { hidden_size: size }, probe) {
  const peep = values[7]?.data, gate = { i: new Float32Array(size), o: new Float32Array(size), f: new Float32Array(size), g: new Float32Array(size), c: null, h: null };
  return layer(values, 4, size, (fed, back, bias, state, cell) => {
    const sum = (place, n) => fed[place * size + n] + back[place * size + n] + bias[place * size + n] + bias[(4 + place) * size + n];
    for (let n = 0; n < size; n++) {
      gate.i[n] = sigmoid(sum(0, n) + (peep ? peep[n] * cell[n] : 0));
      gate.f[n] = sigmoid(sum(2, n) + (peep ? peep[2 * size + n] * cell[n] : 0));
      gate.g[n] = Math.tanh(sum(3, n));
      cell[n] = gate.f[n] * cell[n] + gate.i[n] * gate.g[n];
      gate.o[n] = sigmoid(sum(1, n) + (peep ? peep[size + n] * cell[n] : 0));
      state[n] = gate.o[n] * Math.tanh(cell[n]);
    }
    return { ...gate, c: cell, h: state };
  }, probe, Object.keys(gate));
}

export function gru(values, { hidden_size: size, linear_before_reset: after = 0 }, probe) {
  const gate = { r: new Float32Array(size), z: new Float32Array(size), g: new Float32Array(size), h: null }, reset = new Float32Array(size), turned = new Float32Array(size), wh = values[2].data;
  const inner = new Float32Array(wh.subarray(2 * size * size, 3 * size * size));
  return layer(values, 3, size, (fed, back, bias, state) => {
    const sum = (place, n) => fed[place * size + n] + back[place * size + n] + bias[place * size + n] + bias[(3 + place) * size + n];
    for (let n = 0; n < size; n++) {
      gate.z[n] = sigmoid(sum(0, n));
      gate.r[n] = sigmoid(sum(1, n));
      reset[n] = gate.r[n] * state[n];
    }
    turned.fill(0);
    if (!after) rowProduct(reset, inner, turned, [1, size, size]);
    for (let n = 0; n < size; n++) {
      const own = after ? gate.r[n] * (back[2 * size + n] + bias[5 * size + n]) : turned[n] + bias[5 * size + n];
      gate.g[n] = Math.tanh(fed[2 * size + n] + bias[2 * size + n] + own);
      state[n] = (1 - gate.z[n]) * gate.g[n] + gate.z[n] * state[n];
    }
    return { ...gate, h: state };
  }, probe, Object.keys(gate));
}

export function rnn(values, { hidden_size: size, activations: [name] = ['Tanh'] }, probe) {
  const activate = ACTIVATIONS[name];
  return layer(values, 1, size, (fed, back, bias, state) => {
    for (let n = 0; n < size; n++) state[n] = activate(fed[n] + back[n] + bias[n] + bias[size + n]);
    return { h: state };
  }, probe, ['h']);
}
