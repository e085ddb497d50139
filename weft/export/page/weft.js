// A trained model in a page or in Node: `load` takes its bytes, `answer` gives what it answers. No library, no server.
//
//   const model = await load(bytes);             // an ArrayBuffer or a Uint8Array that `weft export --to web` wrote
//   const found = await model.answer('a text');  // { text, ... }: what `weft predict` writes, and more by kind, below
//
// kind                  of answer()                                              options
// rewrite, captions,    text, pieces, source, score, hypotheses,                 beam, direction, signal, onstep, inside
//   recordings            attention [pieces][source pieces] or null
//                         of rewrite also lacks: placeholders, numbers and unknown characters of the text; adds: numbers
// continue              text, added, pieces; next(text): pieces and probs        beam, or temperature, topK, topP, seed; tokens
// filler                text, gaps: for each its likeliest pieces                count
// classifier, pictures  text, labels, probs: every class, the likeliest first    inside
// tagger                text, words: word, tag and prob of each                  inside
// contexts              text, cosines in each layer, or the layers of vectors
// forecaster            text, past, values                                       series
// tables                text: CSV, series: name, past, values and times of each
//
// With `inside: true` an answer has what the model computed: `inside.encoder`, the gates of each recurrent layer that read the
// input, and `inside.steps`, for each step its log-probabilities, attention and state. The read() of a language
// model gives the steps for a text without continuing it. `about` are the settings, `reads` the kind of input.
// Several models may be loaded at once. Read next: writing.js, labels.js, series.js; graph.js.
import { unpack } from './graph.js';
import { Classifier, Comparer, PictureClassifier, Tagger } from './labels.js';
import { Forecaster, TableForecaster } from './series.js';
import { Captioner, Continuer, Filler, Rewriter, Transcriber } from './writing.js';

const KINDS = {
  rewrite: Rewriter, continue: Continuer, captions: Captioner, recordings: Transcriber, filler: Filler, tagger: Tagger,
  classifier: Classifier, pictures: PictureClassifier, contexts: Comparer, forecaster: Forecaster, tables: TableForecaster,
};

export async function load(bytes) {
  const content = await unpack(bytes), { kind } = content.settings;
  if (!KINDS[kind]) throw new Error(`This program cannot run models of the kind ${kind}.`);
  const model = new KINDS[kind](content);
  model.reads ??= 'text';
  return model;
}
