import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { eventually } from '../fixture/eventually.ts';
import { attempt, run, type CommandOutcome } from './command.ts';
import { TestHosts, removeAbandonedFleets } from './test-hosts.ts';
import type { TestHost } from './test-host.ts';

const names = ['ant', 'bee', 'cat'] as const;
const slowMbit = 40;

/** What is in the machine of the fleets that process `pid` started, and runs in the networks of their hosts. */
async function traces(pid: number, networks: ReadonlySet<string>): Promise<readonly string[]> {
  const isOurs = (line: string): boolean => line.includes(`p4-hosts-${pid}-`);
  const groups = await run(['find', '/sys/fs/cgroup', '-maxdepth', '4', '-name', 'p4-hosts-*']);
  return [
    ...readdirSync(tmpdir()).filter(isOurs),
    ...groups.split('\n').filter(isOurs),
    ...readFileSync('/proc/self/mountinfo', 'utf8').split('\n').filter(isOurs),
    ...(await run(['losetup', '--all'])).split('\n').filter(isOurs),
    ...processes(networks),
  ];
}

/** Interfaces that fleets give the operator. */
const operatorDevices = (): readonly string[] =>
  readdirSync('/sys/class/net').filter((name) => /^p4[0-9a-f]{6}n\d+$/.test(name));

/** Processes in some network namespaces, and those that this process has started. */
function processes(networks: ReadonlySet<string>): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').join(' ').trim();
        const isChild = readFileSync(`/proc/${pid}/status`, 'utf8').includes(`\nPPid:\t${process.pid}\n`);
        const isInside = networks.has(readlinkSync(`/proc/${pid}/ns/net`));
        return isChild || isInside ? [`${pid} ${command}`] : [];
      } catch {
        return [];
      }
    });
}

suite('test hosts', () => {
  let fleet: TestHosts;
  let bootMs = 0;
  const networks = new Set<string>();
  const networkOf = 'readlink /proc/self/ns/net | tr -d "\\n"';

  before(async () => {
    const startedAtMs = performance.now();
    fleet = await TestHosts.start({
      hosts: [
        { name: 'ant', sudo: 'nopasswd' },
        { name: 'bee', sudo: 'password' },
        { name: 'cat', sudo: 'none', hasPolkit: true },
      ],
      networks: [
        { name: 'slow', rateMbit: slowMbit, hasOperator: true },
        { name: 'fast', families: ['ipv6'] },
        { name: 'jumbo', mtu: 9000, carriedMtu: 1500 },
        { name: 'bare', families: [] },
      ],
    });
    bootMs = performance.now() - startedAtMs - fleet.imagesMadeInMs;
  });
  after(async () => {
    await fleet.stop();
  });

  interface Login {
    readonly user: 'ops' | 'root';
    readonly script: string;
    readonly key?: string;
  }

  function ssh(host: TestHost, { user, script, key = fleet.key }: Login): Promise<CommandOutcome> {
    const knownHosts = join(fleet.folder, 'known_hosts');
    writeFileSync(knownHosts, fleet.knownHosts());
    const options = [
      'BatchMode=yes',
      'StrictHostKeyChecking=yes',
      `UserKnownHostsFile=${knownHosts}`,
      'ConnectTimeout=5',
    ];
    const words = options.flatMap((option) => ['-o', option]);
    return attempt(['ssh', '-F', 'none', '-i', key, ...words, `${user}@${host.address('slow')}`, script]);
  }
  const said = async (host: TestHost, login: Login): Promise<string> =>
    (await ssh(host, login)).stdout.toString('utf8').trim();

  test('are three machines of their own', async (t) => {
    t.diagnostic(`base images made in ${seconds(fleet.imagesMadeInMs)}, 3 hosts booted in ${seconds(bootMs)}`);
    const ids = new Set<string>();
    for (const name of names) {
      const host = fleet.host(name);
      assert.equal(await host.run('hostname'), `${name}\n`);
      assert.equal(await host.run('cat /proc/1/comm'), 'systemd\n');
      assert.equal((await host.run('ls /sys/class/net')).includes('eth0'), false);
      ids.add(await host.run('cat /etc/machine-id'));
      ids.add(host.hostKey);
      networks.add(await host.run(networkOf));
    }
    assert.equal(ids.size, 6);
    assert.equal(networks.size, 3);
  });

  test('restart a unit without waiting for, or ending, one of the same name on a neighbour', async () => {
    const [ant, bee] = [fleet.host('ant'), fleet.host('bee')];
    const mainPid = 'systemctl show --property MainPID ssh';
    const [former, neighbour] = [await ant.run(mainPid), await bee.run(mainPid)];
    // Waiting for the neighbour's would take the 90 s that systemd gives a unit to stop.
    await ant.run('systemctl restart ssh', { timeoutMs: 30_000 });
    assert.notEqual(await ant.run(mainPid), former);
    assert.equal(await bee.run(mainPid), neighbour);
  });

  test('let ops and root in by key, and nobody by another', async () => {
    for (const name of names) assert.equal(await said(fleet.host(name), { user: 'ops', script: 'id -un' }), 'ops');
    assert.equal(await said(fleet.host('ant'), { user: 'root', script: 'id -un' }), 'root');
    const { path: key, passphrase } = fleet.encryptedKey;
    assert.equal((await ssh(fleet.host('ant'), { user: 'ops', script: 'true', key })).status, 255);
    await run(['ssh-keygen', '-y', '-P', passphrase, '-f', key]);
  });

  test('give ops the rights that were asked for', async () => {
    const become = { user: 'ops', script: 'sudo -n id -un' } as const;
    assert.equal(await said(fleet.host('ant'), become), 'root');
    assert.match((await ssh(fleet.host('bee'), become)).stderr, /password is required/);
    const script = `printf '%s\\n' '${fleet.opsPassword}' | sudo -S -p '' id -un`;
    assert.equal(await said(fleet.host('bee'), { user: 'ops', script }), 'root');
    assert.notEqual((await ssh(fleet.host('cat'), { user: 'ops', script })).status, 0);
  });

  test('have polkit where it was asked for, and only there', async () => {
    assert.equal(await fleet.host('cat').run('systemctl start polkit && systemctl is-active polkit'), 'active\n');
    assert.notEqual((await fleet.host('ant').exec('command -v pkcheck')).status, 0);
  });

  test('show another key after it was changed', async () => {
    const cat = fleet.host('cat');
    const stale = fleet.knownHosts();
    await cat.changeHostKey();
    assert.ok(!stale.includes(cat.hostKey));
    assert.equal(await said(cat, { user: 'ops', script: 'hostname' }), 'cat');
  });

  test('reach each other in every network, except at the address that all of them have', async () => {
    const ant = fleet.host('ant');
    for (const name of ['bee', 'cat']) {
      for (const network of ['slow', 'fast', 'jumbo']) {
        await ant.run(`ping -c 1 -W 2 ${fleet.host(name).address(network)}`);
      }
    }
    for (const name of names) {
      assert.match(await fleet.host(name).run('ip -o -4 addr show docker0'), /172\.17\.0\.1\/16/);
      assert.match(await fleet.host(name).run('cat /sys/class/net/docker0/operstate'), /up/);
      assert.match(await fleet.host(name).run('ip -o addr show dev bare'), /^\S+ bare\s+inet6 fe80:[^\n]*\n$/);
    }
  });

  test('have a slow and a fast network', async (t) => {
    const slow = await rateMbit({ from: fleet.host('ant'), to: fleet.host('bee'), network: 'slow', bytes: 8_000_000 });
    const fast = await rateMbit({
      from: fleet.host('ant'),
      to: fleet.host('bee'),
      network: 'fast',
      bytes: 400_000_000,
    });
    t.diagnostic(`slow: ${slow.toFixed(1)} of ${slowMbit} Mbit/s, fast: ${fast.toFixed(0)} Mbit/s`);
    // A busy machine may give less than a network carries, never more.
    assert.ok(slow > slowMbit * 0.1 && slow < slowMbit * 1.1, `${slow} Mbit/s`);
    assert.ok(fast > slowMbit * 3, `${fast} Mbit/s`);
  });

  test('lose frames that a network does not carry, without a word', async () => {
    const [ant, bee] = [fleet.host('ant'), fleet.host('bee')];
    const address = bee.address('jumbo');
    assert.match(await ant.run('cat /sys/class/net/jumbo/mtu'), /9000/);
    await ant.run(`ping -c 1 -W 2 -M do -s 1000 ${address}`);
    assert.equal((await ant.exec(`ping -c 1 -W 1 -M do -s 4000 ${address}`)).status, 1);
    const stalled = rateMbit({ from: ant, to: bee, network: 'jumbo', bytes: 1_000_000, seconds: 2 });
    await assert.rejects(stalled, /exit status 124/);
  });

  test('lose a link and get it back, with its addresses', async () => {
    const [ant, bee] = [fleet.host('ant'), fleet.host('bee')];
    const ping = `ping -c 1 -W 1 ${bee.address('fast')}`;
    const former = await bee.run('ip -o addr show dev fast');
    await bee.setLink('fast', 'down');
    assert.match(await bee.run('ip link show fast'), /NO-CARRIER/);
    assert.notEqual((await ant.exec(ping)).status, 0);
    assert.equal((await ant.exec(`ping -c 1 -W 1 ${bee.address('slow')}`)).status, 0);
    await bee.setLink('fast', 'up');
    await eventually(async () => (await ant.exec(ping)).status === 0, { what: 'bee answers again' });
    assert.match(former, /inet6 fd/);
    assert.equal(await bee.run('ip -o addr show dev fast'), former);
  });

  test('take firewall rules from outside', async () => {
    const [ant, bee] = [fleet.host('ant'), fleet.host('bee')];
    const rule = ['INPUT', '--source', ant.address('slow'), '--jump', 'DROP'];
    await bee.inNetwork(['iptables', '--append', ...rule]);
    assert.notEqual((await ant.exec(`ping -c 1 -W 1 ${bee.address('slow')}`)).status, 0);
    await bee.inNetwork(['iptables', '--delete', ...rule]);
    await ant.run(`ping -c 1 -W 1 ${bee.address('slow')}`);
  });

  test('take and give files', async () => {
    const ant = fleet.host('ant');
    const bytes = Buffer.from([0, 255, 10, 13, 0]);
    await ant.putFile("/srv/a/b it's", bytes, { mode: '640', owner: 'ops' });
    assert.deepEqual(await ant.readFile("/srv/a/b it's"), bytes);
    assert.equal(await ant.run("stat -c '%a %U %G' \"/srv/a/b it's\""), '640 ops root\n');
    await assert.rejects(ant.readFile('/srv/none'), /No such file/);
  });

  test('have small disks that fill up, and stay over a reboot with all else', async (t) => {
    const bee = fleet.host('bee');
    await bee.run('install -d -o ops -m 750 /var/lib/small');
    await bee.mountSmall('/var/lib/small', 8 * 1024 ** 2);
    const full = await bee.exec('echo kept > /var/lib/small/word; head -c 20000000 /dev/zero > /var/lib/small/rest');
    assert.match(full.stderr, /No space left/);
    const facts =
      "hostname; ip -o addr | grep -v tentative | cut -d' ' -f2-7; cat /var/lib/small/word; stat -c '%U %a' /var/lib/small";
    const former = await bee.run(facts);
    const bootId = 'cat /proc/sys/kernel/random/boot_id';
    const formerBoot = await bee.run(bootId);
    const startedAtMs = performance.now();
    await bee.reboot();
    t.diagnostic(`a reboot took ${seconds(performance.now() - startedAtMs)}`);
    assert.notEqual(await bee.run(bootId), formerBoot);
    assert.equal(await bee.run(facts), former);
    assert.match(former, /kept\nops 750\n$/);
    assert.match(await bee.run('findmnt -no FSTYPE /var/lib/small'), /ext4/);
  });

  test('reboot by themselves, can be switched off and lose power', async () => {
    const [ant, cat] = [fleet.host('ant'), fleet.host('cat')];
    const rebooted = ant.awaitReboot();
    await ssh(ant, { user: 'ops', script: 'sudo -n systemctl reboot' });
    await rebooted;
    assert.equal(await said(ant, { user: 'ops', script: 'hostname' }), 'ant');
    for (const end of [(): Promise<void> => cat.powerOff(), (): Promise<void> => cat.cutPower()]) {
      await end();
      assert.equal((await ssh(cat, { user: 'ops', script: 'true' })).status, 255);
      await cat.boot();
      assert.equal(await said(cat, { user: 'ops', script: 'hostname' }), 'cat');
    }
  });

  test('do not meet another fleet, which ends with its process', async () => {
    const former = operatorDevices();
    const script = `
      import { TestHosts } from ${JSON.stringify(join(import.meta.dirname, 'test-hosts.js'))};
      const networks = [{ name: 'slow', hasOperator: true }];
      const fleet = await TestHosts.start({ hosts: [{ name: 'ant' }], networks });
      const ant = fleet.host('ant');
      await ant.mountSmall('/srv', 1024 ** 2);
      process.stdout.write(JSON.stringify({ folder: fleet.folder, network: await ant.run(${JSON.stringify(networkOf)}) }));
      setInterval(() => {}, 1000);`;
    const words = ['--input-type=module', '--eval', script];
    const owner = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
    const other = await facts(owner);
    const theirs = new Set([other.network]);
    const pid = owner.pid ?? 0;
    assert.equal(await said(fleet.host('ant'), { user: 'ops', script: 'hostname' }), 'ant');
    assert.ok(processes(theirs).length > 5);
    assert.equal(operatorDevices().length, former.length + 1);

    owner.kill('SIGKILL');
    await once(owner, 'exit');
    const haveGone = (): boolean => processes(theirs).every((line) => processes(new Set()).includes(line));
    await eventually(haveGone, { what: 'its hosts have ended' });
    await eventually(() => operatorDevices().length === former.length, { what: 'its interface has gone' });
    assert.ok(existsSync(other.folder));
    await removeAbandonedFleets();
    assert.deepEqual(await traces(pid, new Set()), processes(new Set()));
    assert.equal(await said(fleet.host('ant'), { user: 'ops', script: 'hostname' }), 'ant');
  });

  test('leave nothing when they are stopped, and can be stopped twice', async (t) => {
    assert.ok((await traces(process.pid, networks)).length > 20);
    const startedAtMs = performance.now();
    await Promise.all([fleet.stop(), fleet.stop()]);
    await fleet.stop();
    t.diagnostic(`3 hosts stopped in ${seconds(performance.now() - startedAtMs)}`);
    assert.deepEqual(await traces(process.pid, networks), []);
    assert.equal(existsSync(`/sys/class/net/p4${fleet.folder.slice(-6)}n0`), false);
  });

  test('that cannot be started leave nothing either', async () => {
    const former = operatorDevices();
    const slow = { name: 'slow', hasOperator: true };
    const wide = [slow, { name: 'wide', mtu: 1_000_000 }];
    await assert.rejects(TestHosts.start({ hosts: [{ name: 'ant' }], networks: wide }), /exit status/);
    const twice = [{ name: 'ant' }, { name: 'ant' }];
    await assert.rejects(TestHosts.start({ hosts: twice, networks: [] }), /names of their own/);
    const wrong = [{ name: 'ant' }, { name: 'no host name' }];
    await assert.rejects(TestHosts.start({ hosts: wrong, networks: [slow] }), /its console/);
    assert.deepEqual(await traces(process.pid, networks), []);
    assert.deepEqual(operatorDevices(), former);
  });
});

/** What the owner of another fleet says of it. */
async function facts(owner: ChildProcess): Promise<{ readonly folder: string; readonly network: string }> {
  const ended = once(owner, 'exit').then(() => assert.fail('the other fleet did not start'));
  const written: readonly unknown[] = await Promise.race([once(owner.stdout ?? assert.fail(), 'data'), ended]);
  // Written by the script that the test gives it.
  return JSON.parse(String(written[0])) as { folder: string; network: string };
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

/** Megabits per second of one TCP stream, as the receiver counts them. Fails when it takes longer than `seconds`. */
async function rateMbit(transfer: {
  readonly from: TestHost;
  readonly to: TestHost;
  readonly network: string;
  readonly bytes: number;
  readonly seconds?: number;
}): Promise<number> {
  const { from, to, network, bytes, seconds: limit = 50 } = transfer;
  const address = to.address(network);
  const receiver = `
    use IO::Socket::IP; use Time::HiRes 'time';
    my $listener = IO::Socket::IP->new(LocalHost => '${address}', LocalPort => 5001, Listen => 1, ReuseAddr => 1) or die;
    open(my $ready, '>', '/run/receiver'); close $ready;
    my $from = $listener->accept; my $count = 0; my $start = time;
    while (my $read = sysread($from, my $data, 1 << 20)) { $count += $read }
    print $count * 8 / 1e6 / (time - $start), ' ', $count;`;
  await to.run('rm -f /run/receiver');
  const received = to.run(`timeout ${limit} perl -e "$(cat)"`, { input: receiver });
  const isReady = async (): Promise<boolean> => (await to.exec('test -e /run/receiver')).status === 0;
  const send = async (): Promise<void> => {
    await eventually(isReady, { what: 'the receiver listens' });
    await from.exec(`timeout ${limit} bash -c 'head -c ${bytes} /dev/zero > /dev/tcp/${address}/5001'`);
  };
  const [output] = await Promise.all([received, send()]);
  const [rate, count] = output.split(' ').map(Number);
  assert.equal(count, bytes);
  return rate ?? 0;
}
