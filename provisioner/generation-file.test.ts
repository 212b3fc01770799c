import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { P4Error } from '../protocol/errors.ts';
import { ringName, sliceId } from '../protocol/ids.ts';
import { planDigest } from '../protocol/plan-digest.ts';
import { parsePlan } from '../protocol/plan-document.ts';
import type { Plan } from '../protocol/plan.ts';
import { changeFleet } from './fleet-file.ts';
import {
  freshGeneration,
  keepGeneration,
  knownGeneration,
  readGeneration,
  readGenerations,
  restoreGeneration,
  type KeptGeneration,
} from './generation-file.ts';
import { stateFolder, type StateFolder } from './state-folder.ts';

const scratch = mkdtempSync(join(tmpdir(), 'p4-generation-'));
after(() => {
  rmSync(scratch, { recursive: true });
});

let folders = 0;
function newFolder(): StateFolder {
  folders += 1;
  return stateFolder({ option: `s${folders}`, environment: {}, workingFolder: scratch });
}

function planWith(stages: string): Plan {
  const reading = parsePlan(`ring: tales\nmodel: t.gguf\ncontext: 64\nsessions: 2\nstages: [${stages}]\n`, 'p.yaml');
  assert(reading.kind === 'plan');
  return reading.plan;
}
const plan = planWith('{ host: ant, layers: 0-3, threads: 3 }, { host: bee, layers: 4, device: { gpu: 0 } }');
const otherPlan = planWith('{ host: ant, layers: 0-4 }');
const ring = ringName('tales');
const slice = sliceId('5'.repeat(64));
const now = new Date('2030-01-02T03:04:05.678Z');

const freshAfter = (former: KeptGeneration | null, of = plan): KeptGeneration =>
  freshGeneration({ plan: of, planFile: '/plans/tales.yaml', slices: [slice], now }, former);

async function keptFirst(folder: StateFolder): Promise<KeptGeneration> {
  const first = freshAfter(null);
  await keepGeneration(folder, first, null);
  return first;
}

test('a ring that was never loaded has no generation, and the error says where it was looked for', async () => {
  const folder = newFolder();
  assert.equal(await readGeneration(folder, ring), null);
  await assert.rejects(knownGeneration(folder, ring), { code: 'FLEET_FILE_MISSING' }, 'no fleet is the first of it');
  await changeFleet(folder, () => []);
  await assert.rejects(knownGeneration(folder, ring), {
    code: 'GENERATION_FILE_MISSING',
    facts: { ring: 'tales', file: join(folder.generations, 'tales.json') },
  });
});

test('what was kept is read back, for its owner only (G2)', async () => {
  const folder = newFolder();
  const first = await keptFirst(folder);
  assert.deepEqual(await knownGeneration(folder, ring), first);
  assert.equal(first.planDigest, planDigest(plan));
  assert.equal(first.phase, 'loading');
  assert.equal(first.createdAt, '2030-01-02T03:04:05.678Z');
  assert.equal(first.former, null);
  assert.deepEqual(readdirSync(folder.generations), ['tales.json']);
  assert.equal(statSync(join(folder.generations, 'tales.json')).mode & 0o777, 0o600);
  assert.equal(statSync(folder.generations).mode & 0o777, 0o700);
});

test('the file has the generation as a decimal text, and the plan after defaults', async () => {
  const folder = newFolder();
  const first = await keptFirst(folder);
  const value: unknown = JSON.parse(readFileSync(join(folder.generations, 'tales.json'), 'utf8'));
  assert.deepEqual(value, {
    format: 1,
    ring: 'tales',
    generation: first.generation.toString(),
    loadId: first.loadId,
    planDigest: first.planDigest,
    phase: 'loading',
    createdAt: '2030-01-02T03:04:05.678Z',
    formerGeneration: null,
    planFile: '/plans/tales.yaml',
    slices: [slice],
    plan: {
      ring: 'tales',
      model: 't.gguf',
      context: 64,
      sessions: 2,
      reuse: 8,
      kv: { keys: 'f16', values: 'f16' },
      decode: 'fast',
      deadline: 60,
      stages: [
        { host: 'ant', layers: '0-3', device: 'cpu', threads: 3 },
        { host: 'bee', layers: '4-4', device: { gpu: 0, layers: 1 }, threads: 'auto' },
      ],
    },
  });
});

test('a load that nobody took is taken back: the file says what it said, or is gone', async () => {
  const folder = newFolder();
  const first = await keptFirst(folder);
  await restoreGeneration(folder, first, null);
  assert.deepEqual(readdirSync(folder.generations), []);
  await keepGeneration(folder, first, null);
  const unloaded = { ...first, phase: 'unloaded' as const };
  await keepGeneration(folder, unloaded, first);
  const next = freshAfter(unloaded, otherPlan);
  await keepGeneration(folder, next, unloaded);
  await restoreGeneration(folder, next, unloaded);
  assert.deepEqual(await readGeneration(folder, ring), unloaded);
  await assert.rejects(restoreGeneration(folder, next, unloaded), { code: 'GENERATION_FILE_CHANGED' });
  assert.deepEqual(await readGeneration(folder, ring), unloaded);
});

test('a later generation is greater, after an unload as well (G1)', async () => {
  const folder = newFolder();
  let former = await keptFirst(folder);
  for (let load = 2; load <= 5; load += 1) {
    const unloaded = { ...former, phase: 'unloaded' as const };
    await keepGeneration(folder, unloaded, former);
    const next = freshAfter(await readGeneration(folder, ring), load % 2 === 0 ? otherPlan : plan);
    assert(next.generation > former.generation);
    assert.notEqual(next.loadId, former.loadId);
    assert.equal(next.former, former.generation);
    await keepGeneration(folder, next, unloaded);
    former = next;
  }
});

test('two loads begun from the same file have numbers of their own', () => {
  const numbers = new Set(Array.from({ length: 100 }, () => freshAfter(null).generation));
  assert.equal(numbers.size, 100);
});

test('a load keeps its number through its phases (G6)', async () => {
  const folder = newFolder();
  const first = await keptFirst(folder);
  await keepGeneration(folder, { ...first, phase: 'ready' }, first);
  assert.deepEqual(await readGeneration(folder, ring), { ...first, phase: 'ready' });
});

test('of two commands that begin with the same file one keeps its load, and the other changes nothing', async () => {
  const folder = newFolder();
  const first = await keptFirst(folder);
  const rivals = [freshAfter(first), freshAfter(first, otherPlan)];
  const outcomes = await Promise.allSettled(rivals.map((rival) => keepGeneration(folder, rival, first)));
  const [winner, ...others] = rivals.filter((_rival, index) => outcomes[index]?.status === 'fulfilled');
  assert.equal(others.length, 0);
  assert.deepEqual(await readGeneration(folder, ring), winner);
  const loss = outcomes.find((outcome) => outcome.status === 'rejected');
  assert(loss?.reason instanceof P4Error);
  assert.equal(loss.reason.code, 'GENERATION_FILE_CHANGED');
  assert.deepEqual(readdirSync(folder.generations), ['tales.json']);
});

test('a file that is not what was written is refused, and the refusal does not tell the generation (G4)', async () => {
  const folder = newFolder();
  const first = freshAfter(await keptFirst(folder));
  const file = join(folder.generations, 'tales.json');
  const good = readFileSync(file, 'utf8');
  const number = (JSON.parse(good) as { generation: string }).generation;
  const damages: readonly (readonly [string, string, RegExp])[] = [
    [good, '', /line 1: the file should be a mapping of a load/],
    [good, good.slice(0, 300), /line \d+: the file should be/],
    ['"layers": "0-3"', '"layers": "0-2"', /\/plan\/stages\/1\/layers is not a slice that starts at layer 3/],
    ['"context": 64', '"context": 65', /the plan does not have its digest/],
    ['"ring": "tales"', '"ring": "tails"', /it is of another ring/],
    [`"${number}"`, `"0${number}"`, /line 4: \/generation should be a decimal number/],
    [`"${number}"`, '"18446744073709551616"', /its generation is no unsigned 64-bit number above the former one/],
    ['"formerGeneration": null', `"formerGeneration": "${number}"`, /above the former one/],
    [
      '"phase": "loading"',
      '"phase": "lost"',
      /line 7: \/phase should be one of loading, ready, failed, unloading, unloaded/,
    ],
    ['"format": 1', '"format": 2', /line 2: \/format should be the format 1/],
  ];
  for (const [from, to, expected] of damages) {
    writeFileSync(file, good.replace(from, to));
    await assert.rejects(readGeneration(folder, ring), (error) => {
      assert(error instanceof P4Error);
      assert.equal(error.code, 'GENERATION_FILE_DAMAGED');
      assert.match(error.message, expected);
      assert(!error.message.includes(number), 'the generation is not told');
      return true;
    });
    await assert.rejects(keepGeneration(folder, first, null), /./, 'and it is not written over');
  }
});

test('all that was kept is read at once, and a file of an earlier release names no slices', async () => {
  const folder = newFolder();
  assert.deepEqual(await readGenerations(folder), []);
  const first = await keptFirst(folder);
  assert.deepEqual(await readGenerations(folder), [first]);
  const file = join(folder.generations, 'tales.json');
  const value = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  delete value['slices'];
  writeFileSync(file, JSON.stringify(value));
  assert.deepEqual(await readGenerations(folder), [{ ...first, slices: [] }]);
});
