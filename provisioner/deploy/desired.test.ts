import assert from 'node:assert/strict';
import { test } from 'node:test';

import { present } from '../../protocol/assert.ts';
import { hostName } from '../../protocol/ids.ts';
import { parseInventory } from '../../protocol/inventory-document.ts';
import type { InventoryHost } from '../../protocol/inventory.ts';
import { desiredResources } from './desired.ts';
import { parseFacts } from './facts.ts';
import { gpuHostFacts, plainHostFacts } from './recorded-facts.ts';
import { resourceName, type Resource } from './resource.ts';

function hostOf(variables = ''): InventoryHost {
  const reading = parseInventory(`hosts: { ant: { address: a, variables: { ${variables} } } }`, 'inventory.yaml');
  assert.ok(reading.kind === 'inventory');
  return present(reading.inventory.hosts[0], 'an inventory has a host');
}

const desired = (facts: string, host = hostOf()): readonly Resource[] =>
  desiredResources({
    ...{ host, facts: parseFacts(hostName('ant'), facts), releaseId: '0123456789abcdef' },
    listen: [{ address: '192.0.2.1', port: 7400 }],
    identity: { authority: 'A', certificate: 'C', key: 'K' },
    revoked: null,
  });

test('accounts come before folders, folders before files, files before the switch, the agent last', () => {
  const kinds = desired(plainHostFacts).map(({ kind }) => kind);
  const order = ['group', 'user', 'folder', 'release', 'file', 'absent', 'file', 'link', 'unit'];
  assert.deepEqual(
    kinds.filter((kind, index) => kind !== kinds[index - 1]),
    order,
  );
  assert.equal(desired(plainHostFacts).map(resourceName).at(-1), 'p4-agent.service');
});

test('the key is its user’s alone and never shown, and no other file is open to writing', () => {
  const files = desired(plainHostFacts).filter((resource) => resource.kind === 'file');
  const key = files.find(({ path }) => path === '/etc/p4/pki/agent.key');
  assert.deepEqual([key?.mode, key?.owner], [0o600, { user: 'p4', group: 'p4' }]);
  assert.deepEqual(
    files.filter(({ content }) => content.kind === 'bytes' && content.isSecret).map(({ path }) => path),
    ['/etc/p4/pki/agent.key'],
  );
  assert.deepEqual(
    files.filter(({ mode, owner }) => (mode & 0o022) !== 0 || (mode & 0o7 && owner.user === 'p4')),
    [],
  );
});

test('with polkit a host has the rule and not the folder of requests; without, the other way round', () => {
  const names = (facts: string, kind: Resource['kind']): readonly string[] =>
    desired(facts)
      .filter((resource) => resource.kind === kind)
      .map(resourceName);
  assert.ok(names(gpuHostFacts, 'file').includes('/etc/polkit-1/rules.d/50-p4.rules'));
  assert.ok(names(gpuHostFacts, 'absent').includes('/etc/systemd/system/p4-stage-request.path'));
  assert.deepEqual(names(gpuHostFacts, 'unit'), ['p4-agent.service']);
  assert.deepEqual(names(plainHostFacts, 'absent'), ['/etc/polkit-1/rules.d/50-p4.rules']);
  assert.deepEqual(names(plainHostFacts, 'unit'), ['p4-stage-request.path', 'p4-agent.service']);
});

test('what a run has still to make is different from whatever is there', () => {
  const resources = desiredResources({
    ...{ host: hostOf(), facts: parseFacts(hostName('ant'), plainHostFacts), releaseId: '0123456789abcdef' },
    ...{ listen: null, identity: null, revoked: null },
  });
  const made = resources.flatMap((resource) =>
    resource.kind === 'file' && resource.content.kind === 'made-in-run' ? [resource.path] : [],
  );
  assert.deepEqual(made, [
    '/etc/p4/agent.json',
    '/etc/p4/pki/authority.crt',
    '/etc/p4/pki/agent.crt',
    '/etc/p4/pki/agent.key',
  ]);
});
