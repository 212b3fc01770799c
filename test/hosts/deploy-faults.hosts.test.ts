import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { hostName } from '../../protocol/ids.ts';
import { createCertificate } from '../../provisioner/certificate-signing.ts';
import { eventually } from '../fixture/eventually.ts';
import { OperatorDesk, type Deployed } from './operator-desk.ts';
import { TestHosts } from './test-hosts.ts';

const names = ['ant', 'bee'] as const;
const checkout = join(import.meta.dirname, '../../..');
const mib = 1024 ** 2;
const dayMs = 86_400_000;

suite('deploy to hosts that fail', () => {
  let fleet: TestHosts;
  let desk: OperatorDesk;
  let plan = '';

  const inventory = (ofBee = ''): string =>
    [
      `fleet: { user: ops, key: ${fleet.key}, become: sudo }`,
      'hosts:',
      `  ant: { address: ${fleet.host('ant').address('slow')} }`,
      `  bee: { address: ${fleet.host('bee').address('slow')}${ofBee} }`,
      '',
    ].join('\n');
  /** Fails unless just bee failed, in one way; what its error says. */
  const factsOfBee = (run: Deployed, code: string): Readonly<Record<string, unknown>> => {
    assert.deepEqual(run.failures, [`bee: ${code}`], `${run.end.out}\n${run.end.err}`);
    return run.of('host-failed')[0]?.['facts'] as Readonly<Record<string, unknown>>;
  };
  const agentStarts = (): Promise<readonly string[]> =>
    Promise.all(names.map((name) => fleet.host(name).run('systemctl show -p InvocationID --value p4-agent.service')));
  const assertNothingSwitched = async (): Promise<void> => {
    for (const name of names) {
      const look = 'ls /opt/p4/current /opt/p4/deploy.lock* /etc/p4 /etc/systemd/system/p4-*; getent passwd p4';
      assert.equal((await fleet.host(name).exec(look)).stdout, '', name);
    }
  };
  /** Replaces a program of the host by one that answers in its own way. */
  const shiftClock = (seconds: number): Promise<void> =>
    fleet
      .host('bee')
      .putFile(
        '/usr/local/bin/date',
        `#!/bin/sh\n[ "$*" = +%s ] && exec echo $(($(/usr/bin/date +%s) + ${seconds}))\nexec /usr/bin/date "$@"\n`,
        { mode: '755' },
      );
  /** Leaves so many bytes free on bee, where programs are. */
  const fillUp = (freeBytes: number): Promise<string> =>
    fleet.host('bee').run(`mkdir /opt/filling
      free=$(df -P -B 1 /opt | awk 'NR == 2 { print $4 }')
      fallocate -l $((free - ${freeBytes})) /opt/filling/most`);
  const infer = async (): Promise<string> => {
    const words = ['infer', plan, 'Once upon a time', '--max-tokens', '16', '--temperature', '0'];
    const { exit, out, err } = await desk.run(...words);
    assert.equal(exit, 0, err);
    return out;
  };

  before(async () => {
    fleet = await TestHosts.start({
      hosts: [{ name: 'ant' }, { name: 'bee', hasPolkit: true }],
      networks: [{ name: 'slow', rateMbit: 160, hasOperator: true }],
    });
    desk = new OperatorDesk();
    desk.write('inventory.yaml', inventory());
    plan = desk.write(
      'plan.yaml',
      [
        ...['ring: two', `model: ${join(checkout, 'plans/stories.gguf')}`, 'context: 512', 'sessions: 2'],
        ...['decode: exact', 'stages: [{ host: ant, layers: 0-3 }, { host: bee, layers: 4-7 }]', ''],
      ].join('\n'),
    );
  });
  after(async () => {
    desk.remove();
    await fleet.stop();
  });

  test('a host whose disk is full is told, with what it lacks; no host is switched until there is room', async () => {
    const bee = fleet.host('bee');
    await bee.mountSmall('/opt', 1024 * mib);
    await fillUp(mib);
    // Where no byte can be written any more, a folder still can be made.
    const rest =
      'cat /dev/zero >/opt/filling/rest; sync; count=0; while mkdir /opt/filling/$count; do count=$((count + 1)); done';
    await bee.exec(rest);
    const nothing = factsOfBee(await desk.deploy(), 'HOST_DISK_FULL');
    assert.equal(nothing['folder'], '/opt/p4');
    assert.ok(Number(nothing['freeBytes']) < mib && Number(nothing['neededBytes']) >= mib, JSON.stringify(nothing));
    await assertNothingSwitched();
    assert.equal(await bee.run('ls /opt'), 'filling\n', 'what was begun is gone');
    await bee.run('rm -r /opt/filling');
    await fillUp(20 * mib);
    const little = factsOfBee(await desk.deploy(), 'HOST_DISK_FULL');
    assert.equal(little['folder'], '/opt/p4');
    const [free, needed] = [Number(little['freeBytes']), Number(little['neededBytes'])];
    assert.ok(free > 10 * mib && free <= 20 * mib && needed > 100 * mib, JSON.stringify(little));
    await assertNothingSwitched();
    await bee.run('rm -r /opt/filling');
    (await desk.deploy()).succeeded();
    assert.deepEqual((await desk.deploy('--check')).succeeded().changes, []);
  });

  test('a host that is lost in the middle of an upload fails in time, and the next run goes on where it was', async (context) => {
    const bee = fleet.host('bee');
    await bee.run('rm -rf /opt/p4/objects /opt/p4/releases');
    const starts = await agentStarts();
    const running = desk.deploy();
    const arrived = 'find /opt/p4/incoming -type f -size +12M 2>/dev/null | grep -q .';
    await eventually(async () => (await bee.exec(arrived)).status === 0, {
      what: 'an upload is under way',
      withinMs: 60_000,
    });
    await bee.setLink('slow', 'down');
    const lostAt = performance.now();
    factsOfBee(await running, 'HOST_LOST');
    const lostMs = performance.now() - lostAt;
    assert.ok(lostMs < 35_000, `told after ${lostMs} ms`);
    await bee.setLink('slow', 'up');
    assert.deepEqual(await agentStarts(), starts);
    // Not lost, and not deployed to: nobody else is kept waiting.
    assert.equal((await fleet.host('ant').exec('ls /opt/p4/deploy.lock')).stdout, '');
    const resumed = (await desk.deploy()).succeeded();
    const [sent] = resumed.of('sent');
    const [sentBytes, totalBytes] = [Number(sent?.['sentBytes']), Number(sent?.['totalBytes'])];
    assert.ok(sentBytes > 0 && sentBytes <= totalBytes - 12 * mib, JSON.stringify(sent));
    assert.deepEqual(
      resumed.of('sent').map(({ host }) => host),
      ['bee'],
    );
    context.diagnostic(`lost after ${Math.round(lostMs / 1000)} s; resumed with ${sentBytes} of ${totalBytes} bytes`);
    assert.deepEqual((await desk.deploy('--check')).succeeded().changes, []);
  });

  test('a clock that certificates do not allow is told with the difference; less is a warning', async () => {
    const starts = await agentStarts();
    await shiftClock(-7200);
    assert.equal(factsOfBee(await desk.deploy(), 'HOST_CLOCK_WRONG')['off'], '120 minutes behind');
    await shiftClock(600);
    const warned = await desk.run('deploy', desk.inventory);
    assert.equal(warned.exit, 0, warned.out + warned.err);
    assert.match(warned.out, /bee +its clock is 10 minutes ahead/);
    await fleet.host('bee').run('rm /usr/local/bin/date');
    assert.deepEqual(await agentStarts(), starts);
  });

  test('a certificate that is not valid yet is named by every command, and deploy mends it', async () => {
    const pki = join(desk.folder, 'state/pki');
    const text = readFileSync(join(pki, 'authority.key'), 'utf8');
    const start = text.indexOf('-----BEGIN CERTIFICATE-----');
    const authority = { key: text.slice(0, start), certificate: text.slice(start) };
    const bee = fleet.host('bee');
    const holder = { role: 'agent', host: hostName('bee'), addresses: [bee.address('slow')] } as const;
    const early = await createCertificate(authority, holder, new Date(Date.now() + dayMs));
    await bee.run(`cat >/etc/p4/pki/agent.crt`, { input: early.certificate });
    await bee.run(`cat >/etc/p4/pki/agent.key`, { input: early.key });
    await bee.run('systemctl restart p4-agent');
    const status = await desk.run('status');
    assert.equal(status.exit, 3);
    assert.match(status.out, /bee +\S+ +CERTIFICATE_REFUSED/);
    assert.match(status.out, /CERT_NOT_YET_VALID/);
    const load = await desk.run('load', plan);
    assert.notEqual(load.exit, 0);
    assert.match(load.err, /CERTIFICATE_REFUSED[^]*bee[^]*CERT_NOT_YET_VALID/);
    const mended = (await desk.deploy()).succeeded();
    assert.ok(
      mended.changes.some((change) => change.includes('/etc/p4/pki/agent.crt')),
      mended.end.out,
    );
    assert.equal((await desk.run('status')).exit, 0);
  });

  test('a host that reboots under a ring has empty nodes; the command that status prints replays the load', async () => {
    const loaded = await desk.run('load', plan);
    assert.equal(loaded.exit, 0, loaded.err);
    const before = await infer();
    await fleet.host('bee').reboot();
    await eventually(async () => /bee +\S+ +up/.test((await desk.run('status')).out), {
      what: 'the agent of bee answers',
      withinMs: 30_000,
    });
    const status = await desk.run('status');
    assert.equal(status.exit, 3);
    assert.match(status.out, /1 +bee +4-7 +empty/);
    const [, words = ''] = /npm run (load -- .*)$/m.exec(status.out) ?? [];
    assert.equal(words, `load -- ${plan} --state ${join(desk.folder, 'state')}`, status.out);
    const replayed = await desk.run(...words.split(' ').filter((word) => word !== '--'));
    assert.equal(replayed.exit, 0, replayed.err);
    assert.match(replayed.out, /was lost, and is ready again/);
    const well = await desk.run('status');
    assert.equal(well.exit, 0, well.out);
    assert.doesNotMatch(well.out, /npm run load/);
    assert.equal(await infer(), before);
    assert.equal((await desk.run('unload', plan)).exit, 0);
  });

  test('removal takes no folder that is somebody else’s, and then nothing from any host', async () => {
    const bee = fleet.host('bee');
    await bee.putFile('/srv/photos/summer', 'a picture');
    desk.write('inventory.yaml', inventory(', variables: { stateFolder: /srv/photos }'));
    const starts = await agentStarts();
    for (const options of [
      ['--remove', '--check'],
      ['--remove', '--yes'],
    ]) {
      const refused = factsOfBee(await desk.deploy(...options), 'STATE_FOLDER_FOREIGN');
      assert.deepEqual([refused['folder'], refused['owner']], ['/srv/photos', 'root']);
    }
    assert.deepEqual(await agentStarts(), starts);
    desk.write('inventory.yaml', inventory());
    (await desk.deploy('--remove', '--yes')).succeeded();
    for (const name of names) assert.equal((await fleet.host(name).exec('ls -d /opt/p4 /var/lib/p4')).stdout, '', name);
    assert.equal((await bee.readFile('/srv/photos/summer')).toString(), 'a picture');
  });
});
