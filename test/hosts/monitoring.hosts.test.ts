/**
 * Deploy sets up Prometheus where the inventory says: Debian's own package, installed by the host's own apt, scrapes the
 * agents of two hosts over mutual TLS. Grafana is no package of Debian's: what deploy does for it is tested with what its
 * package has, folders, group and unit.
 */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { eventually } from '../fixture/eventually.ts';
import { OperatorDesk, type Deployed } from './operator-desk.ts';
import { offerPackages } from './package-source.ts';
import type { TestHost } from './test-host.ts';
import { TestHosts } from './test-hosts.ts';

const names = ['ant', 'bee'] as const;
const configPath = '/etc/prometheus/prometheus.yml';
const folder = '/etc/p4/prometheus';

suite('the monitoring host', () => {
  let fleet: TestHosts;
  let desk: OperatorDesk;
  let ant: TestHost;

  const inventory = (monitoring: string, hosts: readonly string[] = names): void => {
    desk.writeInventory(fleet, { hosts, network: 'lan', more: [`monitoring: ${monitoring}`] });
  };
  /** Only what is new to the agents themselves is left out. */
  const deployMonitoring = (...options: readonly string[]): Promise<Deployed> =>
    desk.deploy('--tags', 'monitoring', ...options);
  /** Changes just what a check says before. */
  const asChecked = async (): Promise<Deployed> => {
    const check = (await deployMonitoring('--check')).succeeded();
    const run = (await deployMonitoring()).succeeded();
    assert.deepEqual(run.changes, check.changes);
    return run;
  };
  const targetsIn = (run: Deployed): unknown => run.of('monitoring')[0]?.['targets'];
  const asked = async (path: string, port = 9090): Promise<unknown> => {
    const response = await fetch(`http://${ant.address('lan')}:${String(port)}/api/v1/${path}`);
    return ((await response.json()) as { data: unknown }).data;
  };
  const groupsLoaded = async (): Promise<number> =>
    ((await asked('rules')) as { readonly groups: readonly unknown[] }).groups.length;
  const startOf = (unit: string): Promise<string> => ant.run(`systemctl show -p InvocationID --value ${unit}`);
  const up = names.map((host) => ({ host, health: 'up', why: '' }));

  before(async () => {
    fleet = await TestHosts.start({
      hosts: names.map((name) => ({ name })),
      networks: [{ name: 'lan', hasOperator: true }],
    });
    ant = fleet.host('ant');
    desk = new OperatorDesk();
    await ant.run(`groupadd --system grafana
      install -d -g grafana -m 750 /etc/grafana /etc/grafana/provisioning /etc/grafana/provisioning/datasources /etc/grafana/provisioning/dashboards
      printf '[Service]\\nExecStart=/bin/sleep infinity\\n' >/etc/systemd/system/grafana-server.service
      systemctl daemon-reload; systemctl start grafana-server`);
    inventory('ant');
  });
  after(async () => {
    desk.remove();
    await fleet.stop();
  });

  test('that can install no Prometheus gets the files, and the operator the words', async (context) => {
    const run = (await desk.deploy()).succeeded();
    const [work] = run.of('monitoring-by-hand');
    assert.match(String(work?.['why']), /its apt-get knows no package prometheus/);
    assert.deepEqual(run.of('monitoring'), []);
    const listed = await ant.run(`stat -c '%a %U:%G %n' ${folder}/* | sed s:${folder}/::`);
    for (const line of ['600 root:root monitor.key', '644 root:root prometheus.yml', '644 root:root targets.json'])
      assert.ok(listed.split('\n').includes(line), listed);
    context.diagnostic(`fresh deploy of 2 hosts: ${(run.end.durationMs / 1000).toFixed(1)} s`);
  });

  test('that can, gets Prometheus: all agents are scraped, all rules loaded', async (context) => {
    await offerPackages(ant, 'prometheus');
    const grafanaStart = await startOf('grafana-server');
    const run = await asChecked();
    context.diagnostic(`Prometheus installed and both hosts scraped: ${(run.end.durationMs / 1000).toFixed(1)} s`);
    assert.ok(run.changes.includes('ant: install the package prometheus'));
    assert.ok(run.changes.includes(`ant: create ${configPath}`));
    assert.deepEqual(targetsIn(run), up);
    assert.ok((await groupsLoaded()) > 0);
    const rights = await ant.run(`stat -c '%a %U:%G' ${folder}/monitor.key /etc/grafana/provisioning/*/p4.yaml`);
    assert.equal(rights, '640 root:prometheus\n640 root:grafana\n640 root:grafana\n');
    assert.equal(await startOf('grafana-server'), grafanaStart, 'it had all of it before');
  });

  test('changes nothing the second time', async () => {
    const start = await startOf('prometheus');
    const run = (await desk.deploy()).succeeded();
    assert.deepEqual(run.changes, []);
    assert.deepEqual(targetsIn(run), up);
    assert.equal(await startOf('prometheus'), start);
  });

  test('keeps what it has where promtool refuses the new', async () => {
    await ant.run(`rm ${folder}/rules/ring.yml; echo 'groups: []' >${folder}/rules/former.yml
      printf '#!/bin/sh\\necho an unknown function; exit 1\\n' >/usr/local/bin/promtool; chmod 755 /usr/local/bin/promtool`);
    const refused = await deployMonitoring();
    assert.deepEqual(refused.failures, ['ant: PROMETHEUS_CONFIG_REFUSED']);
    assert.match(refused.end.out, /an unknown function/);
    assert.deepEqual(refused.changes, []);
    await ant.run('rm /usr/local/bin/promtool');
    const [groups, start] = [await groupsLoaded(), await startOf('prometheus')];
    const run = (await deployMonitoring()).succeeded();
    assert.deepEqual(run.changes, [
      `ant: create ${folder}/rules/ring.yml`,
      `ant: delete ${folder}/rules/former.yml`,
      'ant: prometheus.service: have it read its configuration',
    ]);
    await eventually(async () => (await groupsLoaded()) >= groups, { what: 'the rules are read again' });
    assert.equal(await startOf('prometheus'), start);
  });

  test('follows the inventory: another port, and a host less', async () => {
    inventory('{ host: ant, port: 9191 }', ['ant']);
    const start = await startOf('grafana-server');
    const run = (await deployMonitoring()).succeeded();
    assert.deepEqual(run.changes, [
      'ant: change /etc/grafana/provisioning/datasources/p4.yaml',
      `ant: change ${folder}/targets.json`,
      `ant: change ${configPath}`,
      'ant: create /etc/systemd/system/prometheus.service.d/50-p4.conf',
      'ant: grafana-server.service: restart',
      'ant: prometheus.service: have systemd read unit files, restart',
    ]);
    assert.deepEqual(targetsIn(run), [{ host: 'ant', health: 'up', why: '' }]);
    assert.notEqual(await startOf('grafana-server'), start);
    const { activeTargets } = (await asked('targets?state=active', 9191)) as {
      readonly activeTargets: readonly { readonly labels: Readonly<Record<string, string>> }[];
    };
    const jobs = activeTargets.map(({ labels }) => `${String(labels['job'])} ${String(labels['host'])}`);
    assert.deepEqual(jobs.sort(), ['p4 ant', 'prometheus undefined']);
  });

  test('that another takes over from has what its packages brought, and no more', async () => {
    inventory('bee');
    const run = await asChecked();
    const taken = run.changes.filter((change) => change.startsWith('ant: '));
    assert.equal(taken.length, 1);
    assert.match(taken[0] ?? '', /^ant: take its monitoring away: \/etc\/prometheus\/prometheus\.yml, /);
    const look = `dpkg --verify prometheus; ls /etc/p4 /etc/systemd/system/prometheus.service.d 2>/dev/null
      find /etc/grafana -type f; systemctl is-active prometheus`;
    assert.equal(await ant.run(look), '/etc/p4:\nagent.json\npki\nactive\n');
  });

  test('whose operator wrote a configuration keeps it, and is told what to put into it', async () => {
    inventory('ant');
    const own = 'global: { scrape_interval: 5s }\n';
    await ant.putFile(configPath, own);
    const run = (await deployMonitoring()).succeeded();
    assert.equal((await ant.readFile(configPath)).toString('utf8'), own);
    const [work] = run.of('monitoring-by-hand');
    assert.equal(work?.['why'], `its ${configPath} is somebody's own and stays as it is`);
    const [, ...lines] = work['lines'] as readonly string[];
    const whole = `${own}${lines.join('\n')}\n`;
    await ant.putFile(configPath, whole);
    await ant.run('systemctl reload prometheus');
    const again = (await deployMonitoring()).succeeded();
    assert.deepEqual(again.of('monitoring-by-hand'), []);
    assert.deepEqual(again.changes, []);
    assert.deepEqual(targetsIn(again), up);
    (await desk.deploy('--remove', '--yes')).succeeded();
    assert.equal((await ant.readFile(configPath)).toString('utf8'), whole, 'it is no piece of p4');
    const look = `find / -xdev \\( -name 'p4*' -o -name '50-p4*' \\) -not -path '/proc/*' -not -path '/sys/*' -not -path '/var/log/*' -not -path '/usr/*' 2>/dev/null
      systemctl is-active prometheus`;
    assert.equal(await ant.run(look), 'active\n');
  });
});
