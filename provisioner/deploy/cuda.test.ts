import assert from 'node:assert/strict';
import { test } from 'node:test';

import { hostName } from '../../protocol/ids.ts';
import { cudaDecision } from './cuda.ts';
import { parseFacts } from './facts.ts';
import { gpuHostFacts, plainHostFacts } from './recorded-facts.ts';

const all = { kind: 'all' } as const;
const decide = (text: string, wanted: Parameters<typeof cudaDecision>[1] = all) =>
  cudaDecision(parseFacts(hostName('gpu'), text).nvidia, wanted);

test('a host with driver and libraries uses the GPUs that the inventory lets it see', () => {
  const used = (wanted?: Parameters<typeof cudaDecision>[1]): string => {
    const decision = decide(gpuHostFacts, wanted);
    return decision.kind === 'use' ? decision.gpus.map(({ index }) => index).join(',') : '';
  };
  assert.equal(used(), '0,1');
  assert.equal(used({ kind: 'these', indexes: [1] }), '1');
});

test('a host without GPUs, or whose GPUs are not wanted, is a CPU host without a word', () => {
  assert.deepEqual(decide(plainHostFacts), { kind: 'none' });
  assert.deepEqual(decide(gpuHostFacts, { kind: 'these', indexes: [] }), { kind: 'none' });
});

test('what is missing is named', () => {
  const missing = (text: string, wanted?: Parameters<typeof cudaDecision>[1]): readonly string[] => {
    const decision = decide(text, wanted);
    return decision.kind === 'missing' ? decision.what : [];
  };
  assert.deepEqual(missing(gpuHostFacts.replace('library=libcublas.so.13\n', '')), [
    'libcublas.so.13 is not found by the dynamic linker',
  ]);
  assert.deepEqual(missing(gpuHostFacts.replace('580.95.05', '550.120')), [
    'the driver 550.120 is older than 580, which CUDA 13 needs',
  ]);
  assert.deepEqual(missing(gpuHostFacts, { kind: 'these', indexes: [0, 7] }), [
    'the inventory names GPU 7, of 2 there',
  ]);
  assert.equal(missing(plainHostFacts, { kind: 'these', indexes: [0] })[0], 'the NVIDIA driver is not loaded');
  assert.deepEqual(missing(gpuHostFacts.replace(/^gpu=.*\n/gm, '')), ['nvidia-smi lists no GPU']);
});
