// An exported model as bytes, and its graphs, run node by node. Read next: operators.js; weft.js, which uses it.
//
// The bytes: "weft", the length of a header as four bytes, the header as JSON, then the data of tensors and files. Numbers are
// little-endian. The header: settings, files {name: [first byte, bytes]}, tensors [{type, dims, at, scales}] and graphs
// {name: {inputs, outputs, constants {name: place in tensors}, nodes [[operator, inputs, outputs, settings]]}}. A tensor with
// `scales` is stored as 8-bit integers, each block of BLOCK multiplied by a scale of its own. formats/web.py writes all this.
import { ARRAYS, OPERATORS, count, tensor } from './operators.js';
import { gru, lstm, rnn } from './recurrent.js';

const BLOCK = 32;
const RECURRENT = { LSTM: lstm, GRU: gru, RNN: rnn };

// The content of bytes: { settings, file(name) -> bytes, graph(name) -> Graph }. Compressed bytes (gzip) are unpacked first.
export async function unpack(given) {
  let bytes = given instanceof Uint8Array ? given : new Uint8Array(given);
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) bytes = new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer());
  if (new TextDecoder().decode(bytes.subarray(0, 4)) !== 'weft') throw new Error('expected a model that weft export wrote, got other data');
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(4, true), header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + size))), from = 8 + size;
  const part = (at, length) => bytes.slice(from + at, from + at + length);
  const tensors = header.tensors.map(({ type, dims, at, scales }) => {
    const all = count(dims);
    if (scales === undefined) return tensor(type, dims, new ARRAYS[type](part(at, all * ARRAYS[type].BYTES_PER_ELEMENT).buffer));
    const small = new Int8Array(part(at, all).buffer), by = new Float32Array(part(scales, 4 * Math.ceil(all / BLOCK)).buffer), data = new Float32Array(all);
    for (let place = 0; place < all; place++) data[place] = small[place] * by[Math.floor(place / BLOCK)];
    return tensor('float32', dims, data);
  });
  return {
    settings: header.settings,
    file: (name) => part(...header.files[name]),
    graph: (name) => new Graph(header.graphs[name], tensors),
  };
}

export class Graph {
  constructor(about, tensors) {
    Object.assign(this, about);
    this.known = new Map(Object.entries(about.constants).map(([name, place]) => [name, tensors[place]]));
    this.steps = about.nodes.map(([operator, inputs, outputs, settings]) => {
      const compute = RECURRENT[operator] ?? OPERATORS[operator] ?? CONTROL[operator];
      if (!compute) throw new Error(`This page lacks the operator ${operator}.`);
      const inner = Object.fromEntries(Object.entries(settings).map(([key, value]) => [key, value?.nodes ? new Graph(value, tensors) : value?.tensor !== undefined ? tensors[value.tensor] : value]));
      return { operator, inputs, outputs, compute, settings: inner };
    });
  }

  // The outputs by name. A probe is called with the gates of every recurrent layer: { i, f, o, g, c, h } of an LSTM,
  // { r, z, g, h } of a GRU, { h } of a plain one, each a tensor [steps, rows, units].
  run(given, probe, outer) {
    const values = new Map(outer ?? []);
    for (const [name, value] of this.known) values.set(name, value);
    for (const name of this.inputs) if (given[name] !== undefined) values.set(name, given[name]);
    for (const { operator, inputs, outputs, compute, settings } of this.steps) {
      const control = CONTROL[operator] !== undefined, own = inputs.map((name) => (name ? values.get(name) : undefined));
      let found;
      try {
        found = control ? compute(own, settings, values, probe) : compute(own, settings, probe);
      } catch (error) {
        throw new Error(`${operator} -> ${outputs[0]}: ${error.message}`, { cause: error });
      }
      if (Array.isArray(found)) outputs.forEach((name, at) => { if (name) values.set(name, found[at]); });
      else values.set(outputs[0], found);
    }
    return Object.fromEntries(this.outputs.map((name) => [name, values.get(name)]));
  }
}

// Operators that contain graphs.
const CONTROL = {
  If: ([test], { then_branch: yes, else_branch: no }, values, probe) => { const graph = test.data[0] ? yes : no, found = graph.run({}, probe, values); return graph.outputs.map((name) => found[name]); },
  Loop: ([most, test, ...carried], { body }, values, probe) => {
    const scans = [], [number, going, ...names] = body.inputs;
    let state = carried, again = !test || test.data[0];
    for (let at = 0; again && (!most || at < most.data[0]); at++) {
      const out = body.run({ [number]: tensor('int32', [], Int32Array.of(at)), [going]: tensor('bool', [], Uint8Array.of(1)), ...Object.fromEntries(names.map((name, n) => [name, state[n]])) }, probe, values);
      const [next, ...rest] = body.outputs.map((name) => out[name]);
      again = next.data[0];
      state = rest.slice(0, carried.length);
      rest.slice(carried.length).forEach((one, n) => (scans[n] ??= []).push(one));
    }
    return [...state, ...scans.map(stacked)];
  },
  Scan: (given, { body, num_scan_inputs: many }, values, probe) => {
    const carried = given.slice(0, -many), read = given.slice(-many), scans = [];
    let state = carried;
    for (let at = 0; at < read[0].dims[0]; at++) {
      const slices = read.map((one) => { const size = one.data.length / one.dims[0]; return tensor(one.type, one.dims.slice(1), one.data.slice(at * size, (at + 1) * size)); });
      const out = body.run(Object.fromEntries(body.inputs.map((name, n) => [name, [...state, ...slices][n]])), probe, values), all = body.outputs.map((name) => out[name]);
      state = all.slice(0, carried.length);
      all.slice(carried.length).forEach((one, n) => (scans[n] ??= []).push(one));
    }
    return [...state, ...scans.map(stacked)];
  },
};

function stacked(rows) {
  const found = tensor(rows[0].type, [rows.length, ...rows[0].dims]);
  rows.forEach((one, at) => found.data.set(one.data, at * one.data.length));
  return found;
}
