import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseInventory } from '../../protocol/inventory-document.ts';
import { limitedHosts } from './deploy-order.ts';
import { chosenPhases, phaseNames } from './phase.ts';
import { recapHeading, recapLines } from './recap.ts';
import { durationText } from './report.ts';
import { portIn } from './trial.ts';
import { hostName } from '../../protocol/ids.ts';

test('tags leave out phases, but never those that the others stand on', () => {
  assert.deepEqual([...chosenPhases(undefined)], phaseNames);
  assert.deepEqual([...chosenPhases('files, verify')], ['connect', 'privileges', 'lock', 'facts', 'files', 'verify']);
  assert.throws(() => chosenPhases('files,fiels'), /found: fiels/);
});

test('hosts are limited by their names and their groups', () => {
  const reading = parseInventory(
    'groups: { gpu: }\nhosts: { ant: { address: a, groups: [gpu] }, bee: { address: b }, cat: { address: c } }',
    'inventory.yaml',
  );
  assert.ok(reading.kind === 'inventory');
  const names = (option?: string): readonly string[] => limitedHosts(reading.inventory, option).map(({ name }) => name);
  assert.deepEqual([names(), names('gpu,cat'), names('bee')], [['ant', 'bee', 'cat'], ['ant', 'cat'], ['bee']]);
  assert.throws(() => names('ant,dog'), {
    code: 'INVALID_ARGUMENT',
    facts: { option: '--limit', found: 'dog', hosts: ['ant', 'bee', 'cat'], groups: ['gpu'] },
  });
});

test('a recap has a line for each host', () => {
  const counts = { ok: 29, changed: 3, unreachable: 0, failed: 0, skipped: 0 } as const;
  assert.deepEqual(
    recapLines([
      { host: hostName('ant'), ...counts },
      { host: hostName('cicada'), ...counts, unreachable: 1 },
    ]),
    [
      'ant     ok=29    changed=3    unreachable=0  failed=0  skipped=0',
      'cicada  ok=29    changed=3    unreachable=1  failed=0  skipped=0',
    ],
  );
});

test('the recap of a check says so, and whether the run would be refused', () => {
  const well = { host: hostName('ant'), ok: 29, changed: 3, unreachable: 0, failed: 0, skipped: 0 } as const;
  assert.equal(recapHeading([well], false), 'RECAP');
  assert.equal(recapHeading([{ ...well, failed: 1 }], false), 'RECAP');
  assert.match(recapHeading([well], true), /nothing was changed; a run would change what is counted as changed$/);
  for (const bad of [{ failed: 1 }, { unreachable: 1 }] as const)
    assert.match(
      recapHeading([well, { ...well, ...bad }], true),
      /nothing was changed; a run would end as told above$/,
    );
});

test('the time that is left is told in seconds, then in minutes', () => {
  assert.deepEqual([0.2, 59, 60, 125].map(durationText), ['1 s left', '59 s left', '1:00 min left', '2:05 min left']);
});

test("a trial's port is the one that its agent says it got", () => {
  assert.equal(portIn('{"event":"ready","listen":[{"address":"::1","port":40001}]}'), 40_001);
  for (const line of ['', 'ready', '{"event":"failed"}', '{"event":"ready"}', '{"event":"ready","listen":[1]}'])
    assert.equal(portIn(line), null, line);
});
