import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { hostName } from '../../protocol/ids.ts';
import { actualScript, parseActual, type ActualState } from './actual.ts';
import { applyScript } from './apply.ts';
import { changesOf, type Change } from './difference.ts';
import { agentPhaseOf } from './phase.ts';
import type { FileResource, Ownership, Resource } from './resource.ts';

const folder = mkdtempSync(join(tmpdir(), 'p4-difference-'));
after(() => {
  rmSync(folder, { recursive: true, force: true });
});

const host = hostName('ant');
const me: Ownership = {
  user: userInfo().username,
  group: execFileSync('id', ['-gn'], { encoding: 'utf8' }).trim(),
};
const file = (name: string, text: string, isSecret = false): FileResource => ({
  ...{ kind: 'file', path: join(folder, name), mode: 0o640, owner: me },
  content: { kind: 'bytes', bytes: Buffer.from(text), isSecret },
});
const desired: readonly Resource[] = [
  { kind: 'folder', path: join(folder, 'a folder'), mode: 0o750, owner: me, isOwnedThroughout: true },
  file('a folder/text', 'one\ntwo\n'),
  file('a folder/key', 'secret', true),
  { kind: 'absent', path: join(folder, 'old') },
  { kind: 'link', path: join(folder, 'link'), target: 'a folder' },
];

const look = (): ActualState =>
  parseActual(host, desired, execFileSync('sh', ['-c', actualScript(desired)], { encoding: 'utf8' }));
const changes = (): readonly Change[] =>
  changesOf({ desired, actual: look(), release: 'whole', phaseOf: agentPhaseOf });
const texts = (): readonly string[] => changes().map(({ text }) => text.replaceAll(`${folder}/`, ''));

function apply(): void {
  const { script, input } = applyScript(changes());
  execFileSync('sh', ['-c', script], { input });
}

test('what is not there is made; then nothing is to be done', () => {
  writeFileSync(join(folder, 'old'), '');
  assert.deepEqual(texts(), [
    'create folder a folder',
    'create a folder/text',
    'create a folder/key',
    'delete old',
    'link link: a folder',
  ]);
  apply();
  assert.deepEqual(texts(), []);
  assert.equal(readFileSync(join(folder, 'link/text'), 'utf8'), 'one\ntwo\n');
  assert.equal(statSync(join(folder, 'a folder/key')).mode & 0o777, 0o640);
  assert.ok(!existsSync(join(folder, 'old')) && !existsSync(join(folder, 'a folder/text.p4-new')));
});

test('each kind of drift is told as what it is, and mended', () => {
  writeFileSync(join(folder, 'a folder/text'), 'one\nthree\n');
  writeFileSync(join(folder, 'a folder/key'), 'other');
  chmodSync(join(folder, 'a folder'), 0o777);
  execFileSync('ln', ['-sfn', '/nowhere', join(folder, 'link')]);
  assert.deepEqual(texts(), [
    'a folder: mode 0777 -> 0750',
    'change a folder/text',
    'change a folder/key',
    'link link: /nowhere -> a folder',
  ]);
  const [, text, key] = changes();
  assert.match(text?.difference ?? '', /^-three\n\+two$/m);
  assert.equal(key?.difference, null, 'a secret is never shown');
  apply();
  chmodSync(join(folder, 'a folder/text'), 0o600);
  assert.deepEqual(texts(), ['a folder/text: mode 0600 -> 0640']);
  apply();
  assert.deepEqual(texts(), []);
});

test('a user that comes back gets the number its files still have', () => {
  const p4: Ownership = { user: 'p4', group: 'p4' };
  const resources: readonly Resource[] = [
    { kind: 'group', name: 'p4' },
    { kind: 'user', name: 'p4', group: 'p4', shell: '/usr/sbin/nologin' },
    { kind: 'folder', path: '/var/lib/p4', mode: 0o700, owner: p4, isOwnedThroughout: true },
  ];
  const text = 'group\tp4\nuser\tp4\npath\t2\tfolder\t700\t991\t990\tUNKNOWN\tUNKNOWN\tno\tfull\nend\n';
  const actual = parseActual(host, resources, text);
  const found = changesOf({ desired: resources, actual, release: 'whole', phaseOf: agentPhaseOf });
  assert.deepEqual(
    found.map(({ action }) => action),
    [
      { kind: 'create-group', gid: 990 },
      { kind: 'create-user', uid: 991 },
    ],
  );
  assert.match(applyScript(found).script, /useradd .* --uid 991 /);
});

test('a unit is restarted only for what its process reads at its start', () => {
  const units: readonly Resource[] = [
    { kind: 'release', id: 'abc' },
    { kind: 'link', path: '/opt/p4/current', target: 'releases/abc' },
    {
      ...{ kind: 'unit', name: 'p4-agent.service', activity: 'runs' },
      ...{ readsAtStart: ['/opt/p4/current', 'abc'], rereads: null },
    },
  ];
  const stepsAt = (link: string, unit: string, release: 'whole' | 'damaged' = 'whole'): readonly string[] => {
    const actual = parseActual(host, units, `path\t1\tlink\t${link}\nunit\tp4-agent.service\t${unit}\nend\n`);
    const last = changesOf({ desired: units, actual, release, phaseOf: agentPhaseOf }).at(-1)?.action;
    return last?.kind === 'unit' ? last.steps : [];
  };
  const running = 'loaded\tenabled\tactive\tno\t1000';
  assert.deepEqual(stepsAt('releases/abc\t900', running), []);
  assert.deepEqual(stepsAt('releases/old\t900', running), ['restart']);
  assert.deepEqual(stepsAt('releases/abc\t1100', running), ['restart'], 'switched since, by a run that was cut off');
  assert.deepEqual(stepsAt('releases/abc\t900', running, 'damaged'), ['restart']);
  assert.deepEqual(stepsAt('releases/old\t900', 'loaded\tdisabled\tfailed\tyes\t0'), ['reload', 'enable', 'start']);
});

test('an answer that is cut off is refused', () => {
  assert.throws(() => parseActual(host, desired, 'path\t0\tabsent\n'), /HOST_FACTS_UNREADABLE/);
});
