import assert from 'node:assert/strict';
import { test } from 'node:test';

import { checkAgentConfig } from '../../protocol/agent-config-schema.ts';
import { limits } from '../../protocol/limits.ts';
import { present } from '../../protocol/assert.ts';
import { hostLayout } from '../host-layout.ts';
import { stageSupervision, startedUnits, unitFiles, unitFolders, type UnitOptions } from './unit-files.ts';

const options: UnitOptions = {
  stateFolder: '/var/lib/p4',
  cpus: null,
  gpus: { kind: 'all' },
  hasGpus: false,
  ports: { agent: 7400, metrics: 7401 },
  privileges: 'polkit',
};

const textOf = (end: string, changes: Partial<UnitOptions> = {}): string =>
  present(
    unitFiles({ ...options, ...changes }).find(({ path }) => path.endsWith(end)),
    end,
  ).text;

const agentDropIn = '/p4-agent.service.d/50-host.conf';
const stageDropIn = '/p4-stage@.service.d/50-host.conf';

test('every file is root’s, and only scripts may be run', () => {
  for (const privileges of ['polkit', 'request-folder'] as const) {
    const files = unitFiles({ ...options, privileges });
    assert.equal(new Set(files.map(({ path }) => path)).size, files.length);
    for (const { path, text, mode, owner, group } of files) {
      assert.deepEqual([owner, group], ['root', 'root']);
      assert.equal(mode, text.startsWith('#!') ? 0o755 : 0o644, path);
      assert.ok(text.endsWith('\n'));
    }
  }
});

test('a host has one way to start stages, not both', () => {
  const paths = (privileges: UnitOptions['privileges']): readonly string[] =>
    unitFiles({ ...options, privileges }).map(({ path }) => path);
  assert.ok(paths('polkit').includes(hostLayout.polkitRules));
  assert.equal(
    paths('polkit').some((path) => path.includes('request')),
    false,
  );
  assert.equal(paths('request-folder').includes(hostLayout.polkitRules), false);
  assert.equal(paths('request-folder').filter((path) => path.includes('stage-request')).length, 3);
  assert.deepEqual(startedUnits('request-folder'), ['p4-stage-request.path', 'p4-agent.service']);
  assert.deepEqual(startedUnits('polkit'), ['p4-agent.service']);
});

test('an agent’s configuration names what the units have', () => {
  for (const privileges of ['polkit', 'request-folder'] as const) {
    const supervision = stageSupervision(privileges);
    const config = {
      host: 'ant',
      listen: [{ address: '10.0.0.1', port: 7400 }],
      stateFolder: '/var/lib/p4',
      slicesFolder: '/var/lib/p4/slices',
      pki: { authority: '/a', certificate: '/b', key: '/c' },
      journalLimitBytes: limits.journalLeastBytes,
      endsWithInput: false,
      ...supervision,
    };
    assert.ok(checkAgentConfig(config), JSON.stringify(checkAgentConfig.errors));
    assert.ok(textOf('/p4-stage@.service').includes(`ReadWritePaths=${supervision.runtimeFolder}/%i\n`));
  }
  const request = stageSupervision('request-folder');
  assert.ok(request.stages === 'systemd' && request.stageUnits.privileges.kind === 'request-folder');
  const { folder } = request.stageUnits.privileges;
  const path = textOf('/p4-stage-request.path', { privileges: 'request-folder' });
  assert.ok(path.includes(`DirectoryNotEmpty=${folder}\n`));
});

test('agent and stage have the host’s CPUs', () => {
  const cpus = [
    { first: 0, last: 3 },
    { first: 8, last: 8 },
  ];
  for (const end of [agentDropIn, stageDropIn]) {
    assert.match(textOf(end, { cpus }), /^CPUAffinity=0-3,8\nAllowedCPUs=0-3,8$/m);
    assert.doesNotMatch(textOf(end), /CPU/);
  }
});

test('the agent may write its state folder and listen at its ports, wherever they are', () => {
  assert.match(textOf(agentDropIn), /^StateDirectory=p4$/m);
  assert.match(textOf(agentDropIn, { stateFolder: '/srv/p4' }), /^ReadWritePaths=\/srv\/p4$/m);
  assert.doesNotMatch(textOf(agentDropIn), /ProtectHome/);
  assert.match(textOf(agentDropIn, { stateFolder: '/home/ops/p4' }), /^ProtectHome=read-only$/m);
  assert.match(textOf(agentDropIn, { ports: { agent: 1, metrics: 2 } }), /=tcp:1\nSocketBindAllow=tcp:2$/m);
});

test('a stage sees the slices, and of the rest of the state folder nothing', () => {
  const text = textOf(stageDropIn, { stateFolder: '/srv/p4' });
  assert.match(text, /^TemporaryFileSystem=\/srv\/p4:ro\nBindReadOnlyPaths=-\/srv\/p4\/slices$/m);
});

test('an agent opens them, too, where stages may: its metrics tell of GPUs', () => {
  assert.doesNotMatch(textOf(agentDropIn), /nvidia/);
  assert.match(
    textOf(agentDropIn, { hasGpus: true }),
    /^PrivateDevices=no\nDevicePolicy=closed\nDeviceAllow=char-nvidia\* rw$/m,
  );
  assert.doesNotMatch(textOf(agentDropIn, { hasGpus: true, gpus: { kind: 'these', indexes: [] } }), /nvidia/);
});

test('a stage opens devices of GPUs where it may use them, else none', () => {
  assert.match(textOf(stageDropIn), /^PrivateDevices=yes\nDevicePolicy=closed$/m);
  const all = textOf(stageDropIn, { hasGpus: true });
  assert.match(all, /^DeviceAllow=char-nvidia\* rw$/m);
  assert.doesNotMatch(all, /PrivateDevices=yes/);
  const none = textOf(stageDropIn, { hasGpus: true, gpus: { kind: 'these', indexes: [] } });
  assert.doesNotMatch(none, /DeviceAllow/);
});

test('no core is dumped, and stages do not hang on their agent', () => {
  for (const end of ['/p4-agent.service', '/p4-stage@.service']) assert.match(textOf(end), /^LimitCORE=0$/m);
  assert.doesNotMatch(textOf('/p4-stage@.service'), /^(BindsTo|PartOf|Requires)=/m);
  assert.match(textOf('/p4-stage@.service'), new RegExp(`^TimeoutStopSec=${limits.stageStopMs / 1000}$`, 'm'));
});

test('whoever removes the files knows the folders that hold nothing else', () => {
  const own = unitFiles({ ...options, privileges: 'request-folder' }).map(({ path }) => path);
  for (const folder of unitFolders) assert.ok(own.some((path) => path.startsWith(`${folder}/`)));
});
