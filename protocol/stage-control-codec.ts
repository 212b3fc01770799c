/** The JSON messages of `stage-control.ts` as bytes; what comes in is checked once, here. */
import { isErrorCode, type ErrorCode, type ErrorFacts } from './errors.ts';
import { nodeIndex, ringName, sliceId, tokenId } from './ids.ts';
import { JsonFields } from './json-fields.ts';
import { isRecord } from './plain-value.ts';
import { decodeModes, kvTypes, wireTypes, type Device, type LayerRange, type StageConfinement } from './plan.ts';
import type {
  DataAnswer,
  DataHello,
  StageCommand,
  StageFacts,
  StageHolding,
  StageLoad,
  StageMessage,
  StageReport,
  StageWelcome,
} from './stage-control.ts';

export const encodeStageJson = (message: StageCommand | StageMessage | DataHello | DataAnswer): Uint8Array =>
  Buffer.from(JSON.stringify(message), 'utf8');

type Readers<Union extends { readonly kind: string }> = {
  readonly [Kind in Union['kind']]: (from: JsonFields) => Extract<Union, { readonly kind: Kind }>;
};

const commandReaders: Readers<StageCommand> = {
  hello: (from) => ({ kind: 'hello', protocol: from.count('protocol') }),
  load: (from) => ({ kind: 'load', ...readLoad(from) }),
  vocabulary: (from) => ({ kind: 'vocabulary', id: from.count('id') }),
  tokenize: (from) => ({
    kind: 'tokenize',
    id: from.count('id'),
    text: from.text('text'),
    addSpecial: from.boolean('addSpecial'),
    parseSpecial: from.boolean('parseSpecial'),
  }),
  report: (from) => ({ kind: 'report', id: from.count('id') }),
  stop: () => ({ kind: 'stop' }),
};

const messageReaders: Readers<StageMessage> = {
  welcome: readWelcome,
  loading: (from) => ({ kind: 'loading', fraction: from.amount('fraction') }),
  loaded: (from) => ({ kind: 'loaded', facts: readFacts(from.object('facts')) }),
  'load-failed': (from) => ({ kind: 'load-failed', ...readFailure(from) }),
  vocabulary: (from) => ({
    kind: 'vocabulary',
    id: from.count('id'),
    pieces: from.text('pieces'),
    lengths: from.text('lengths'),
    ends: from.list('ends', (value) => tokenId(Number(value))),
  }),
  tokens: (from) => ({
    kind: 'tokens',
    id: from.count('id'),
    tokens: from.list('tokens', (value) => tokenId(Number(value))),
  }),
  report: (from) => ({ kind: 'report', id: from.count('id'), ...readReport(from) }),
  refused: (from) => ({ kind: 'refused', id: from.count('id'), ...readFailure(from) }),
  dying: (from) => ({ kind: 'dying', ...readFailure(from) }),
};

/** @throws STAGE_PROTOCOL; INVALID_ARGUMENT for a name or number that is none */
export function parseStageCommand(bytes: Uint8Array): StageCommand {
  const fields = JsonFields.parse('command', bytes);
  return commandReaders[fields.oneOf('kind', kindsOf(commandReaders))](fields);
}

/** @throws STAGE_PROTOCOL; INVALID_ARGUMENT for a name or number that is none */
export function parseStageMessage(bytes: Uint8Array): StageMessage {
  const fields = JsonFields.parse('message', bytes);
  return messageReaders[fields.oneOf('kind', kindsOf(messageReaders))](fields);
}

/** @throws STAGE_PROTOCOL; INVALID_ARGUMENT for a name or number that is none */
export function parseDataHello(bytes: Uint8Array): DataHello {
  const from = JsonFields.parse('data hello', bytes);
  return {
    protocol: from.count('protocol'),
    ring: ringName(from.text('ring')),
    node: nodeIndex(from.count('node')),
    generation: from.text('generation'),
  };
}

/** @throws STAGE_PROTOCOL */
export function parseDataAnswer(bytes: Uint8Array): DataAnswer {
  const from = JsonFields.parse('data answer', bytes);
  const kind = from.oneOf('kind', ['accepted', 'refused']);
  return kind === 'accepted' ? { kind } : { kind, ...readFailure(from) };
}

const kindsOf = <Kind extends string>(readers: Readonly<Record<Kind, unknown>>): Kind[] =>
  Object.keys(readers) as Kind[];

function readLoad(from: JsonFields): StageLoad {
  const kv = from.object('kv');
  return {
    ring: ringName(from.text('ring')),
    node: nodeIndex(from.count('node')),
    stages: from.count('stages'),
    generation: from.text('generation'),
    slicePath: from.text('slicePath'),
    sliceId: sliceId(from.text('sliceId')),
    layers: readLayers(from.object('layers')),
    modelLayers: from.count('modelLayers'),
    contextTokens: from.count('contextTokens'),
    sessions: from.count('sessions'),
    keptPrefixes: from.count('keptPrefixes'),
    kv: { keys: kv.oneOf('keys', kvTypes), values: kv.oneOf('values', kvTypes) },
    decode: from.oneOf('decode', decodeModes),
    // An agent of protocol 2.0 says nothing of it.
    wire: from.get('wire') === undefined ? 'f32' : from.oneOf('wire', wireTypes),
    device: readDevice(from.object('device')),
    threads: from.count('threads'),
    ...(from.get('confinement') === undefined ? {} : { confinement: readConfinement(from.object('confinement')) }),
  };
}

const readConfinement = (from: JsonFields): StageConfinement => ({
  cpus: from.get('cpus') === null ? null : from.list('cpus', (value) => readLayers(new JsonFields('cpus', value))),
  memoryLimitBytes: from.get('memoryLimitBytes') === null ? null : from.count('memoryLimitBytes'),
});

const readLayers = (from: JsonFields): LayerRange => ({ first: from.count('first'), last: from.count('last') });

function readDevice(from: JsonFields): Device {
  const kind = from.oneOf('kind', ['cpu', 'gpu']);
  return kind === 'cpu' ? { kind } : { kind, index: from.count('index'), layers: from.count('layers') };
}

function readWelcome(from: JsonFields): StageWelcome {
  return {
    kind: 'welcome',
    protocol: from.count('protocol'),
    pid: from.count('pid'),
    incarnation: from.text('incarnation'),
    holds: from.get('holds') === null ? null : readHolding(from.object('holds')),
  };
}

const readHolding = (from: JsonFields): StageHolding => ({
  ring: ringName(from.text('ring')),
  node: nodeIndex(from.count('node')),
  generation: from.text('generation'),
  facts: readFacts(from.object('facts')),
});

const readFacts = (from: JsonFields): StageFacts => ({
  weightBytes: from.count('weightBytes'),
  hiddenWidth: from.count('hiddenWidth'),
  vocabularySize: from.count('vocabularySize'),
  hasTokenizer: from.boolean('hasTokenizer'),
  keepsPrefixes: from.boolean('keepsPrefixes'),
  loadMs: from.amount('loadMs'),
});

const readReport = (from: JsonFields): StageReport => ({
  residentBytes: from.count('residentBytes'),
  cpuSeconds: from.amount('cpuSeconds'),
  decodes: from.count('decodes'),
  prefilledRows: from.count('prefilledRows'),
  decodedRows: from.count('decodedRows'),
  recomputedRows: from.count('recomputedRows'),
  paddingRows: from.count('paddingRows'),
  computeSeconds: from.amount('computeSeconds'),
  kvCellsUsed: from.count('kvCellsUsed'),
  // Stages of an earlier release, which an agent may take up, say neither.
  threads: from.get('threads') === undefined ? 0 : from.count('threads'),
  cpus: from.get('cpus') === undefined ? '' : from.text('cpus'),
  kvCellsKept: from.count('kvCellsKept'),
});

function readFailure(from: JsonFields): { readonly code: ErrorCode; readonly facts: ErrorFacts } {
  const code = from.text('code');
  if (!isErrorCode(code)) return from.refuse('code', 'a code of this release');
  return { code, facts: readErrorFacts(from) };
}

function readErrorFacts(from: JsonFields): ErrorFacts {
  const facts = from.get('facts');
  if (!isRecord(facts)) return from.refuse('facts', 'an object');
  return Object.fromEntries(Object.entries(facts).map(([name, value]) => [name, errorFact(value)]));
}

function errorFact(value: unknown): ErrorFacts[string] {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  return Array.isArray(value) ? value.map(String) : JSON.stringify(value);
}
