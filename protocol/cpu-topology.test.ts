import assert from 'node:assert/strict';
import { test } from 'node:test';

import { cpusOfGroups, groupMessage, readGroups, type CpuGroup } from './cpu-topology.ts';
import { limits } from './limits.ts';

const groups: readonly CpuGroup[] = [
  {
    numaNode: 0,
    capacity: 1024,
    cores: [
      [0, 4],
      [1, 5],
    ],
  },
  { numaNode: 1, capacity: 446, cores: [[2], [3]] },
];

test('groups read back as they were said', () => {
  const said = groups.map(groupMessage);
  assert.deepEqual(said[0], { numaNode: 0, capacity: 1024, cores: ['0,4', '1,5'] });
  assert.deepEqual(readGroups(said), groups);
  assert.deepEqual(cpusOfGroups(groups), [0, 4, 1, 5, 2, 3]);
});

test('what no host can be is not believed', () => {
  const [good] = groups.map(groupMessage);
  assert(good !== undefined);
  const wrong = [
    [],
    [{ ...good, cores: [] }],
    [{ ...good, capacity: 0 }],
    [{ ...good, cores: ['0,4', '4'] }],
    [{ ...good, cores: ['a'] }],
    [{ ...good, cores: [''] }],
    [good, good],
    [{ ...good, cores: [`0-${limits.hostCpus}`] }],
  ];
  for (const messages of wrong) assert.equal(readGroups(messages), null, JSON.stringify(messages));
});
