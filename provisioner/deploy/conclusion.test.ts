import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import { hostName, ringName } from '../../protocol/ids.ts';
import { parseInventory } from '../../protocol/inventory-document.ts';
import { hostLayout } from '../host-layout.ts';
import { TerminalPrompt } from '../ssh/secret-prompt.ts';
import { stateFolder } from '../state-folder.ts';
import { Terminal } from '../terminal.ts';
import { conclude } from './conclusion.ts';
import type { Deployment, DeployOrder } from './deploy-order.ts';
import type { Change } from './difference.ts';
import { hostLockOwner } from './host-lock.ts';
import { HostRun } from './host-run.ts';
import { chosenPhases } from './phase.ts';
import { tellStaleTargets } from './monitoring/monitoring-phase.ts';
import { removalUnconfirmed } from './removal.ts';
import { Report } from './report.ts';
import { noteEndedRings, refuseEndedRings } from './ring-guard.ts';
import { beginPhase } from './telling.ts';

interface Desk {
  readonly deployment: Deployment;
  readonly hosts: readonly [HostRun, HostRun];
  /** Lines that were printed since it was last asked. */
  readonly said: () => readonly string[];
}

async function deskOf(more: Partial<DeployOrder> = {}, monitoring = ''): Promise<Desk> {
  const text = `hosts: { ant: { address: a }, bee: { address: b } }\n${monitoring}`;
  const reading = parseInventory(text, 'inventory.yaml');
  assert.ok(reading.kind === 'inventory');
  const { inventory } = reading;
  const out = new PassThrough();
  const terminal = new Terminal('text', { out, err: new PassThrough() });
  const order: DeployOrder = {
    ...{
      inventory,
      inventoryFile: '/inventory.yaml',
      hosts: inventory.hosts,
      revoked: null,
      phases: chosenPhases(undefined),
    },
    state: stateFolder({ option: null, environment: {}, workingFolder: '/nowhere' }),
    ...{ forks: 1, isCheck: false, restartsRings: false, forcesUnlock: false, measuresAnew: false },
    acceptance: { fingerprints: [], isNewAccepted: false },
    prompt: new TerminalPrompt(() => undefined),
    ...more,
  };
  const [ant, bee] = inventory.hosts.map((host) => new HostRun(host));
  assert.ok(ant !== undefined && bee !== undefined);
  const names = [ant.name, bee.name];
  return {
    deployment: {
      order,
      hosts: [ant, bee],
      report: new Report(terminal, names, { isCheck: order.isCheck, showsDifferences: false }),
      owner: await hostLockOwner(order.state),
      signal: new AbortController().signal,
    },
    hosts: [ant, bee],
    said: () => String(out.read() ?? '').split('\n'),
  };
}

const restart: Change = {
  resource: { kind: 'unit', name: hostLayout.agentUnit, activity: 'runs', readsAtStart: [], rereads: null },
  phase: 'services',
  action: { kind: 'unit', steps: ['restart'] },
  text: 'p4-agent.service: restart',
  difference: null,
};
const sent: Change = {
  resource: { kind: 'release', id: 'r' },
  phase: 'release',
  action: { kind: 'send-release' },
  text: 'send release r',
  difference: null,
};
const rings = [
  { ring: ringName('three'), hosts: [hostName('ant'), hostName('bee')] },
  { ring: ringName('whole'), hosts: [hostName('bee')] },
];

test('a failure is told under the phase in which it happened, once', async () => {
  const { deployment, hosts, said } = await deskOf();
  beginPhase(deployment, 'connect');
  hosts[0].fail('connect', new P4Error('HOST_UNREACHABLE', { host: 'ant' }));
  beginPhase(deployment, 'privileges');
  hosts[1].fail('privileges', new P4Error('BECOME_REFUSED', { host: 'bee' }));
  assert.equal(conclude(deployment, null), 4, 'as the first host in the order of the inventory');
  const heads = said().flatMap((line) => /^[A-Z]+(?= )|HOST_UNREACHABLE|BECOME_REFUSED/.exec(line)?.[0] ?? []);
  assert.deepEqual(heads, ['CONNECT', 'HOST_UNREACHABLE', 'PRIVILEGES', 'BECOME_REFUSED', 'LEFT']);
});

test('a run that is cut short says which state each host was left in', async () => {
  const { deployment, hosts, said } = await deskOf();
  const [ant, bee] = hosts;
  ant.plan([], [sent]);
  ant.noteMade(sent);
  bee.end = 'back';
  assert.equal(conclude(deployment, new P4Error('CANCELLED', { by: 'SIGINT' })), 0);
  assert.deepEqual(said(), [
    'LEFT        what each host is left with; run it again, or leave out what failed with --limit',
    '  ant  runs what it ran before; what was prepared stays for the next run',
    '  bee  back at what it had before',
    'RECAP',
    '  ant  ok=0     changed=1    unreachable=0  failed=0  skipped=0',
    '  bee  ok=0     changed=0    unreachable=0  failed=0  skipped=0',
    '',
  ]);
});

test('a check ends as the run would: rings under an agent that restarts are refused, unless they may end', async () => {
  for (const isCheck of [true, false]) {
    const refused = await deskOf({ isCheck });
    refused.hosts[1].plan([], [restart]);
    refused.hosts[1].noteMade(restart);
    noteEndedRings(refused.deployment, rings);
    refuseEndedRings(refused.deployment, rings);
    assert.equal(refused.hosts[0].failure, null, 'an agent that is not restarted keeps its rings');
    assert.deepEqual(refused.hosts[1].failure?.error.facts, { host: 'bee', rings: ['three', 'whole'] });
    assert.equal(conclude(refused.deployment, null), 3);
    const words = refused.said().join('\n');
    assert.match(words, /RINGS_WOULD_STOP/);
    assert.equal(/a check: nothing was changed; a run would end as told above/.test(words), isCheck);

    const asked = await deskOf({ isCheck, restartsRings: true });
    asked.hosts[1].plan([], [restart]);
    noteEndedRings(asked.deployment, rings);
    refuseEndedRings(asked.deployment, rings);
    const verb = isCheck ? 'would restart' : 'restarts';
    assert.equal(asked.said()[0], `  bee ${verb} its agent under three, whole: load again afterwards`);
    assert.equal(conclude(asked.deployment, null), 0);
  }
  const spared = await deskOf({ phases: chosenPhases('files') });
  spared.hosts[1].plan([], [restart]);
  refuseEndedRings(spared.deployment, rings);
  assert.equal(spared.hosts[1].failure, null, 'without the phase services nothing is restarted');
});

test('a removal that nobody confirmed names the rings that it would end, host by host', () => {
  const [ant, bee, cat] = ['ant', 'bee', 'cat'].map(hostName);
  assert.ok(ant !== undefined && bee !== undefined && cat !== undefined);
  const { facts, rule } = removalUnconfirmed([ant, bee, cat], rings);
  assert.equal(rule.exit, 2);
  assert.deepEqual(facts, {
    hosts: ['ant', 'bee', 'cat'],
    ends: ['ant: the loaded ring three', 'bee: the loaded rings three, whole'],
  });
  assert.equal(removalUnconfirmed([cat], rings).facts['ends'], 'no loaded ring');
});

test('a run that leaves the monitoring host out says that its targets are as they were', async () => {
  const { deployment, said } = await deskOf({}, 'monitoring: bee');
  tellStaleTargets(deployment);
  assert.deepEqual(said(), ['']);
  tellStaleTargets({ ...deployment, hosts: deployment.hosts.filter(({ name }) => name === 'ant') });
  assert.match(said().join('\n'), /^ {2}The targets of Prometheus on bee are not brought up to date/);
});
