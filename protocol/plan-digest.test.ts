import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { planDigest } from './plan-digest.ts';
import { parsePlan } from './plan-document.ts';

const head = 'ring: r\nmodel: m.gguf\ncontext: 64\nsessions: 2\n';
const stages = 'stages:\n  - { host: a, layers: 0-1 }\n  - { host: b, layers: 2-3, device: { gpu: 0 } }\n';

function digestOf(text: string): string {
  const reading = parsePlan(text, 'p.yaml');
  assert(reading.kind === 'plan');
  return planDigest(reading.plan);
}

test('the digest is that of the canonical text', () => {
  const canonical =
    '{"contextTokens":64,"decode":"fast","kv":{"keys":"f16","values":"f16"},"model":"m.gguf","ring":"r","sessions":2,' +
    '"stages":[{"device":{"kind":"cpu"},"host":"a","index":0,"layers":{"first":0,"last":1}},' +
    '{"device":{"index":0,"kind":"gpu","layers":2},"host":"b","index":1,"layers":{"first":2,"last":3}}]}';
  assert.equal(digestOf(head + stages), createHash('sha256').update(canonical).digest('hex'));
});

test('defaults written out, comments, order of keys and threads make no other plan', () => {
  const same = `# again
stages:
  - { threads: 8, layers: 0-1, host: a, device: cpu }
  - { host: b, layers: "2-3", device: { layers: 2, gpu: 0 }, threads: 2 }
decode: fast
wire: f32
kv: { values: f16, keys: f16 }
reuse: 8
sessions: 2
context: 64
model: m.gguf # the model
ring: r
`;
  assert.equal(digestOf(same), digestOf(head + stages));
});

test('anything else does', () => {
  const others = [
    head.replace('ring: r', 'ring: s') + stages,
    head.replace('m.gguf', 'n.gguf') + stages,
    head.replace('m.gguf', '{ path: /m.gguf, on: hosts }') + stages,
    head.replace('64', '65') + stages,
    head.replace('sessions: 2', 'sessions: 3') + stages,
    `${head}reuse: 3\n${stages}`,
    `${head}kv: { keys: f32 }\n${stages}`,
    `${head}kv: { values: f32 }\n${stages}`,
    `${head}decode: exact\n${stages}`,
    `${head}wire: f16\n${stages}`,
    head + stages.replace('host: a', 'host: c'),
    head + stages.replace('0-1', '0-2').replace('2-3', '3'),
    head + stages.replace('gpu: 0', 'gpu: 1'),
    head + stages.replace('gpu: 0', 'gpu: 0, layers: 1'),
  ];
  const digests = [head + stages, ...others].map(digestOf);
  assert.equal(new Set(digests).size, others.length + 1);
});
