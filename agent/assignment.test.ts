import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { hostName, ringName } from '../protocol/ids.ts';
import { assignmentText, readAssignment, sameTerms, termsOf, underTerms, type Assignment } from './assignment.ts';

const of = { ring: ringName('tale'), host: hostName('ant') };
const id = 'a'.repeat(64);
const plan = `ring: tale
model: tale.gguf
context: 64
sessions: 4
deadline: 30
stages:
  - { host: ant, layers: 0-3 }
  - { host: bee, layers: 4-7 }
`;
const placements = [
  { sliceId: id, address: '10.0.0.1', port: 7400 },
  { sliceId: id, address: '10.0.0.2', port: 7400 },
];
const written = (value: unknown): string => JSON.stringify(value);

function read(text: string): Assignment {
  const reading = readAssignment(text, of);
  assert.ok(reading.kind === 'assignment', reading.kind === 'unreadable' ? reading.error.message : '');
  return reading.assignment;
}

suite('an assignment', () => {
  test('comes back from its text as it went in', () => {
    const once = read(written({ plan, placements }));
    assert.deepEqual(
      once.plan.stages.map(({ host }) => host),
      ['ant', 'bee'],
    );
    assert.deepEqual(read(assignmentText(plan, once.placements)), once);
  });

  test('that another p4 wrote is told of as unreadable, whatever it is, with a way out', () => {
    const foreign = [
      ...['', '{', '[]', '"text"', 'null', '{}', '{"nodes":[]}'],
      written({ plan: `${plan}speculation: 4\n`, placements }),
      written({ plan, placements: placements.slice(1) }),
      written({ plan, placements: [{ ...placements[0], sliceId: 'short' }, placements[1]] }),
      written({ plan: 7, placements }),
    ];
    for (const text of foreign) {
      const reading = readAssignment(text, of);
      assert.ok(reading.kind === 'unreadable', text);
      assert.equal(reading.error.code, 'LOAD_NOT_READABLE');
      assert.match(reading.error.message, /ring: tale\n {2}host: ant\n.*p4 forget RING/s);
    }
  });
});

suite('the terms of a load', () => {
  const assignment = read(written({ plan, placements }));
  const addresses = [
    { address: '10.0.0.1', port: 7400 },
    { address: 'fd00::2', port: 7500 },
  ];
  const terms = { deadlineSeconds: 20, addresses };

  test('are taken over, and nothing else changes', () => {
    const next = underTerms(assignment, terms);
    assert.deepEqual(termsOf(next), terms);
    assert.deepEqual({ ...next.plan, deadlineSeconds: 30 }, assignment.plan);
    assert.deepEqual(
      next.placements.map(({ sliceId }) => sliceId),
      [id, id],
    );
  });

  test('are the same where every address, every port and the deadline is', () => {
    const [first, second] = addresses;
    assert.ok(first !== undefined && second !== undefined);
    assert.ok(sameTerms(terms, { deadlineSeconds: 20, addresses: [{ ...first }, { ...second }] }));
    assert.ok(!sameTerms(terms, { ...terms, deadlineSeconds: 21 }));
    assert.ok(!sameTerms(terms, { ...terms, addresses: [first] }));
    assert.ok(!sameTerms(terms, { ...terms, addresses: [first, { ...second, port: 7400 }] }));
    assert.ok(!sameTerms(terms, { ...terms, addresses: [{ ...first, address: '10.0.0.9' }, second] }));
  });
});
