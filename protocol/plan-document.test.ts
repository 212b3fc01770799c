import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { faultsText } from './fault.ts';
import { parsePlan, planFileOf } from './plan-document.ts';
import { planDigest } from './plan-digest.ts';
import type { Plan } from './plan.ts';

const good = `ring: tales
model: tales.gguf
context: 1024
sessions: 4
stages:
  - { host: ant, layers: 0-1, threads: 2 }
  - host: bee
    layers: "2"
    device: { gpu: 1 }
  - { host: bee, layers: 3, device: { gpu: 1, layers: 0 } }
`;

function planIn(text: string): Plan {
  const reading = parsePlan(text, 'p.yaml');
  assert(reading.kind === 'plan', reading.kind === 'faults' ? faultsText(reading.faults) : '');
  return reading.plan;
}

function faultsIn(text: string): string {
  const reading = parsePlan(text, 'p.yaml');
  assert(reading.kind === 'faults', 'the plan is wrong');
  return faultsText(reading.faults);
}

/** The good plan with one text in place of another. */
function changed(from: string, to: string): string {
  assert(good.includes(from));
  return good.replace(from, to);
}

test('a good plan has its defaults filled in', () => {
  assert.deepEqual(planIn(good), {
    ring: 'tales',
    model: 'tales.gguf',
    modelOn: 'operator',
    contextTokens: 1024,
    sessions: 4,
    keptPrefixes: 8,
    kv: { keys: 'f16', values: 'f16' },
    decode: 'fast',
    wire: 'f32',
    deadlineSeconds: 60,
    stages: [
      { index: 0, host: 'ant', layers: { first: 0, last: 1 }, device: { kind: 'cpu' }, threads: 2 },
      {
        index: 1,
        host: 'bee',
        layers: { first: 2, last: 2 },
        device: { kind: 'gpu', index: 1, layers: 1 },
        threads: 'auto',
      },
      {
        index: 2,
        host: 'bee',
        layers: { first: 3, last: 3 },
        device: { kind: 'gpu', index: 1, layers: 0 },
        threads: 'auto',
      },
    ],
  });
});

test('what is written out overrides the defaults', () => {
  const plan = planIn(
    changed('sessions: 4\n', 'sessions: 4\nkv: { keys: q8_0, values: q4_0 }\ndecode: exact\nwire: f16\n'),
  );
  assert.deepEqual(plan.kv, { keys: 'q8_0', values: 'q4_0' });
  assert.equal(plan.decode, 'exact');
  assert.equal(plan.wire, 'f16');
  assert.equal(
    faultsIn(changed('sessions: 4\n', 'sessions: 4\nwire: f8\n')),
    'p.yaml:5:7 /wire: found "f8", expected the type of hidden states between stages: f32 or f16',
  );
  assert.deepEqual(planIn(JSON.stringify(planFileOf(plan))), plan);
});

const confined = (words: string): string => good.replace('threads: 2', `threads: 2, ${words}`);

test('a stage may be confined to CPUs and memory, which is no other plan', () => {
  const plan = planIn(confined('cpus: "0-3,8", memory: { limitMiB: 512 }'));
  assert.deepEqual(plan.stages[0]?.confinement, {
    cpus: [
      { first: 0, last: 3 },
      { first: 8, last: 8 },
    ],
    memoryLimitBytes: 512 * 1024 * 1024,
  });
  assert.deepEqual(planIn(JSON.stringify(planFileOf(plan))), plan);
  assert.equal(planDigest(plan), planDigest(planIn(good)));
  const one = planIn(confined('cpus: 3')).stages[0]?.confinement;
  assert.deepEqual(one, { cpus: [{ first: 3, last: 3 }], memoryLimitBytes: null });
});

test('CPUs that fall or come twice are a fault, and so is a limit that no stage fits', () => {
  for (const words of ['cpus: 3-1', 'cpus: "0,0"', 'cpus: all', 'memory: { limitMiB: 1 }']) {
    const reading = parsePlan(confined(words), 'plan.yaml');
    assert.equal(reading.kind === 'faults' ? reading.faults.length : 0, 1, words);
  }
});

test('a plan written as a file reads back as the same plan', () => {
  const plan = planIn(good);
  assert.deepEqual(planIn(JSON.stringify(planFileOf(plan), null, 2)), plan);
});

test('a model may lie on the hosts, at an absolute path', () => {
  const plan = planIn(changed('model: tales.gguf', 'model: { path: /models/tales.gguf, on: hosts }'));
  assert.deepEqual([plan.model, plan.modelOn], ['/models/tales.gguf', 'hosts']);
  assert.deepEqual(planIn(JSON.stringify(planFileOf(plan))), plan);
  assert.equal(
    faultsIn(changed('model: tales.gguf', 'model: { path: tales.gguf, on: hosts }')),
    'p.yaml:2:16 /model/path: found "tales.gguf", expected the absolute path of a GGUF file, the same on every host',
  );
  assert.equal(
    faultsIn(changed('model: tales.gguf', 'model: { path: /tales.gguf, on: moon }')),
    'p.yaml:2:33 /model/on: found "moon", expected where the file is: hosts',
  );
  assert.match(faultsIn(changed('model: tales.gguf', 'model: { path: /tales.gguf }')), /\/model\/on: found nothing/);
});

test('the plan knows its lines', () => {
  const reading = parsePlan(good, 'p.yaml');
  assert(reading.kind === 'plan');
  assert.deepEqual(reading.locate('/stages/1/layers'), { file: 'p.yaml', line: 8, column: 13 });
});

test('the plan that comes with p4 is good', () => {
  const file = new URL('../../plans/stories.yaml', import.meta.url);
  assert.equal(planIn(readFileSync(file, 'utf8')).stages.length, 4);
});

test('stages cover the layers in order, each once', () => {
  const second = '"2"\n    device: { gpu: 1 }';
  const cases = [
    [
      '0-1',
      '1-1',
      'p.yaml:6:26 /stages/0/layers: found 1-1, so layer 0 is on no stage, expected a slice that starts at layer 0',
    ],
    [
      second,
      '1-2',
      'p.yaml:8:13 /stages/1/layers: found 1-2, of which stage 0 has some already, expected a slice that starts at layer 2, where stage 0 (0-1) leaves off',
    ],
    [
      'layers: 3,',
      'layers: 5-6,',
      'p.yaml:10:26 /stages/2/layers: found 5-6, so layers 3-4 are on no stage, expected a slice that starts at layer 3, where stage 1 (2-2) leaves off',
    ],
    [
      'layers: 3,',
      'layers: 2,',
      'p.yaml:10:26 /stages/2/layers: found 2-2, the same layers as stage 1, expected a slice that starts at layer 3, where stage 1 (2-2) leaves off',
    ],
    ['0-1', '1-0', 'p.yaml:6:26 /stages/0/layers: found 1-0, expected the lower layer first: 0-1'],
    ['layers: 3,', 'layers: 3-900,', 'p.yaml:10:26 /stages/2/layers: found 3-900, expected layers up to 511'],
  ] as const;
  for (const [from, to, expected] of cases) assert.equal(faultsIn(changed(from, to)), expected, to);
});

test('stages that are swapped are told to be out of order, and no layer to be missing', () => {
  const stages = ['2-3', '0-1', '4-5'].map((layers) => `  - { host: ant, layers: ${layers} }\n`).join('');
  assert.equal(
    faultsIn(`ring: r\nmodel: m\ncontext: 8\nsessions: 1\nstages:\n${stages}`),
    [
      'p.yaml:6:26 /stages/0/layers: found 2-3, out of order, expected a slice that starts at layer 0',
      'p.yaml:7:26 /stages/1/layers: found 0-1, out of order, expected a slice that starts at layer 4, where stage 0 (2-3) leaves off',
      'p.yaml:8:26 /stages/2/layers: found 4-5, out of order, expected a slice that starts at layer 2, where stage 1 (0-1) leaves off',
    ].join('\n'),
  );
});

test('a GPU holds no more layers than its slice has', () => {
  assert.equal(
    faultsIn(changed('{ gpu: 1 }', '{ gpu: 1, layers: 2 }')),
    'p.yaml:9:31 /stages/1/device/layers: found 2, expected at most 1, the layers of the slice (2-2)',
  );
});

test('sessions that are kept have sequences as open ones have', () => {
  assert.equal(planIn(changed('sessions: 4', 'sessions: 4\nreuse: 0')).keptPrefixes, 0);
  assert.equal(planIn(changed('sessions: 4', 'sessions: 252')).keptPrefixes, 3, 'as many as there is room for');
  assert.equal(
    faultsIn(changed('sessions: 4', 'sessions: 200\nreuse: 56')),
    'p.yaml:5:8 /reuse: found 56 kept and 200 open sessions, 256 in all, expected at most 255 in all',
  );
});

test('the sessions of a ring share a bounded KV cache', () => {
  assert.equal(
    faultsIn(changed('context: 1024\nsessions: 4', 'context: 1048576\nsessions: 17')),
    'p.yaml:3:10 /context: found 1048576 tokens for each of 17 sessions, 17825792 in all, expected at most 16777216 in all',
  );
});

test('the document itself may be missing or of another kind', () => {
  const expected = 'expected a plan: a mapping of ring, model, context, sessions and stages';
  assert.equal(faultsIn(''), `p.yaml:1:1: found nothing, ${expected}`);
  assert.equal(faultsIn('- 1\n- 2\n'), `p.yaml:1:1: found a list of 2, ${expected}`);
});

test('every fault is named at once, in the order of the lines', () => {
  const wrong = `ring: Tales
model: 7
contxt: 1024
sessions: 999
sessions: 0
kv: { keys: f17 }
decode: slow
stages:
  - { host: ant, layers: 0-1, device: gpu, threads: 0 }
  - host: b_d
    layers: 3-4
    device: { gpu: 0, layers: 5 }
  - { layers: x }
  - { host: ant, layers: 5-7, device: { layers: 2 }, extra: 1 }
  - 3
`;
  assert.equal(
    faultsIn(wrong),
    [
      'p.yaml:1:1 /context: found nothing, expected tokens that one session may hold, from 1 to 1048576',
      'p.yaml:1:7 /ring: found "Tales", expected the ring\'s name: lower-case letters, digits and inner dashes, at most 63',
      "p.yaml:2:8 /model: found the number 7 without quotes, expected the path of a GGUF file, relative to the plan's folder or absolute, or { path: /absolute, on: hosts } for one that every host has",
      'p.yaml:3:1 /contxt: found the unknown key "contxt", expected one of the keys ring, model, context, sessions, reuse, kv, decode, wire, deadline, stages',
      'p.yaml:5:1: found the key "sessions" again, expected each key once',
      'p.yaml:5:11 /sessions: found 0, expected how many sessions may be open at once, from 1 to 255',
      'p.yaml:6:13 /kv/keys: found "f17", expected a type for the keys of the KV cache: f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0',
      'p.yaml:7:9 /decode: found "slow", expected how rows are decoded: fast or exact',
      'p.yaml:9:39 /stages/0/device: found "gpu", expected a device: cpu, or { gpu: index, layers: count }',
      'p.yaml:9:53 /stages/0/threads: found 0, expected a number of threads, from 1 to 1024, or auto',
      'p.yaml:10:11 /stages/1/host: found "b_d", expected a host\'s name: lower-case letters, digits and inner dashes, at most 63',
      'p.yaml:11:13 /stages/1/layers: found 3-4, so layer 2 is on no stage, expected a slice that starts at layer 2, where stage 0 (0-1) leaves off',
      'p.yaml:12:31 /stages/1/device/layers: found 5, expected at most 2, the layers of the slice (3-4)',
      "p.yaml:13:5 /stages/2/host: found nothing, expected a host's name: lower-case letters, digits and inner dashes, at most 63",
      'p.yaml:13:15 /stages/2/layers: found "x", expected layers: first-last, both included and counted from 0, or one number',
      "p.yaml:14:39 /stages/3/device/gpu: found nothing, expected the GPU's index on its host, from 0 to 63",
      'p.yaml:14:54 /stages/3/extra: found the unknown key "extra", expected one of the keys host, layers, device, threads, cpus, memory',
      'p.yaml:15:5 /stages/4: found 3, expected a stage: a mapping of host, layers, device, threads, cpus and memory',
    ].join('\n'),
  );
});

/** A small generator of pseudorandom 32-bit numbers (xorshift32), so that a seed names a case. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** Parts of YAML and of plans that a mutation puts where they do not belong. */
const splinters = ['\t', '\n', '- ', ': ', '{', '}', '[', ']', '"', "'", '&a ', '*a', '!!set ', '%YAML 1.1\n', '---\n', '|', '>', '? ', '#', '-1', '1e999', '.nan', '0x7fffffffffffffff', 'null', '~', '__proto__: ', '<<: ', '\u0000', '\ud800', '\ufeff', '2-', '-2', '9999-9999', 'stages:', 'gpu: 1']; // prettier-ignore

function mutated(seed: number): string {
  const below = numbers(seed * 2_654_435_761 || 1);
  let text = good;
  for (let count = 1 + below(4); count > 0; count -= 1) {
    const at = below(text.length + 1);
    const length = below(12);
    const other = below(text.length + 1);
    const pieces = ['', splinters[below(splinters.length)] ?? '', text.slice(other, other + length), String(below(99))];
    text = text.slice(0, at) + (pieces[below(pieces.length)] ?? '') + text.slice(at + below(2) * length);
  }
  return text;
}

test('no mutation of a plan makes the parser throw, and what it takes it takes again', () => {
  const kinds = { plan: 0, faults: 0 };
  for (let seed = 1; seed <= 2000; seed += 1) {
    const text = mutated(seed);
    const about = `seed ${seed}: ${JSON.stringify(text)}`;
    let reading: ReturnType<typeof parsePlan>;
    try {
      reading = parsePlan(text, 'p.yaml');
    } catch (error) {
      throw new Error(about, { cause: error });
    }
    kinds[reading.kind] += 1;
    if (reading.kind === 'plan')
      assert.deepEqual(planIn(JSON.stringify(planFileOf(reading.plan))), reading.plan, about);
    else {
      assert(reading.faults.length > 0, about);
      assert(
        reading.faults.every(({ line, column }) => line >= 1 && column >= 1),
        about,
      );
    }
  }
  assert(kinds.plan > 20 && kinds.faults > 1000, `both outcomes are met: ${JSON.stringify(kinds)}`);
});
