/**
 * What a model must satisfy before libllama may see it.
 *
 * libllama answers most faults with an error, but some with an assertion that ends the process. Those are checked here,
 * for every architecture alike. Source: `llama_model_base::load_hparams`, `llama-vocab.cpp` and the graphs in
 * `src/models/` of llama.cpp v0.5.0.
 */
import { P4Error } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { architectureRule } from './architecture.ts';
import { numberOf, numbersOf, textOf, unsignedOf, type GgufElementType } from './gguf-value.ts';
import type { ModelFile, ModelTensor } from './model-file.ts';
import { slidingWindowKey, slidingWindowLayers } from './sliding-window.ts';

/** What is wrong, as `found` and `expected`. */
interface Unsound {
  readonly found: string;
  readonly expected: string;
}

/** @throws MODEL_INVALID naming the first thing that is wrong */
export function checkSoundness(model: ModelFile): void {
  for (const check of checks) {
    const fault = check(model);
    if (fault !== null) throw new P4Error('MODEL_INVALID', { file: model.shards[0]?.path ?? '', ...fault });
  }
}

const checks: readonly ((model: ModelFile) => Unsound | null)[] = [
  checkKind,
  checkLayers,
  checkExperts,
  checkHeadCounts,
  checkHeadShape,
  checkRope,
  checkSlidingWindow,
  checkWindowedHeads,
  checkNorm,
  checkVocabulary,
  checkTokenizer,
];

/** Adapters and projectors are GGUF files of the same architecture, but no models. */
function checkKind({ metadata }: ModelFile): Unsound | null {
  const kind = textOf(metadata.get('general.type'));
  return kind === null || kind === 'model' ? null : { found: `a file of type ${kind}`, expected: 'type model' };
}

function checkLayers({ layers, tensors, metadata, architecture }: ModelFile): Unsound | null {
  const predicting = unsignedOf(metadata.get(`${architecture}.nextn_predict_layers`)) ?? 0;
  if (predicting >= layers) return { found: `${predicting} predicting layers of ${layers}`, expected: 'fewer' };
  if (layers > limits.modelLayers) return { found: `${layers} layers`, expected: `at most ${limits.modelLayers}` };
  const found = new Set<number>();
  for (const { name } of tensors) {
    const layer = layerOf(name);
    if (layer === null) continue;
    if (layer >= layers) return { found: `tensor ${name}`, expected: `layers 0 to ${layers - 1}` };
    found.add(layer);
  }
  for (let layer = 0; layer < layers; layer += 1) {
    if (!found.has(layer)) return { found: `no tensor of layer ${layer}`, expected: `layers 0 to ${layers - 1}` };
  }
  return null;
}

/** The layer a tensor belongs to, `null` for a tensor of the whole model. */
export function layerOf(name: string): number | null {
  const match = /^blk\.(0|[1-9][0-9]{0,3})\./.exec(name);
  return match === null ? null : Number(match[1]);
}

function checkExperts({ metadata, architecture }: ModelFile): Unsound | null {
  const experts = unsignedOf(metadata.get(`${architecture}.expert_count`)) ?? 0;
  const usedCounts = numbersOf(metadata.get(`${architecture}.expert_used_count`), limits.modelLayers);
  const used = usedCounts.length === 0 ? 0 : Math.max(...usedCounts);
  const groups = unsignedOf(metadata.get(`${architecture}.expert_group_count`)) ?? 0;
  if (experts > limits.modelExperts) return { found: `${experts} experts`, expected: `at most ${limits.modelExperts}` };
  if (!(used <= experts) || (experts > 0 && used === 0)) {
    return { found: `${used} of ${experts} experts in use`, expected: 'at least one where there are any, at most all' };
  }
  return groups > 0 && groups >= experts
    ? { found: `${groups} groups of ${experts} experts`, expected: 'fewer' }
    : null;
}

function checkHeadCounts({ metadata, architecture, layers }: ModelFile): Unsound | null {
  const heads = numbersOf(metadata.get(`${architecture}.attention.head_count`), limits.modelLayers);
  const stated = numbersOf(metadata.get(`${architecture}.attention.head_count_kv`), limits.modelLayers);
  const kvHeads = stated.length === 0 ? heads : stated;
  for (let layer = 0; layer < layers; layer += 1) {
    const count = heads[heads.length === 1 ? 0 : layer] ?? 0;
    const kvCount = kvHeads[kvHeads.length === 1 ? 0 : layer] ?? 0;
    if (!(count >= 1 && kvCount >= 1) || count % kvCount !== 0) {
      return { found: `${count} heads over ${kvCount} KV heads in layer ${layer}`, expected: 'a multiple' };
    }
  }
  return null;
}

function checkHeadShape({ metadata, architecture, hiddenWidth }: ModelFile): Unsound | null {
  const [heads] = numbersOf(metadata.get(`${architecture}.attention.head_count`), limits.modelLayers);
  const stated = (key: string): number | null => unsignedOf(metadata.get(`${architecture}.${key}`));
  const perHead = Math.floor(hiddenWidth / (heads ?? 1));
  const keys = stated('attention.key_length') ?? perHead;
  const values = stated('attention.value_length') ?? perHead;
  const rotated = stated('rope.dimension_count') ?? keys;
  const found = `heads with keys of ${keys}, values of ${values} and ${rotated} rotary dimensions`;
  if (keys === 0 || rotated === 0 || rotated % 2 !== 0 || rotated > keys) {
    return { found, expected: 'an even number of rotary dimensions within the keys' };
  }
  if (keys !== values) return { found, expected: 'keys and values of one length' };
  return architectureRule(architecture).headShape === 'rotated' && rotated !== keys
    ? { found, expected: 'one length for all three' }
    : null;
}

/**
 * Windowed layers may state lengths of their own. llama.cpp then takes for every layer those of the first it loads:
 * wrong for the whole model, and of another kind for each slice.
 */
function checkWindowedHeads(model: ModelFile): Unsound | null {
  if (slidingWindowLayers(model) === null) return null;
  const { metadata, architecture, hiddenWidth } = model;
  const [heads] = numbersOf(metadata.get(`${architecture}.attention.head_count`), limits.modelLayers);
  const perHead = Math.floor(hiddenWidth / (heads ?? 1));
  const keys = unsignedOf(metadata.get(`${architecture}.attention.key_length`)) ?? perHead;
  for (const [key, otherwise] of [
    ['attention.key_length', perHead],
    ['attention.value_length', perHead],
    ['rope.dimension_count', keys],
  ] as const) {
    const full = unsignedOf(metadata.get(`${architecture}.${key}`)) ?? otherwise;
    const windowed = unsignedOf(metadata.get(`${architecture}.${key}_swa`)) ?? full;
    if (windowed !== full) return { found: `${key} ${full} and ${key}_swa ${windowed}`, expected: 'one length' };
  }
  return null;
}

function checkNorm({ metadata, architecture }: ModelFile): Unsound | null {
  const epsilon = numberOf(metadata.get(`${architecture}.attention.layer_norm_rms_epsilon`)) ?? Number.NaN;
  return epsilon >= 0 ? null : { found: `layer_norm_rms_epsilon ${epsilon}`, expected: 'a number from 0 up' };
}

const ropeScalings: ReadonlySet<string> = new Set(['none', 'linear', 'yarn', 'longrope']);

function checkRope({ metadata, architecture }: ModelFile): Unsound | null {
  const scaling = textOf(metadata.get(`${architecture}.rope.scaling.type`));
  return scaling === null || ropeScalings.has(scaling)
    ? null
    : { found: `rope scaling ${scaling}`, expected: [...ropeScalings].join(', ') };
}

function checkSlidingWindow(model: ModelFile): Unsound | null {
  const { slidingWindow } = architectureRule(model.architecture);
  if (slidingWindow.kind === 'none') return null;
  const windowed = slidingWindowLayers(model);
  if (windowed === null) {
    return slidingWindow.isOptional ? null : { found: 'no sliding window', expected: 'a window of some tokens' };
  }
  if (windowed.length !== model.layers) {
    return { found: `${windowed.length} layers in ${slidingWindowKey}`, expected: String(model.layers) };
  }
  return windowed.includes(true) ? null : { found: 'no layer with the sliding window', expected: 'at least one' };
}

function checkVocabulary({ tensors, vocabularySize, hiddenWidth }: ModelFile): Unsound | null {
  const output = named(tensors, 'output.weight');
  for (const tensor of [named(tensors, 'token_embd.weight'), ...(output === undefined ? [] : [output])]) {
    if (tensor === undefined) return { found: 'no token_embd.weight', expected: 'the embedding matrix' };
    const [width, rows] = tensor.shape;
    if (tensor.shape.length !== 2 || width !== hiddenWidth || rows !== vocabularySize) {
      const found = `${tensor.name} of ${tensor.shape.join(' x ')}`;
      return { found, expected: `${hiddenWidth} x ${vocabularySize}, width and vocabulary` };
    }
  }
  return named(tensors, 'output_norm.weight') === undefined
    ? { found: 'no output_norm.weight', expected: 'the final norm' }
    : null;
}

/** llama.cpp refuses these too; here it is said before the weights have gone to another host. */
function checkTokenizer({ metadata, vocabularySize }: ModelFile): Unsound | null {
  for (const [key, types, least] of tokenLists) {
    const value = metadata.get(key);
    if (value === undefined) continue;
    const length = value.kind === 'array' ? value.length : 0;
    if (value.kind !== 'array' || !types.includes(value.type) || (least === 'each' && length < vocabularySize)) {
      const found = `${key}: ${value.kind === 'array' ? `${length} of ${value.type}` : `one ${value.type}`}`;
      return { found, expected: `a list of ${types.join(' or ')}${least === 'each' ? ', one for each token' : ''}` };
    }
  }
  return null;
}

const tokenLists: readonly (readonly [key: string, types: readonly GgufElementType[], least: 'each' | 'any'])[] = [
  ['tokenizer.ggml.tokens', ['string'], 'any'],
  ['tokenizer.ggml.scores', ['f32', 'i32'], 'each'],
  ['tokenizer.ggml.token_type', ['i32'], 'each'],
  ['tokenizer.ggml.merges', ['string'], 'any'],
];

const named = (tensors: readonly ModelTensor[], name: string): ModelTensor | undefined =>
  tensors.find((tensor) => tensor.name === name);
