import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

import { hostName } from '../../../protocol/ids.ts';
import { handWork } from './by-hand.ts';
import { monitoringFactsScript, parseMonitoringFacts, type MonitoringFacts } from './monitoring-facts.ts';
import { listenPort, monitoringWay, wantsPort } from './monitoring-way.ts';
import { bareFacts, changedFacts, packagedFacts } from './recorded-facts.ts';

const ant = hostName('ant');
const facts = (text: string, changes: Readonly<Record<string, string>> = {}): MonitoringFacts =>
  parseMonitoringFacts(ant, changedFacts(text, changes));
const why = (found: MonitoringFacts): string => {
  const way = monitoringWay(found);
  return way.kind === 'files' ? way.why : way.kind;
};

test('Prometheus is set up where it is as the package brought it, or as an earlier run left it, or can be installed', () => {
  for (const config of ['package', 'ours', 'absent'])
    assert.deepEqual(monitoringWay(facts(packagedFacts, { config })), { kind: 'whole', installs: false });
  assert.deepEqual(monitoringWay(facts(bareFacts)), { kind: 'whole', installs: true });
  assert.deepEqual(monitoringWay(facts(bareFacts, { package: 'config-files' })), { kind: 'whole', installs: true });
});

test('a configuration that somebody wrote, or named in the arguments, is theirs', () => {
  const own = { kind: 'own-config', installs: false, path: '/etc/prometheus/prometheus.yml', readsOurs: false };
  assert.deepEqual(monitoringWay(facts(packagedFacts, { config: 'own' })), own);
  const named = { config: 'absent', 'config-path': '/srv/prometheus.yml' };
  assert.deepEqual(monitoringWay(facts(packagedFacts, named)), { ...own, path: '/srv/prometheus.yml' });
  const reads = monitoringWay(facts(packagedFacts, { config: 'own', 'reads-ours': 'yes' }));
  assert.deepEqual(reads, { ...own, readsOurs: true });
  assert.equal(handWork(reads), null);
});

test('without a Prometheus that deploy can set up there are files, and the reason', () => {
  assert.match(why(facts(bareFacts, { unit: 'present' })), /not Debian's package$/);
  assert.match(why(facts(bareFacts, { apt: '' })), /no apt-get/);
  for (const candidate of ['', '(none)']) assert.match(why(facts(bareFacts, { candidate })), /knows no package/);
});

test('what is left to do by hand is told with the very lines', () => {
  const work = handWork(monitoringWay(facts(packagedFacts, { config: 'own' })));
  assert.match(work?.lines.join('\n') ?? '', /^rule_files: \[ \/etc\/p4\/prometheus\/rules\/\*\.yml \]$/m);
  assert.match(work?.lines.join('\n') ?? '', /^ {2}- job_name: p4$/m);
  assert.match(work?.lines.join('\n') ?? '', /^ {4}scrape_interval: 15s$/m, 'whatever the default is there');
  assert.doesNotMatch(work?.lines.join('\n') ?? '', /^global:/m);
});

test('the port of the inventory is set unless it is the usual one, or the arguments say another', () => {
  const plain = facts(packagedFacts);
  assert.deepEqual([wantsPort(plain, 9090), wantsPort(plain, 9191), listenPort(plain, 9191)], [false, true, 9191]);
  const told = facts(packagedFacts, { 'arguments-port': '9300' });
  assert.deepEqual([wantsPort(told, 9191), listenPort(told, 9191)], [false, 9300]);
});

test('what the script prints here is read, and an answer that is cut off is refused', () => {
  const text = execFileSync('sh', ['-c', monitoringFactsScript], { encoding: 'utf8' });
  assert.ok(parseMonitoringFacts(ant, text).config.path.startsWith('/'));
  assert.throws(() => parseMonitoringFacts(ant, 'package=installed\n'), { code: 'HOST_FACTS_UNREADABLE' });
});
