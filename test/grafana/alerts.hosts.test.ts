/**
 * A ring over two real hosts, as `deploy` and `load` leave it, under load and a real Prometheus that has the monitor's
 * certificate: every rule and every query of every panel is answered, and a link that gets slow is told until it is well
 * again. The windows are seconds.
 */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { ruleFiles } from '../../grafana/rules/rule-groups.ts';
import { scaledWindows } from '../../grafana/windows.ts';
import { hostName } from '../../protocol/ids.ts';
import { FleetConnection } from '../../provisioner/fleet-connection.ts';
import { ensureCertificate } from '../../provisioner/pki.ts';
import { stateFolder } from '../../provisioner/state-folder.ts';
import { eventually } from '../fixture/eventually.ts';
import { loadPlan, storiesModel } from '../fixture/local-agents.ts';
import { OperatorDesk } from '../hosts/operator-desk.ts';
import { TestHosts } from '../hosts/test-hosts.ts';
import { AlertWatch } from './alert-watch.ts';
import { Prometheus } from './prometheus.ts';
import { RingLoad } from './ring-load.ts';
import { emptyQueries, faultyRules, unlabelledLines, untilAllRecorded, type WatchedRing } from './watched-queries.ts';

const names = ['ant', 'bee'] as const;
const scrapeSeconds = 1;
const windows = scaledWindows(600, scrapeSeconds);
const metricsPort = 7401;
const ring = 'two-hosts';
/** A row of the stories model is 1.2 kB, which takes 60 ms and more at that rate. */
const slowRate = '160kbit';

suite('a ring over two hosts', () => {
  let hosts: TestHosts;
  let desk: OperatorDesk;
  let fleet: FleetConnection;
  let load: RingLoad;
  let prometheus: Prometheus;

  before(async () => {
    hosts = await TestHosts.start({
      hosts: names.map((name) => ({ name })),
      networks: [{ name: 'wire', hasOperator: true }],
    });
    desk = new OperatorDesk();
    desk.writeInventory(hosts, { hosts: names, network: 'wire' });
    (await desk.deploy()).succeeded();
    const plan = [`ring: ${ring}`, `model: ${storiesModel}`, 'context: 1024', 'sessions: 4', 'stages:'];
    const stages = ['  - { host: ant, layers: 0-3, threads: 1 }', '  - { host: bee, layers: 4-7, threads: 1 }', ''];
    const path = desk.write('plan.yaml', [...plan, ...stages].join('\n'));
    const state = stateFolder({ option: join(desk.folder, 'state'), environment: {}, workingFolder: desk.folder });
    fleet = await FleetConnection.open(state);
    const loaded = await loadPlan(path, { state, fleet });
    const { paths } = await ensureCertificate(state, { role: 'monitor', host: hostName('ant') }, new Date());
    const targets = new Map(
      names.map((name) => [name, { address: hosts.host(name).address('wire'), port: metricsPort }] as const),
    );
    const folder = join(desk.folder, 'prometheus');
    mkdirSync(folder);
    const rules = ruleFiles(windows);
    prometheus = await Prometheus.start({ folder, scrapeSeconds, rules, targets, credentials: paths });
    load = new RingLoad(loaded);
  });
  after(async () => {
    await load.stop();
    await prometheus.stop();
    await fleet.close();
    desk.remove();
    await hosts.stop();
  });

  const watched = (): WatchedRing => ({ prometheus, windows, scrapeSeconds, ring });

  test('answers every rule and every query of every panel', async () => {
    await untilAllRecorded(watched(), 60_000);
    assert.deepEqual(await faultyRules(watched()), []);
    assert.deepEqual(await emptyQueries(watched()), []);
    assert.deepEqual(await unlabelledLines(watched()), []);
  });

  test('is told to have a slow hop while its link is slow', async (context) => {
    const ant = hosts.host('ant');
    const tc = (...words: readonly string[]): Promise<string> => ant.inNetwork(['tc', ...words]);
    const alert = new AlertWatch(prometheus, 'P4HopSlow', 'link:p4_hop_seconds:mean');
    context.diagnostic(`silent after ${await alert.untilClear(30_000)} s`);
    // Only what goes to bee is slow: Prometheus sees ant as before.
    await tc('qdisc', 'add', 'dev', 'wire', 'root', 'handle', '1:', 'htb');
    await tc('class', 'add', 'dev', 'wire', 'parent', '1:', 'classid', '1:1', 'htb', 'rate', slowRate);
    const toBee = ['u32', 'match', 'ip', 'dst', hosts.host('bee').address('wire'), 'flowid', '1:1'];
    await tc('filter', 'add', 'dev', 'wire', 'parent', '1:', 'protocol', 'ip', ...toBee);
    // Acknowledgements of what bee sends go that way, too: the edge back to ant may be told first.
    context.diagnostic(`fires after ${await alert.untilFires(60_000)} s`);
    const toldOfEdge = 'ALERTS{alertname="P4HopSlow",alertstate="firing",source="0",destination="1",peer="bee"}';
    await eventually(async () => (await prometheus.query(toldOfEdge)).length > 0, { what: 'the edge to bee is told' });
    await tc('qdisc', 'delete', 'dev', 'wire', 'root');
    context.diagnostic(`clears after ${await alert.untilClear(60_000)} s`);
  });
});
