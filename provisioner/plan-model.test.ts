import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';

import { describeModel } from '../model/model-description.ts';
import { openModel } from '../model/model-file.ts';
import { hostName } from '../protocol/ids.ts';
import { parsePlan } from '../protocol/plan-document.ts';
import type { Plan } from '../protocol/plan.ts';
import { openOperatorModel, requireOneModel } from './plan-model.ts';

const path = join(import.meta.dirname, '../../plans/stories.gguf');
const hosts = [hostName('ant'), hostName('bee')];

function planWith(...layers: readonly string[]): Plan {
  const stages = layers.map((range) => ({ host: 'ant', layers: range }));
  const reading = parsePlan(JSON.stringify({ ring: 'r', model: path, context: 64, sessions: 1, stages }), 'p.yaml');
  assert(reading.kind === 'plan');
  return reading.plan;
}

test('hosts that have different files at one path are told, each with its hash', async () => {
  const model = await openModel(path);
  const [one, other] = ['a', 'b'].map((digit) => describeModel(model, digit.repeat(64), []));
  assert(one !== undefined && other !== undefined);
  assert.doesNotThrow(() => {
    requireOneModel('/m.gguf', hosts, [one, one]);
  });
  const hashes = [`ant has ${'a'.repeat(64)}`, `bee has ${'b'.repeat(64)}`];
  assert.throws(
    () => {
      requireOneModel('/m.gguf', hosts, [one, other]);
    },
    { code: 'MODEL_DIFFERS', facts: { path: '/m.gguf', hashes } },
  );
});

test('a host describes a model as the operator would see it', async () => {
  const plan = planWith('0-2', '3-7');
  const { shape } = await openOperatorModel(path, plan);
  const described = describeModel(
    await openModel(path),
    'a'.repeat(64),
    plan.stages.map(({ layers }) => layers),
  );
  const { architecture, layers, contextTokens, cutsAfter } = described;
  assert.deepEqual({ architecture, layers, contextTokens, cutsAfter, sliceFaults: [null, null] }, shape);
  assert.deepEqual(
    described.slices.map(({ fault, memory }) => [fault, memory === null]),
    [
      ['', false],
      ['', false],
    ],
  );
  const beyond = describeModel(await openModel(path), 'a'.repeat(64), [{ first: 6, last: 9 }]);
  assert.match(beyond.slices[0]?.fault ?? '', /layers 0-7/);
});
