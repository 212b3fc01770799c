import assert from 'node:assert/strict';
import { test } from 'node:test';
import { debianPackages, neededBy, preparePackages, type DebianPackage } from './debian-packages.ts';

const present: DebianPackage = { name: 'dpkg', reason: 'it is always there', neededBy: ['ring'] };
const absent: DebianPackage = { name: 'p4-no-such-package', reason: 'it is never there', neededBy: ['ring', 'unit'] };

test('packages that are there need nothing', () => {
  assert.deepEqual(preparePackages([], true), { kind: 'ready', installed: [] });
  assert.deepEqual(preparePackages([present], false), { kind: 'ready', installed: [] });
});

test('whoever is not root is told what is missing', () => {
  assert.deepEqual(preparePackages([present, absent], false), {
    kind: 'missing',
    packages: [absent],
    why: 'only root can install them',
  });
});

test('a tier asks for its own packages', () => {
  assert.deepEqual(neededBy('unit', [present, absent]), [absent]);
  assert.deepEqual(neededBy('structure', [present, absent]), []);
});

test('only tiers of real processes ask for any', () => {
  assert.ok(neededBy('hosts', debianPackages).length > 0);
  assert.deepEqual(
    neededBy('ring', debianPackages).map(({ name }) => name),
    ['prometheus', 'tmux'],
  );
  for (const tier of ['structure', 'unit', 'simulation', 'engine'] as const) {
    assert.deepEqual(neededBy(tier, debianPackages), []);
  }
});
