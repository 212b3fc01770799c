import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostName } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import { temporaryFolder } from '../test/fixture/temporary-folder.ts';
import { openJournal } from './journal/journal.ts';
import { loadAdmitted, sampleLoad } from './journal/sample-records.ts';
import type { JournalRecord } from './records.ts';
import { standingLoads, type StandingLoad } from './standing-loads.ts';

const host = hostName('ant');
const plan = 'ring: stories\nmodel: tale.gguf\ncontext: 64\nsessions: 4\nstages:\n  - { host: ant, layers: 0-3 }\n';
const assignment = JSON.stringify({
  plan,
  placements: [{ sliceId: 'a'.repeat(64), address: '10.0.0.1', port: 7400 }],
});
const told = (address: string, deadlineSeconds: number): JournalRecord => ({
  kind: 'load-told',
  load: sampleLoad,
  ...{ deadlineSeconds, addresses: [{ address, port: 7401 }] },
});

/** What an agent finds that starts after these records. */
async function found(folder: string, records: readonly JournalRecord[]): Promise<readonly StandingLoad[]> {
  const options = { folder, limitBytes: limits.journalLeastBytes };
  const journal = await openJournal(options);
  await journal.commit(records);
  await journal.close();
  const next = await openJournal(options);
  const loads = await standingLoads(next, host);
  await next.close();
  return loads;
}

test('a load stands under the terms that it was told last (G6)', async (t) => {
  const admitted = { ...loadAdmitted(), assignment };
  const [load] = await found(temporaryFolder(t), [admitted, told('10.0.0.2', 30), told('10.0.0.3', 20)]);
  assert.ok(load !== undefined && load.assignment !== null);
  assert.deepEqual(load.assignment.placements, [{ sliceId: 'a'.repeat(64), address: '10.0.0.3', port: 7401 }]);
  assert.equal(load.assignment.plan.deadlineSeconds, 20);
  assert.deepEqual(load.restored.terms, { deadlineSeconds: 20, addresses: [{ address: '10.0.0.3', port: 7401 }] });
  assert.equal(load.restored.fault, null);
});

test('a load that cannot be read keeps its name, and hinders no other', async (t) => {
  const other = 'b'.repeat(32) as typeof sampleLoad;
  const foreign = { ...loadAdmitted(), assignment: '{"plan":"stages: all"}' };
  const loads = await found(temporaryFolder(t), [foreign, { ...loadAdmitted(other), assignment }]);
  assert.deepEqual(
    loads.map(({ restored }) => [restored.load, restored.fault?.code ?? null]),
    [
      [sampleLoad, 'LOAD_NOT_READABLE'],
      [other, null],
    ],
  );
  assert.equal(loads[0]?.assignment, null);
});
