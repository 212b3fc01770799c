/**
 * The shape of a plan file, as JSON Schema.
 *
 * A description says what is expected of a part, in words that follow "expected".
 */
import { limits } from './limits.ts';
import { decodeModes, kvTypes, wireTypes, type DecodeMode, type KvType, type WireType } from './plan.ts';
import { compiledSchema } from './schema-fault.ts';

/** A plan file's value, before defaults. */
export interface PlanFile {
  readonly ring: string;
  /** A path of the operator's, or of every host. */
  readonly model: string | { readonly path: string; readonly on: 'hosts' };
  readonly context: number;
  readonly sessions: number;
  readonly reuse?: number;
  readonly kv?: { readonly keys?: KvType; readonly values?: KvType };
  readonly decode?: DecodeMode;
  readonly wire?: WireType;
  readonly deadline?: number;
  readonly stages: readonly StageFile[];
}

export interface StageFile {
  readonly host: string;
  /** `first-last`, or one layer's number. */
  readonly layers: string | number;
  readonly device?: 'cpu' | { readonly gpu: number; readonly layers?: number };
  readonly threads?: number | 'auto';
  /** As in `0-3,8`. */
  readonly cpus?: string | number;
  readonly memory?: { readonly limitMiB?: number };
}

export const nameWords = 'lower-case letters, digits and inner dashes, at most 63';
export const namePatternText = '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$';
/** Text without control characters or halves of a character. */
export const plainTextPattern = '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]+$';

const wholeNumber = (what: string, minimum: number, maximum: number): object => ({
  type: 'integer',
  minimum,
  maximum,
  description: `${what}, from ${minimum} to ${maximum}`,
});

const kvType = (what: string): object => ({
  enum: kvTypes,
  description: `a type for the ${what} of the KV cache: ${kvTypes.join(', ')}`,
});

const deviceWords = 'a device: cpu, or { gpu: index, layers: count }';

const modelWords =
  "the path of a GGUF file, relative to the plan's folder or absolute, or { path: /absolute, on: hosts } for one that every host has";

const modelSchema = {
  description: modelWords,
  if: { type: 'object' },
  else: { type: 'string', pattern: plainTextPattern, maxLength: limits.pathCharacters, description: modelWords },
  then: {
    description: modelWords,
    additionalProperties: false,
    required: ['path', 'on'],
    properties: {
      path: {
        type: 'string',
        pattern: `^/${plainTextPattern.slice(1, -2)}*$`,
        maxLength: limits.pathCharacters,
        description: 'the absolute path of a GGUF file, the same on every host',
      },
      on: { enum: ['hosts'], description: 'where the file is: hosts' },
    },
  },
};

const stageSchema = {
  type: 'object',
  description: 'a stage: a mapping of host, layers, device, threads, cpus and memory',
  additionalProperties: false,
  required: ['host', 'layers'],
  properties: {
    host: { type: 'string', pattern: namePatternText, description: `a host's name: ${nameWords}` },
    layers: {
      type: ['string', 'integer'],
      pattern: '^[0-9]{1,4}(-[0-9]{1,4})?$',
      minimum: 0,
      maximum: limits.modelLayers - 1,
      description: 'layers: first-last, both included and counted from 0, or one number',
    },
    device: {
      type: ['string', 'object'],
      description: deviceWords,
      if: { type: 'string' },
      then: { enum: ['cpu'], description: deviceWords },
      else: {
        type: 'object',
        description: deviceWords,
        additionalProperties: false,
        required: ['gpu'],
        properties: {
          gpu: wholeNumber("the GPU's index on its host", 0, limits.hostGpus - 1),
          layers: wholeNumber('how many of the layers the GPU holds', 0, limits.modelLayers),
        },
      },
    },
    threads: {
      type: ['integer', 'string'],
      pattern: '^auto$',
      minimum: 1,
      maximum: limits.stageThreads,
      description: `a number of threads, from 1 to ${limits.stageThreads}, or auto`,
    },
    cpus: {
      type: ['string', 'integer'],
      pattern: '^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$',
      minimum: 0,
      maximum: 9999,
      description: 'CPUs in rising order, as in 0-3,8',
    },
    memory: {
      type: 'object',
      description: 'a mapping of limitMiB',
      additionalProperties: false,
      properties: {
        limitMiB: wholeNumber('MiB of memory', limits.stageLeastMemoryMiB, limits.stageMostMemoryMiB),
      },
    },
  },
};

const planSchema = {
  type: 'object',
  description: 'a plan: a mapping of ring, model, context, sessions and stages',
  additionalProperties: false,
  required: ['ring', 'model', 'context', 'sessions', 'stages'],
  properties: {
    ring: { type: 'string', pattern: namePatternText, description: `the ring's name: ${nameWords}` },
    model: modelSchema,
    context: wholeNumber('tokens that one session may hold', 1, limits.contextTokens),
    sessions: wholeNumber('how many sessions may be open at once', 1, limits.sessions),
    reuse: wholeNumber('how many ended sessions are kept for those that begin alike', 0, limits.sessions - 1),
    kv: {
      type: 'object',
      description: 'the types of the KV cache: a mapping of keys and values',
      additionalProperties: false,
      properties: { keys: kvType('keys'), values: kvType('values') },
    },
    decode: { enum: decodeModes, description: `how rows are decoded: ${decodeModes.join(' or ')}` },
    wire: { enum: wireTypes, description: `the type of hidden states between stages: ${wireTypes.join(' or ')}` },
    deadline: wholeNumber('seconds that requests wait for a lost stage, agent or link', 1, limits.deadlineSeconds),
    stages: {
      type: 'array',
      minItems: 1,
      maxItems: limits.stages,
      description: `a list of 1 to ${limits.stages} stages`,
      items: stageSchema,
    },
  },
};

export const checkPlanFile = compiledSchema<PlanFile>(planSchema);
