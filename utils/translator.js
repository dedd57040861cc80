// The attention model of the course in JavaScript, without a framework: greedy search
// by a file of data/models as it is. S source words with <eos>, H units, V words.

const [BOS, EOS, UNK] = [1, 2, 3]; // ids; 0 is <pad>

// --- a safetensors file -------------------------------------------------------------

function fromHalf(bits) {
  const sign = bits >> 15 ? -1 : 1, exponent = (bits >> 10) & 31, rest = bits & 1023;
  if (exponent === 0) return sign * 2 ** -24 * rest;
  return sign * 2 ** (exponent - 15) * (1 + rest / 1024);
}

// An ArrayBuffer -> the Translator in it; an Error in words if it holds another model.
export function readModel(buffer) {
  const size = Number(new DataView(buffer).getBigUint64(0, true));
  const text = new TextDecoder().decode(new Uint8Array(buffer, 8, size));
  const { __metadata__: metadata, ...entries } = JSON.parse(text);
  const header = JSON.parse(metadata.header), weights = {};
  for (const [name, { dtype, shape, data_offsets }] of Object.entries(entries)) {
    const [from, to] = data_offsets.map((offset) => 8 + size + offset);
    const bytes = buffer.slice(from, to);
    if (dtype !== "F16" && dtype !== "F32")
      throw new Error(`a page reads numbers of 16 or 32 bits, not ${dtype}`);
    const data = dtype === "F16"
      ? Float32Array.from(new Uint16Array(bytes), fromHalf) : new Float32Array(bytes);
    weights[name.replace(/^model\./, "")] = { data, columns: shape[1] };
  }
  return new Translator(weights, header);
}

// --- text ---------------------------------------------------------------------------

const CLITIC = "(?:n't|'(?:d|ll|m|re|s|ve))(?![\\p{L}\\p{N}_])"; // do n't, baker 's
const WORD = "[\\p{L}\\p{N}]+(?:['-][\\p{L}\\p{N}]+)*";
const UNITS = new RegExp(`${CLITIC}|${WORD}|\\S`, "gu");
const ATTACHED = new RegExp(`([\\p{L}\\p{N}_])(?=${CLITIC})`, "gu");

// An English text -> its words, as utils.text.tokenize cuts it.
export function tokenize(text) {
  const small = text.toLowerCase().normalize("NFC").replace(/[\u2019\u02bc]/g, "'");
  return small.replace(ATTACHED, "$1 ").match(UNITS) ?? [];
}

// Words -> the sentence that utils.text.detokenize writes in French or Chinese.
export function detokenize(words, lang) {
  let text = "";
  for (const word of words) {
    const chinese = lang === "zh" && !/^[\x00-\x7f]+$/.test(text.slice(-1) + word);
    const close = /^[.,?!]$/.test(word) || (lang === "fr" && text.endsWith("'"));
    if (lang === "fr" && /^[?!]$/.test(word)) text += text && "\u00a0";
    else if (text && !chinese && !close) text += " ";
    text += word;
  }
  return text.startsWith("<unk>") ? text : text.charAt(0).toUpperCase() + text.slice(1);
}

// How many letters must be written, left out or exchanged to make a word of another.
export function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const exchanged = row[j - 1] + (a[i - 1] !== b[j - 1]);
      next.push(Math.min(row[j] + 1, next[j - 1] + 1, exchanged));
    }
    row = next;
  }
  return row[b.length];
}

// --- the model ----------------------------------------------------------------------

// y = W x + b, for W (rows, columns) and x (columns,).
function affine(W, x, b) {
  const y = new Float32Array(W.data.length / W.columns);
  for (let i = 0, k = 0; i < y.length; i++) {
    let sum = b ? b.data[i] : 0;
    for (let j = 0; j < x.length; j++) sum += W.data[k++] * x[j];
    y[i] = sum;
  }
  return y;
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const row = (W, i) => W.data.subarray(i * W.columns, (i + 1) * W.columns);

function joined(a, b) {
  const both = new Float32Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

export function softmax(scores) {
  const top = Math.max(...scores), exps = Array.from(scores, (e) => Math.exp(e - top));
  const sum = exps.reduce((a, b) => a + b);
  return exps.map((e) => e / sum);
}

export class Translator {
  constructor(weights, { config, src_vocab, tgt_vocab }) {
    const { kind, bidirectional, num_layers, score = "additive" } = config;
    const runs = ["attention", "local"].includes(kind) && score === "additive";
    const reach = kind === "local" ? config.reach ?? 5 : Infinity;
    const plain = bidirectional && num_layers === 1 && config.place !== "predicted";
    if (!runs || !plain || weights["decoder.bridge.map.weight"])
      throw new Error(`a page can't run this model: ${JSON.stringify(config)}`);
    Object.assign(this, { weights, reach, lang: tgt_vocab[0] });
    [this.source, this.target] = [src_vocab[1], tgt_vocab[1]];
    this.sourceIds = new Map(this.source.map((word, id) => [word, id]));
    this.targetIds = new Map(this.target.map((word, id) => [word, id]));
  }

  knows(word) {
    return (this.sourceIds.get(word) ?? UNK) > UNK;
  }

  // An input x and a state s (H,) -> the next state, by PyTorch's form of the GRU.
  gru(name, x, s) {
    const part = (p) => this.weights[name.replace("*", p)];
    const a = affine(part("weight_ih"), x, part("bias_ih"));
    const b = affine(part("weight_hh"), s, part("bias_hh"));
    const H = s.length;
    return s.map((old, i) => {
      const r = sigmoid(a[i] + b[i]), z = sigmoid(a[H + i] + b[H + i]);
      return (1 - z) * Math.tanh(a[2 * H + i] + r * b[2 * H + i]) + z * old;
    });
  }

  // Ids (S,) -> annotations h_j (S, 2H), keys U_a h_j (S, H), the first state s_0.
  encode(ids) {
    const words = ids.map((id) => row(this.weights["encoder.embedding.weight"], id));
    const half = this.weights["encoder.rnn.weight_hh_l0"].columns;
    const read = (ending, inputs) => {
      let s = new Float32Array(half);
      return inputs.map((x) => (s = this.gru(`encoder.rnn.*_l0${ending}`, x, s)));
    };
    const forwards = read("", words);
    const backwards = read("_reverse", words.reverse()).reverse();
    const annotations = forwards.map((h, j) => joined(h, backwards[j]));
    const U = this.weights["decoder.attention.W_k.weight"];
    const keys = annotations.map((h) => affine(U, h));
    return { annotations, keys, state: joined(forwards.at(-1), backwards[0]) };
  }

  // The state s_{i-1} asks -> scores e_ij and weights alpha_ij (S,), the context c_i.
  // number: of the step, from 0; only a local model looks at it.
  attend({ annotations, keys }, state, number) {
    const query = affine(this.weights["decoder.attention.W_q.weight"], state);
    const v = this.weights["decoder.attention.w_v.weight"].data;
    const place = Math.min(number, keys.length - 1);
    const scores = keys.map((key, j) => Math.abs(j - place) > this.reach ? -Infinity
      : v.reduce((sum, v_k, k) => sum + v_k * Math.tanh(query[k] + key[k]), 0));
    const weights = softmax(scores), context = new Float32Array(annotations[0].length);
    annotations.forEach((h, j) => h.forEach((x, k) => (context[k] += weights[j] * x)));
    return { scores, weights, context };
  }

  // Source words without <eos> -> the steps of greedy search: { word, scores, weights
  // (S,), chances (V,), best: ids that may be written, the most probable first }.
  // forced: Map of steps, from 0, to words. erased: Set of places read as <unk>.
  translate(words, forced = new Map(), erased = new Set()) {
    const id = (word, j) =>
      this.knows(word) && !erased.has(j) ? this.sourceIds.get(word) : UNK;
    const source = this.encode([...words.map(id), EOS]);
    const embedding = this.weights["decoder.embedding.weight"];
    const dense = this.weights["decoder.dense.weight"];
    const bias = this.weights["decoder.dense.bias"], steps = [];
    let { state } = source, last = BOS;
    while (last !== EOS && steps.length < 2 * words.length + 12) {
      const { scores, weights, context } = this.attend(source, state, steps.length);
      const x = joined(context, row(embedding, last));
      state = this.gru("decoder.rnn.*_l0", x, state);
      const chances = softmax(affine(dense, state, bias));
      const ids = chances.map((_, k) => k).slice(EOS); // <pad> and <bos> aren't written
      const best = ids.sort((a, b) => chances[b] - chances[a]);
      last = this.targetIds.get(forced.get(steps.length)) ?? best[0];
      steps.push({ word: this.target[last], scores, weights, chances, best });
    }
    return steps;
  }
}
