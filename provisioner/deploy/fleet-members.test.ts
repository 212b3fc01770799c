import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseInventory } from '../../protocol/inventory-document.ts';
import { hostName } from '../../protocol/ids.ts';
import type { FleetHost } from '../fleet-file.ts';
import { strayHosts } from './fleet-members.ts';

const network = { listen: ['192.0.2.1'], operatorAddress: null, isFixed: false, addresses: [], rejected: [] };
const host = (name: string, isLocal = false): FleetHost => ({
  name: hostName(name),
  address: '192.0.2.1',
  port: 7400,
  certificateName: hostName(name),
  since: '2030-01-02T03:04:05.678Z',
  why: 'why',
  network: isLocal ? null : network,
  ssh: null,
});

test('hosts that left the inventory are told, and agents of local use apart from them', () => {
  const reading = parseInventory('hosts: { ant: { address: a }, local-2: { address: b } }', 'inventory.yaml');
  assert.ok(reading.kind === 'inventory');
  const fleet = [host('ant'), host('dog'), host('local', true), host('local-2', true)];
  assert.deepEqual(strayHosts(fleet, reading.inventory), { left: ['dog'], local: ['local'] });
  assert.deepEqual(strayHosts([host('ant')], reading.inventory), { left: [], local: [] });
});
