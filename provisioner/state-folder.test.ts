import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stateFolder } from './state-folder.ts';

const rootOf = (option: string | null, variable?: string): string =>
  stateFolder({ option, environment: { P4_STATE: variable }, workingFolder: '/home/op/fleet' }).root;

test('the option comes before the variable, and the working folder last', () => {
  assert.equal(rootOf('/srv/state', '/other'), '/srv/state');
  assert.equal(rootOf('state', '/other'), '/home/op/fleet/state');
  assert.equal(rootOf(null, '../shared'), '/home/op/shared');
  assert.equal(rootOf(null, ''), '/home/op/fleet/.p4');
  assert.equal(rootOf(null), '/home/op/fleet/.p4');
});

test('everything is in the folder', () => {
  assert.deepEqual(stateFolder({ option: '/s', environment: {}, workingFolder: '/' }), {
    root: '/s',
    generations: '/s/generations',
    pki: '/s/pki',
    fleetFile: '/s/fleet.json',
    knownHostsFile: '/s/known_hosts',
  });
});
