import assert from 'node:assert/strict';
import { test } from 'node:test';

import { hostName } from '../../../protocol/ids.ts';
import { parseInventory } from '../../../protocol/inventory-document.ts';
import type { InventoryHost } from '../../../protocol/inventory.ts';
import { parseTargets } from './prometheus-api.ts';
import { awaited, targetHealth } from './target-watch.ts';
import { chosenTargets, targetsText, type Target } from './targets.ts';

const [ant, bee, cat] = [hostName('ant'), hostName('bee'), hostName('cat')];
const hosts = ((): readonly InventoryHost[] => {
  const reading = parseInventory(
    'hosts: { ant: { address: a }, bee: { address: b, variables: { ports: { metrics: 7411 } } }, cat: { address: c } }',
    'inventory.yaml',
  );
  assert.ok(reading.kind === 'inventory');
  return reading.inventory.hosts;
})();

test('targets are where hosts of the inventory are: as this run decides, else as the fleet knows them', () => {
  const chosen = chosenTargets({
    hosts,
    inRun: new Set([ant]),
    decided: new Map([[ant, '192.0.2.1']]),
    known: new Map([
      [ant, '192.0.2.9'],
      [bee, '2001:db8::2'],
      [hostName('dog'), '192.0.2.4'],
    ]),
  });
  assert.deepEqual(JSON.parse(targetsText(chosen ?? [])), [
    { targets: ['192.0.2.1:7401'], labels: { host: 'ant' } },
    { targets: ['[2001:db8::2]:7411'], labels: { host: 'bee' } },
  ]);
});

test('they are not known before the addresses of all hosts of the run are', () => {
  const known = new Map([[cat, '192.0.2.3']]);
  assert.equal(chosenTargets({ hosts, inRun: new Set([bee, cat]), decided: known, known }), null);
});

const target = (host: string, address: string, more: object): object => ({
  ...{ labels: { job: 'p4', host }, discoveredLabels: { __address__: address }, ...more },
});
const answer = (...activeTargets: readonly object[]): string =>
  JSON.stringify({ status: 'success', data: { activeTargets } });

test('a target counts as scraped at its present address only, and the others have a reason', () => {
  const ours: readonly Target[] = [
    { host: ant, address: '192.0.2.1', port: 7401 },
    { host: bee, address: '192.0.2.2', port: 7401 },
    { host: cat, address: '192.0.2.3', port: 7401 },
  ];
  const scraped = parseTargets(
    answer(
      target('ant', '192.0.2.1:7401', { health: 'up', lastError: '' }),
      target('bee', '192.0.2.9:7401', { health: 'up', lastError: '' }),
      target('cat', '192.0.2.3:7401', { health: 'down', lastError: 'connection refused' }),
      { labels: { job: 'prometheus' }, health: 'up' },
    ),
    'p4',
  );
  assert.equal(scraped?.length, 3);
  const found = targetHealth(ours, scraped);
  assert.deepEqual(found, [
    { host: ant, health: 'up', why: '' },
    { host: bee, health: 'unknown', why: 'Prometheus does not have it among its targets' },
    { host: cat, health: 'down', why: 'connection refused' },
  ]);
  const waiting = awaited(found, new Set([ant, bee])).map(({ host }) => host);
  assert.deepEqual(waiting, [bee], 'a host that was left out may be off');
});

test('what is no answer of Prometheus is none', () => {
  for (const text of ['', 'Not Found', '{}', '{"status":"error"}']) assert.equal(parseTargets(text, 'p4'), null, text);
  assert.deepEqual(parseTargets('{"status":"success"}', 'p4'), []);
});
