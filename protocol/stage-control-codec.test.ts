import assert from 'node:assert/strict';
import { test } from 'node:test';

import { P4Error } from './errors.ts';
import { nodeIndex, ringName, sliceId, tokenId } from './ids.ts';
import {
  encodeStageJson,
  parseDataAnswer,
  parseDataHello,
  parseStageCommand,
  parseStageMessage,
} from './stage-control-codec.ts';
import type { DataAnswer, DataHello, StageCommand, StageLoad, StageMessage } from './stage-control.ts';

const load: StageLoad = {
  ring: ringName('stories'),
  node: nodeIndex(1),
  stages: 3,
  generation: '18446744073709551615',
  slicePath: '/slices/a.gguf',
  sliceId: sliceId('ab'.repeat(32)),
  layers: { first: 2, last: 4 },
  modelLayers: 8,
  contextTokens: 256,
  sessions: 4,
  keptPrefixes: 2,
  kv: { keys: 'f16', values: 'q8_0' },
  decode: 'exact',
  wire: 'f16',
  device: { kind: 'gpu', index: 0, layers: 3 },
  threads: 2,
};

const commands: readonly StageCommand[] = [
  { kind: 'hello', protocol: 1 },
  { kind: 'load', ...load },
  { kind: 'load', ...load, device: { kind: 'cpu' } },
  { kind: 'load', ...load, confinement: { cpus: [{ first: 0, last: 3 }], memoryLimitBytes: 1 } },
  { kind: 'load', ...load, confinement: { cpus: null, memoryLimitBytes: null } },
  { kind: 'vocabulary', id: 1 },
  { kind: 'tokenize', id: 2, text: 'Es war einmal … 🌲', addSpecial: true, parseSpecial: false },
  { kind: 'report', id: 3 },
  { kind: 'stop' },
];

const counts = {
  ...{ decodes: 5, prefilledRows: 6, decodedRows: 7, recomputedRows: 4, paddingRows: 8 },
  ...{ computeSeconds: 0.25, kvCellsUsed: 9, kvCellsKept: 5 },
};
const messages: readonly StageMessage[] = [
  { kind: 'welcome', protocol: 1, pid: 12, incarnation: 'ff', holds: null },
  {
    kind: 'welcome',
    protocol: 1,
    pid: 12,
    incarnation: 'ff',
    holds: {
      ...{ ring: load.ring, node: load.node, generation: load.generation },
      facts: {
        weightBytes: 5,
        hiddenWidth: 128,
        vocabularySize: 32,
        hasTokenizer: true,
        keepsPrefixes: true,
        loadMs: 2,
      },
    },
  },
  { kind: 'loading', fraction: 0.5 },
  {
    kind: 'loaded',
    facts: {
      weightBytes: 1e12,
      hiddenWidth: 8192,
      vocabularySize: 32,
      hasTokenizer: false,
      keepsPrefixes: false,
      loadMs: 1.5,
    },
  },
  { kind: 'load-failed', code: 'SLICE_MISMATCH', facts: { file: 'a', found: ['b', 'c'] } },
  { kind: 'vocabulary', id: 1, pieces: 'YWI=', lengths: 'AQABAA==', ends: [tokenId(1)] },
  { kind: 'tokens', id: 2, tokens: [tokenId(0), tokenId(7)] },
  { kind: 'report', id: 3, residentBytes: 4e9, cpuSeconds: 1.25, threads: 4, cpus: '0-3', ...counts },
  { kind: 'refused', id: 4, code: 'STAGE_EMPTY', facts: {} },
  { kind: 'dying', code: 'STAGE_DECODE', facts: { status: -3, exact: true } },
];

const answers: readonly DataAnswer[] = [
  { kind: 'accepted' },
  { kind: 'refused', code: 'GENERATION_MISMATCH', facts: { ring: 'stories', node: 1 } },
];

test('every message comes back as it was', () => {
  for (const command of commands) assert.deepEqual(parseStageCommand(encodeStageJson(command)), command);
  for (const message of messages) assert.deepEqual(parseStageMessage(encodeStageJson(message)), message);
  for (const answer of answers) assert.deepEqual(parseDataAnswer(encodeStageJson(answer)), answer);
  const hello: DataHello = { protocol: 1, ring: load.ring, node: load.node, generation: load.generation };
  assert.deepEqual(parseDataHello(encodeStageJson(hello)), hello);
});

test('what is not a message is refused, and the field is named', () => {
  const cases: readonly (readonly [string, unknown])[] = [
    ['command', 'text'],
    ['command.kind', { kind: 'explode' }],
    ['command.kind', { kind: 'toString' }],
    ['command.id', { kind: 'report' }],
    ['command.id', { kind: 'report', id: 1.5 }],
    ['command.addSpecial', { kind: 'tokenize', id: 1, text: 'a', addSpecial: 1, parseSpecial: false }],
    ['command.kv.keys', { ...load, kind: 'load', kv: { keys: 'f64', values: 'f16' } }],
    ['command.wire', { ...load, kind: 'load', wire: 'f8' }],
    ['command.layers', { ...load, kind: 'load', layers: null }],
    ['command.device.index', { ...load, kind: 'load', device: { kind: 'gpu' } }],
  ];
  for (const [what, value] of cases) {
    assert.throws(
      () => parseStageCommand(Buffer.from(JSON.stringify(value))),
      (error) => error instanceof P4Error && error.code === 'STAGE_PROTOCOL' && error.facts['what'] === what,
      what,
    );
  }
  assert.throws(() => parseStageCommand(Buffer.from('{')), P4Error);
  assert.throws(() => parseStageCommand(Buffer.from(JSON.stringify({ ...load, kind: 'load', ring: 'A B' }))), P4Error);
});

test('a load that says nothing of the hidden state’s type means float32', () => {
  const command = parseStageCommand(Buffer.from(JSON.stringify({ kind: 'load', ...load, wire: undefined })));
  assert.deepEqual(command, { kind: 'load', ...load, wire: 'f32' });
});
