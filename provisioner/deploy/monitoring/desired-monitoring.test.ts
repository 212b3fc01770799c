import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';

import { hostName } from '../../../protocol/ids.ts';
import { actualScript, parseActual, type ActualState } from '../actual.ts';
import { applyScript } from '../apply.ts';
import { changesOf, type Change } from '../difference.ts';
import type { FileResource, Resource } from '../resource.ts';
import { monitoringResources, type DesiredMonitoring } from './desired-monitoring.ts';
import { parseMonitoringFacts } from './monitoring-facts.ts';
import { readMonitoringFiles } from './monitoring-files.ts';
import { configMark } from './monitoring-layout.ts';
import { bareFacts, changedFacts, packagedFacts } from './recorded-facts.ts';

const ant = hostName('ant');
const desire = (facts: string, more: Partial<DesiredMonitoring> = {}): readonly Resource[] =>
  monitoringResources({
    ...{ facts: parseMonitoringFacts(ant, facts), port: 9090, files: readMonitoringFiles(), targets: [] },
    ...{ identity: { authority: 'A', certificate: 'C', key: 'K' } },
    ...more,
  });
const fileAt = (resources: readonly Resource[], path: string): FileResource => {
  const found = resources.find((resource) => resource.kind === 'file' && resource.path === path);
  assert.ok(found?.kind === 'file', path);
  return found;
};
const textAt = (resources: readonly Resource[], path: string): string => {
  const { content } = fileAt(resources, path);
  return content.kind === 'bytes' ? Buffer.from(content.bytes).toString('utf8') : content.why;
};
/** A host that has none of it. */
const bareHost = (resources: readonly Resource[], unit = ''): ActualState => {
  const lines = resources.flatMap((resource, index) =>
    resource.kind === 'package'
      ? [`package\t${resource.name}\t${unit === '' ? '' : 'installed'}`]
      : resource.kind === 'unit'
        ? [`unit\t${resource.name}\t${unit === '' ? 'not-found\t\tinactive\tno\t0\t0' : unit}`]
        : [`path\t${String(index)}\tabsent`],
  );
  return parseActual(ant, resources, `${lines.join('\n')}\nend\n`);
};
const changesOn = (resources: readonly Resource[], actual: ActualState): readonly Change[] =>
  changesOf({ desired: resources, actual, release: 'whole', phaseOf: () => 'monitoring' });

test('the configuration is ours by its first line, scrapes the fleet, and asks an exporter only where there is one', () => {
  const path = '/etc/prometheus/prometheus.yml';
  const jobs = (text: string): readonly string[] =>
    (parse(text) as { scrape_configs: readonly { job_name: string }[] }).scrape_configs.map((job) => job.job_name);
  const plain = textAt(desire(packagedFacts), path);
  assert.ok(plain.startsWith(configMark));
  assert.match(plain, /^[^\n]*\nglobal:/);
  assert.deepEqual(jobs(plain), ['p4', 'prometheus']);
  const exporting = desire(changedFacts(packagedFacts, { 'node-exporter': 'present' }), { port: 9191 });
  assert.deepEqual(jobs(textAt(exporting, path)), ['p4', 'prometheus', 'node']);
  assert.match(textAt(exporting, path), /localhost:9191/);
  assert.match(textAt(exporting, '/etc/grafana/provisioning/datasources/p4.yaml'), /url: http:\/\/127\.0\.0\.1:9191/);
});

test('the key is never shown, and is read by the group of Prometheus alone, or by root where there is none', () => {
  const key = (facts: string): FileResource => fileAt(desire(facts), '/etc/p4/prometheus/monitor.key');
  const rights = ({ mode, owner }: FileResource): readonly unknown[] => [mode, owner.group];
  assert.deepEqual(rights(key(packagedFacts)), [0o640, 'prometheus']);
  assert.deepEqual(rights(key(bareFacts)), [0o640, 'prometheus'], 'the package brings the group');
  const foreign = changedFacts(bareFacts, { unit: 'present' });
  assert.deepEqual(rights(key(foreign)), [0o600, 'root']);
  assert.deepEqual(rights(key(changedFacts(foreign, { group: 'present' }))), [0o640, 'prometheus']);
  const secrets = desire(packagedFacts).flatMap((resource) =>
    resource.kind === 'file' && resource.content.kind === 'bytes' && resource.content.isSecret ? [resource.path] : [],
  );
  assert.deepEqual(secrets, ['/etc/p4/prometheus/monitor.key']);
});

test('somebody’s own configuration, and a Prometheus that is not the package, are not touched', () => {
  const paths = (facts: string): readonly string[] =>
    desire(facts).flatMap((resource) => (resource.kind === 'file' ? [resource.path] : []));
  const own = changedFacts(packagedFacts, { config: 'own' });
  assert.ok(!paths(own).includes('/etc/prometheus/prometheus.yml'));
  const foreign = desire(changedFacts(bareFacts, { unit: 'present' }));
  assert.ok(foreign.every(({ kind }) => kind !== 'package' && kind !== 'unit'));
  assert.ok(paths(changedFacts(bareFacts, { unit: 'present' })).every((path) => path.startsWith('/etc/p4/')));
});

test('rules of an earlier release go, because Prometheus reads all that are there', () => {
  const resources = desire(changedFacts(packagedFacts, { file: '/etc/p4/prometheus/rules/former.yml' }));
  const gone = resources.flatMap((resource) => (resource.kind === 'absent' ? [resource.path] : []));
  assert.ok(gone.includes('/etc/p4/prometheus/rules/former.yml'));
});

test('a Prometheus that was installed in this run is restarted: it began without what it shall read', () => {
  const resources = desire(bareFacts);
  const changes = changesOn(resources, bareHost(resources));
  assert.equal(changes[0]?.text, 'install the package prometheus');
  assert.equal(changes.at(-1)?.text, 'prometheus.service: have systemd read unit files, enable, restart');
});

test('changed rules are read without a restart, changed targets without a word, and nobody else’s unit is started', () => {
  const resources = desire(packagedFacts);
  const unitSteps = (unit: string, changed: readonly string[]): readonly string[] => {
    const bare = bareHost(resources, unit);
    const paths = new Map(bare.paths);
    for (const resource of resources) {
      if (resource.kind !== 'file' || changed.includes(resource.path) || resource.content.kind !== 'bytes') continue;
      const { mode, owner, content, path } = resource;
      const sha256 = execFileSync('sha256sum', { input: content.bytes, encoding: 'utf8' }).slice(0, 64);
      paths.set(path, { kind: 'file', mode, uid: 0, gid: 0, ...owner, sha256, changedAt: 500, text: null });
    }
    return changesOn(resources, { ...bare, paths }).flatMap(({ resource, text }) =>
      resource.kind === 'unit' ? [text] : [],
    );
  };
  const [rule, targets] = ['/etc/p4/prometheus/rules/ring.yml', '/etc/p4/prometheus/targets.json'];
  const running = 'loaded\tenabled\tactive\tno\t1000\t0';
  assert.deepEqual(unitSteps(running, []), []);
  assert.deepEqual(unitSteps(running, [targets, '/etc/p4/prometheus/monitor.crt']), []);
  assert.deepEqual(unitSteps(running, [rule]), ['prometheus.service: have it read its configuration']);
  const cutOff = 'loaded\tenabled\tactive\tno\t400\t450';
  assert.deepEqual(unitSteps(cutOff, []), [
    'prometheus.service: have it read its configuration',
    'grafana-server.service: restart',
  ]);
  assert.deepEqual(unitSteps('loaded\tenabled\tactive\tno\t400\t500', [])[0], 'grafana-server.service: restart');
  assert.deepEqual(unitSteps('loaded\tdisabled\tinactive\tno\t0\t0', []), ['prometheus.service: enable, start']);
});

test('of a file that ours replaces a copy is kept; of ours, none', () => {
  const folder = mkdtempSync(join(tmpdir(), 'p4-replaced-'));
  try {
    mkdirSync(join(folder, 'kept'));
    const [path, keptAt] = [join(folder, 'prometheus.yml'), join(folder, 'kept/package')];
    const owner = ((): FileResource['owner'] => {
      const [user = '', group = ''] = execFileSync('sh', ['-c', 'id -un; id -gn'], { encoding: 'utf8' }).split('\n');
      return { user, group };
    })();
    const write = (text: string): void => {
      const resources: readonly FileResource[] = [
        {
          ...{ kind: 'file', path, mode: 0o644, owner, replaced: { keptAt, ownMark: configMark } },
          content: { kind: 'bytes', bytes: Buffer.from(`${configMark}\n${text}`), isSecret: false },
        },
      ];
      const seen = execFileSync('sh', ['-c', actualScript(resources)], { encoding: 'utf8' });
      const { script, input } = applyScript(changesOn(resources, parseActual(ant, resources, seen)));
      execFileSync('sh', ['-c', script], { input });
    };
    writeFileSync(path, 'from the package');
    write('one');
    write('two');
    assert.equal(readFileSync(keptAt, 'utf8'), 'from the package');
    assert.equal(readFileSync(path, 'utf8'), `${configMark}\ntwo`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
