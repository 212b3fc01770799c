import assert from 'node:assert/strict';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { after, before, suite, test } from 'node:test';
import { diagnose } from '../../transport/connection-diagnosis.ts';
import { eventually } from '../fixture/eventually.ts';
import { driftsOf } from './host-drift.ts';
import { OperatorDesk, type Deployed } from './operator-desk.ts';
import { TestHosts } from './test-hosts.ts';

const names = ['ant', 'bee', 'cat'] as const;
const mib = 1024 ** 2;
const checkout = join(import.meta.dirname, '../../..');
/** A round takes some eight seconds; `npm run prove:drift` does twenty. */
const driftRounds = Number(process.env['P4_DRIFT_ROUNDS'] ?? 1);

suite('deploy on real hosts', () => {
  let fleet: TestHosts;
  let desk: OperatorDesk;
  let plan = '';

  const inventory = (addresses: Readonly<Record<string, string>> = {}): string =>
    [
      `fleet: { user: ops, key: ${fleet.key}, become: sudo }`,
      'hosts:',
      ...names.map((name) => `  ${name}: { address: ${addresses[name] ?? fleet.host(name).address('slow')} }`),
      '',
    ].join('\n');
  const agentStarts = (): Promise<readonly string[]> =>
    Promise.all(names.map((name) => fleet.host(name).run('systemctl show -p InvocationID --value p4-agent.service')));
  const infer = async (): Promise<string> => {
    const { exit, out, err } = await desk.run(
      'infer',
      plan,
      'Once upon a time',
      '--max-tokens',
      '16',
      '--temperature',
      '0',
    );
    assert.equal(exit, 0, err);
    return out;
  };

  before(async () => {
    fleet = await TestHosts.start({
      hosts: [{ name: 'ant' }, { name: 'bee' }, { name: 'cat', hasPolkit: true }],
      networks: [
        { name: 'slow', rateMbit: 200, hasOperator: true },
        { name: 'fast', hasOperator: true },
      ],
    });
    desk = new OperatorDesk();
    desk.write('inventory.yaml', inventory());
    const stages = ['ant, layers: 0-1', 'bee, layers: 2-3', 'bee, layers: 4-5', 'cat, layers: 6-7'];
    plan = desk.write(
      'plan.yaml',
      [
        ...['ring: three', `model: ${join(checkout, 'plans/stories.gguf')}`, 'context: 512', 'sessions: 2'],
        ...['decode: exact', 'stages:', ...stages.map((stage) => `  - { host: ${stage} }`), ''],
      ].join('\n'),
    );
  });
  after(async () => {
    desk.remove();
    await fleet.stop();
  });

  test('a check of bare hosts changes nothing, and the run changes just what it said', async (context) => {
    const check = (await desk.deploy('--check')).succeeded();
    for (const name of names) assert.equal((await fleet.host(name).exec('ls -d /opt/p4 /etc/p4')).stdout, '');
    assert.deepEqual(
      (await desk.deploy('--tags', 'files,services')).failures,
      names.map((name) => `${name}: RELEASE_NOT_SENT`),
      'what is not there is not switched to',
    );
    const run = (await desk.deploy()).succeeded();
    assert.deepEqual(run.changes, check.changes);
    context.diagnostic(`fresh deploy of ${names.length} hosts: ${(run.end.durationMs / 1000).toFixed(1)} s`);
    const [decided] = run.of('addresses');
    const decisions = decided?.['decisions'] as {
      host: string;
      chosen: { address: string };
      rejected: { why: string }[];
    }[];
    for (const { host, chosen, rejected } of decisions) {
      assert.equal(chosen.address, fleet.host(host).address('fast'), 'the fast network is chosen');
      assert.ok(
        rejected.some(({ why }) => why === 'shared by ant, bee and cat'),
        'the trap is rejected with its reason',
      );
    }
  });

  test('a second run changes nothing and restarts nothing', async (context) => {
    const before = await agentStarts();
    const run = (await desk.deploy()).succeeded();
    assert.deepEqual(run.changes, []);
    assert.deepEqual(await agentStarts(), before);
    context.diagnostic(`unchanged second run: ${(run.end.durationMs / 1000).toFixed(1)} s`);
  });

  test('a ring over three hosts answers as the uncut model does; a deployment that would end it is refused', async () => {
    const loaded = await desk.run('load', plan);
    assert.equal(loaded.exit, 0, loaded.err);
    const text = await infer();
    const whole = desk.write(
      'whole.yaml',
      readFileSync(plan, 'utf8')
        .replace(/stages:[^]*/, 'stages: [{ host: ant, layers: 0-7 }]\n')
        .replace('three', 'whole'),
    );
    assert.equal((await desk.run('load', whole)).exit, 0);
    const uncut = await desk.run('infer', whole, 'Once upon a time', '--max-tokens', '16', '--temperature', '0');
    assert.equal(text, uncut.out);
    assert.equal((await desk.run('unload', whole)).exit, 0);
    const starts = await agentStarts();
    assert.deepEqual((await desk.deploy()).succeeded().changes, []);
    desk.write(
      'inventory.yaml',
      inventory().replace('become: sudo }', 'become: sudo, variables: { ports: { metrics: 7411 } } }'),
    );
    const checked = await desk.deploy('--check');
    const refused = await desk.deploy();
    for (const { end, failures } of [checked, refused]) {
      assert.equal(end.exit, 3);
      assert.deepEqual(
        failures,
        names.map((name) => `${name}: RINGS_WOULD_STOP`),
      );
    }
    const isRestart = (change: string): boolean => /^ant: p4-agent\.service: .*restart$/.test(change);
    assert.ok(checked.changes.some(isRestart), 'a check shows what it found all the same');
    assert.deepEqual(refused.changes, []);
    assert.deepEqual(
      refused.of('left').map(({ state }) => state),
      ['untouched', 'untouched', 'untouched'],
    );
    assert.deepEqual(
      (await desk.deploy('--check', '--restart-rings'))
        .succeeded()
        .of('rings-end')
        .map(({ rings }) => rings),
      [['three'], ['three'], ['three']],
    );
    assert.deepEqual(await agentStarts(), starts);
    assert.equal(await infer(), text);
    desk.write('inventory.yaml', inventory());
  });

  test('a removal names the rings it would end; agents for local use stay out of the fleet', async () => {
    const removal = (await desk.deploy('--check', '--remove')).succeeded();
    assert.deepEqual(
      removal.of('rings-end').map(({ host, rings }) => [host, rings]),
      names.map((name) => [name, ['three']]),
    );
    const unconfirmed = await desk.deploy('--remove', '--limit', 'bee');
    assert.equal(unconfirmed.end.exit, 2);
    const error = JSON.parse(unconfirmed.end.err) as { code: string; facts: unknown };
    assert.equal(error.code, 'REMOVAL_UNCONFIRMED');
    assert.deepEqual(error.facts, { hosts: ['bee'], ends: ['bee: the loaded ring three'] });
    const local = await desk.run('agents', '--json');
    assert.equal(local.exit, 2, local.out);
    assert.match(local.err, /"STATE_FOLDER_DEPLOYED"/);
    desk.write('inventory.yaml', inventory().replace(/ {2}cat: .*\n/, ''));
    const without = (await desk.deploy('--check')).succeeded();
    assert.deepEqual(
      without.of('stray-host').map(({ host }) => host),
      ['cat'],
    );
    desk.write('inventory.yaml', inventory());
    assert.deepEqual((await desk.deploy('--check')).of('stray-host'), []);
  });

  test('a load that does not fit, or finds two models, is refused before anything moves', async () => {
    const bee = fleet.host('bee');
    const refused = async (code: string, text: string): Promise<Readonly<Record<string, unknown>>> => {
      const { exit, err } = await desk.run('load', desk.write('refused.yaml', text), '--json');
      const error = JSON.parse(err) as { code: string; exit: number; facts: Readonly<Record<string, unknown>> };
      assert.equal(error.code, code, err);
      assert.equal(exit, error.exit);
      return error.facts;
    };
    const refusedPlan = readFileSync(plan, 'utf8')
      .replace('three', 'refused')
      .replace('0-1', '0-2')
      .replace('2-3', '3');
    const slices = '/var/lib/p4/slices';
    await bee.mountSmall(slices, mib);
    try {
      const { shortfalls } = await refused('PLAN_DOES_NOT_FIT', refusedPlan);
      const [disk = '', ...others] = shortfalls as readonly string[];
      assert.match(disk, /^bee: disk short by .* needed, .* free\)$/);
      assert.deepEqual(others, []);
      assert.equal(await bee.run(`ls ${slices}`), '', 'nothing has begun to come');
    } finally {
      await bee.run(`umount ${slices}`);
    }
    const model = readFileSync(join(checkout, 'plans/stories.gguf'));
    const another = Uint8Array.from(model);
    another.set([(another.at(-1) ?? 0) ^ 1], another.length - 1);
    for (const name of names) await fleet.host(name).putFile('/srv/model.gguf', name === 'bee' ? another : model);
    const onHosts = refusedPlan.replace(/^model: .*$/m, 'model: { path: /srv/model.gguf, on: hosts }');
    const { path, hashes } = await refused('MODEL_DIFFERS', onHosts);
    assert.equal(path, '/srv/model.gguf');
    const [ofAnt = '', ofBee = '', ofCat = ''] = (hashes as readonly string[]).map((text) => text.split(' ')[2]);
    assert.equal(ofAnt, ofCat);
    assert.notEqual(ofAnt, ofBee);
    for (const name of names) await fleet.host(name).run('rm /srv/model.gguf');
    assert.equal((await desk.run('status')).exit, 0);
  });

  test('a release that cannot start is switched to nowhere, and the ring goes on', async () => {
    const text = await infer();
    const starts = await agentStarts();
    const bad = join(desk.folder, 'bad');
    for (const part of ['dist', 'protocol', 'units', 'package.json'])
      cpSync(join(checkout, part), join(bad, part), { recursive: true });
    symlinkSync(join(checkout, 'node_modules'), join(bad, 'node_modules'));
    writeFileSync(join(bad, 'dist/agent/main.js'), "throw new Error('a bad release');\n");
    const good = desk.program;
    desk.program = join(bad, 'dist/provisioner/main.js');
    const run = await desk.deploy('--restart-rings');
    desk.program = good;
    assert.equal(run.end.exit, 4);
    assert.deepEqual(
      run.failures,
      names.map((name) => `${name}: TRIAL_FAILED`),
    );
    assert.match(run.end.out, /a bad release/);
    assert.deepEqual(await agentStarts(), starts);
    assert.equal(await infer(), text);
    assert.equal((await desk.run('unload', plan)).exit, 0);
  });

  test('a switch that fails on one host is taken back on all', async () => {
    const squat = "require('node:net').createServer().listen(7500, '0.0.0.0')";
    await fleet.host('bee').run(`systemd-run --quiet --unit=squatter /opt/p4/current/runtime/bin/node -e "${squat}"`);
    desk.write(
      'inventory.yaml',
      inventory().replace('become: sudo }', 'become: sudo, variables: { ports: { agent: 7500 } } }'),
    );
    const run = await desk.deploy();
    assert.deepEqual(run.failures, ['bee: AGENT_NOT_ANSWERING'], run.end.out);
    assert.match(run.end.out, /ADDRESS_IN_USE/);
    assert.deepEqual(
      run
        .of('went-back')
        .map(({ host }) => host)
        .sort(),
      names,
    );
    const status = await desk.run('status');
    assert.equal(status.exit, 0, status.out);
    await fleet.host('bee').run('systemctl stop squatter');
    desk.write('inventory.yaml', inventory());
    assert.deepEqual((await desk.deploy('--check')).succeeded().changes, []);
  });

  test('a signal ends a run with a recap that says what each host is left with', async () => {
    const states = (run: Deployed): readonly unknown[] => run.of('left').map(({ state }) => state);
    const starts = await agentStarts();
    const ports = 'become: sudo, variables: { ports: { metrics: 7411 } } }';
    desk.write('inventory.yaml', inventory().replace('become: sudo }', ports));
    const early = await desk.deployUntil('facts', 'SIGINT');
    assert.equal(early.end.exit, 130, early.end.err);
    assert.deepEqual(states(early), ['untouched', 'untouched', 'untouched']);
    assert.equal(early.of('recap').length, 3);
    assert.deepEqual(await agentStarts(), starts);
    const late = await desk.deployUntil('files', 'SIGINT');
    assert.equal(late.end.exit, 130, late.end.err);
    assert.deepEqual(states(late), ['answers', 'answers', 'answers'], 'what has begun is finished');
    assert.equal(late.of('recap').length, 3);
    assert.deepEqual((await desk.deploy('--check')).succeeded().changes, []);
    desk.write('inventory.yaml', inventory());
    const killed = await desk.deployUntil('release', 'SIGKILL');
    assert.equal(killed.end.exit, -1);
    assert.equal((await fleet.host('ant').exec('test -e /opt/p4/deploy.lock')).status, 0);
    const next = (await desk.deploy()).succeeded();
    assert.equal(next.of('lock-taken-over').length, 1, 'the lock of the state folder is nobody’s any more');
    assert.deepEqual((await desk.deploy('--check')).succeeded().changes, []);
  });

  test('drift is predicted exactly, and mended', async () => {
    for (let round = 0; round < driftRounds; round += 1) {
      const name = names[round % names.length] ?? 'ant';
      const drifts = driftsOf(`drift ${round}`);
      const what = `round ${round}, ${name}: ${drifts.map((drift) => drift.what).join(', ')}`;
      for (const { script } of drifts) await fleet.host(name).exec(script);
      const check = (await desk.deploy('--check', '--limit', name)).succeeded();
      const run = (await desk.deploy('--limit', name)).succeeded();
      assert.ok(run.changes.length > 0, what);
      assert.deepEqual(run.changes, check.changes, what);
      const again = (await desk.deploy('--check', '--limit', name)).succeeded();
      assert.deepEqual(again.changes, [], what);
    }
  });

  test('a second operator is told who holds the hosts', async () => {
    const other = new OperatorDesk();
    try {
      other.write('inventory.yaml', inventory());
      // The first has something to send, and so is not done before the second asks.
      await fleet.host('cat').run('rm -rf /opt/p4/objects /opt/p4/releases');
      const first = desk.deploy();
      await eventually(async () => (await fleet.host('cat').exec('test -e /opt/p4/deploy.lock')).status === 0, {
        what: 'a lock on the last host',
      });
      const second = await other.deploy();
      assert.equal(second.end.exit, 3);
      assert.deepEqual(
        second.failures,
        names.map((name) => `${name}: HOST_LOCKED`),
      );
      for (const { phase, facts } of second.of('host-failed')) {
        assert.equal(phase, 'lock');
        assert.match((facts as { by: string }).by, /@.*, process \d+/);
        assert.ok(Date.now() - Date.parse((facts as { since: string }).since) < 120_000);
      }
      (await first).succeeded();
      await fleet.host('bee').run('echo "{}" >/opt/p4/deploy.lock');
      for (const options of [['--check'], []])
        assert.deepEqual((await desk.deploy(...options)).failures, ['bee: HOST_LOCKED'], options.join());
      (await desk.deploy('--force-unlock')).succeeded();
    } finally {
      other.remove();
    }
  });

  test('a host that cannot be deployed to is one clear error, and the others stay as they were', async () => {
    const starts = await agentStarts();
    const refused = async (code: string): Promise<void> => {
      const run = await desk.deploy();
      assert.deepEqual(run.failures, [`bee: ${code}`], run.end.out);
      assert.deepEqual(run.changes, []);
    };
    await fleet.host('bee').run('systemctl stop ssh.socket ssh.service 2>/dev/null; true');
    await refused('HOST_UNREACHABLE');
    await fleet.host('bee').run('systemctl start ssh.service');
    await fleet
      .host('bee')
      .run("mv /etc/sudoers.d /etc/sudoers.away; mkdir /etc/sudoers.d; echo 'ops ALL=(ALL) ALL' >/etc/sudoers.d/ops");
    await refused('BECOME_NEEDS_PASSWORD');
    await fleet.host('bee').run('rm -r /etc/sudoers.d; mv /etc/sudoers.away /etc/sudoers.d');
    await fleet.host('bee').changeHostKey();
    await refused('HOST_KEY_CHANGED');
    const key = (await desk.deploy()).of('host-failed')[0]?.['facts'] as { accept: string };
    (await desk.deploy(...key.accept.split(' '))).succeeded();
    assert.deepEqual(await agentStarts(), starts);
  });

  test('a revoked host is let in by nobody, until it is deployed to anew', async () => {
    const texts = await Promise.all(
      ['authority.crt', 'agent.crt', 'agent.key'].map((name) => fleet.host('cat').readFile(`/etc/p4/pki/${name}`)),
    );
    const [authority = '', certificate = '', key = ''] = texts.map((text) => text.toString('utf8'));
    const knock = async (): Promise<string> => {
      const at = { address: fleet.host('ant').address('fast'), port: 7400 };
      return (await diagnose({ at, tls: { authority, certificate, key }, serverName: 'ant' })).kind;
    };
    assert.equal(await knock(), 'answers');
    const run = (await desk.deploy('--revoke', 'cat')).succeeded();
    assert.deepEqual(
      run.changes.filter((change) => change.includes('revoked')),
      ['ant: create /etc/p4/pki/revoked.crl', 'bee: create /etc/p4/pki/revoked.crl'],
    );
    assert.equal(await knock(), 'certificate-refused');
    (await desk.deploy()).succeeded();
    assert.deepEqual((await desk.deploy('--check')).succeeded().changes, []);
  });

  test('removal says what goes, wants a word, and leaves nothing', async () => {
    const check = (await desk.deploy('--check', '--remove')).succeeded();
    assert.ok(check.changes.includes('ant: remove /var/lib/p4'));
    assert.equal((await desk.deploy('--remove')).end.exit, 2);
    assert.deepEqual((await desk.deploy('--remove', '--yes')).succeeded().changes, check.changes);
    const look = `
      find / -xdev \\( -name 'p4*' -o -name '50-p4*' -o -user 999 \\) -not -path '/proc/*' -not -path '/sys/*' -not -path '/var/log/*' -not -path '/usr/*' 2>/dev/null
      getent passwd p4; getent group p4; systemctl list-units --all --plain --no-legend 'p4*'; ps -eo args | grep '/opt/[p]4'`;
    for (const name of names) assert.equal((await fleet.host(name).exec(look)).stdout, '', name);
    assert.deepEqual((await desk.deploy('--check', '--remove')).succeeded().changes, []);
  });
});
