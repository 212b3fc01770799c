/**
 * Hosts that this machine reaches by ssh alone, over a third: deploy and every other command go through it. What is between
 * the agents themselves stays as it is.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { hostName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { FleetConnection } from '../../provisioner/fleet-connection.ts';
import { SshWays } from '../../provisioner/ssh-ways.ts';
import { ensureCertificate } from '../../provisioner/pki.ts';
import { stateFolder, type StateFolder } from '../../provisioner/state-folder.ts';
import { diagnose } from '../../transport/connection-diagnosis.ts';
import { eventually } from '../fixture/eventually.ts';
import { failure } from '../fixture/expected-failure.ts';
import { ScriptedPrompt } from '../fixture/operator-home.ts';
import { OperatorDesk, type DeskCommand } from './operator-desk.ts';
import { TestHosts } from './test-hosts.ts';

const names = ['ant', 'bee'] as const;
type Name = (typeof names)[number];
const checkout = join(import.meta.dirname, '../../..');
const agentPort = 7400;

interface KeptHost {
  readonly name: string;
  readonly address: string;
  readonly ssh: readonly { readonly label: string; readonly user: string | null; readonly key: unknown }[] | null;
}

suite('hosts behind a jump host', () => {
  let fleet: TestHosts;
  let desk: OperatorDesk;
  let plan = '';

  const gateAddress = (): string => fleet.host('gate').address('outer');
  const succeeds = async (...words: readonly string[]): Promise<DeskCommand> => {
    const run = await desk.run(...words);
    assert.equal(run.exit, 0, `${words.join(' ')}: ${run.out}\n${run.err}`);
    return run;
  };
  const keptHosts = (): readonly KeptHost[] =>
    (JSON.parse(readFileSync(join(desk.folder, 'state/fleet.json'), 'utf8')) as { readonly hosts: readonly KeptHost[] })
      .hosts;
  const stateOf = (): StateFolder =>
    stateFolder({ option: join(desk.folder, 'state'), environment: {}, workingFolder: desk.folder });
  /** Whether this machine gets an answer from the agent by itself. */
  const isDialled = async (address: string, serverName: string): Promise<boolean> => {
    const { identity } = await ensureCertificate(stateOf(), { role: 'operator' }, new Date());
    const { kind } = await diagnose({ at: { address, port: agentPort }, tls: identity, serverName });
    return kind === 'answers';
  };
  /** The commands' connections, from within this process. */
  const opened = (): Promise<FleetConnection> => {
    const state = stateOf();
    const operator = { home: join(desk.folder, 'home'), user: 'root', environment: {} };
    const { signal } = new AbortController();
    return SshWays.prepare({ state, operator, prompt: new ScriptedPrompt(), signal }).then((ways) =>
      FleetConnection.open(state, ways),
    );
  };
  const describe = (connection: FleetConnection, name: Name): Promise<unknown> =>
    connection.describe(hostName(name), new AbortController().signal);

  before(async () => {
    fleet = await TestHosts.start({
      hosts: [
        { name: 'gate', networks: ['outer', 'inner'] },
        { name: 'ant', networks: ['inner'] },
        { name: 'bee', networks: ['inner'] },
      ],
      networks: [{ name: 'outer', hasOperator: true }, { name: 'inner' }],
    });
    desk = new OperatorDesk();
    desk.write(
      'inventory.yaml',
      [
        `fleet: { user: ops, key: ${fleet.key}, become: sudo }`,
        'hosts:',
        ...names.map(
          (name) =>
            `  ${name}: { address: ${fleet.host(name).address('inner')}, jump: { address: ${gateAddress()}, user: ops, key: ${fleet.key} } }`,
        ),
        '',
      ].join('\n'),
    );
    plan = desk.write(
      'plan.yaml',
      [
        ...['ring: beyond', `model: ${join(checkout, 'plans/stories.gguf')}`, 'context: 512', 'sessions: 2', 'stages:'],
        ...['  - { host: ant, layers: 0-3 }', '  - { host: bee, layers: 4-7 }', ''],
      ].join('\n'),
    );
  });
  after(async () => {
    desk.remove();
    await fleet.stop();
  });

  test('deploy proves the new agents through ssh, and writes down how it came there', async () => {
    const run = (await desk.deploy()).succeeded();
    assert.deepEqual(
      run.of('note').filter(({ text }) => /closed from here|reaches none/.test(String(text))),
      [],
      'nothing that ssh does not need is asked to be opened',
    );
    for (const { name, address, ssh } of keptHosts()) {
      assert.equal(address, fleet.host(name).address('inner'));
      assert.equal(await isDialled(address, name), false, `${name} is not reached without ssh`);
      assert.deepEqual(
        ssh?.map(({ label, user, key }) => ({ label, user, key })),
        [gateAddress(), name].map((label) => ({ label, user: 'ops', key: { kind: 'file', path: fleet.key } })),
      );
    }
  });

  test('a ring is loaded, answers, is seen and goes, all through ssh', async () => {
    const loaded = await succeeds('load', plan, '--json');
    assert.match(loaded.out, /"sentBytes":\d{5,}/, 'slices were sent');
    const { out } = await succeeds('infer', plan, 'Once upon a time', '--max-tokens', '8', '--temperature', '0');
    assert.ok(out.trim().length > 8, out);
    assert.match((await succeeds('status', plan)).out, /ready/);
    assert.match((await succeeds('slices')).out, /beyond/);
    assert.deepEqual((await desk.deploy()).succeeded().changes, [], 'deploy asks loaded agents through ssh too');
    assert.match((await succeeds('unload', plan)).out, /2 stages ended on ant, bee/);
    assert.deepEqual(
      (await fleet.host('gate').run("ss -Htn state established '( sport = :22 )'")).trim(),
      '',
      'no connection stays',
    );
  });

  test('a connection that is lost is told, and made anew by the next call', async () => {
    const connection = await opened();
    try {
      await describe(connection, 'ant');
      const ant = fleet.host('ant');
      await ant.run('systemctl kill --signal=STOP p4-agent');
      const unanswered = failure(describe(connection, 'ant'), 'HOST_LOST');
      // Those of sessions; the one that listens stays.
      await ant.run("pkill -KILL -f '^sshd: ops'");
      const error = await unanswered;
      assert.deepEqual([error.facts['agentOf'], error.facts['through']], ['ant', gateAddress()]);
      await ant.run('systemctl kill --signal=CONT p4-agent');
      await eventually(() => describe(connection, 'ant').then(Boolean, () => false), { what: 'ant answers again' });
      await describe(connection, 'bee');
    } finally {
      await connection.close();
    }
  });

  test('where ssh does not come through, host and jump host are named, and other hosts answer', async () => {
    const refusal = 'Match User ops\n  AllowTcpForwarding no\n';
    await fleet.host('bee').putFile('/etc/ssh/sshd_config.d/closed.conf', refusal);
    await fleet.host('bee').run('systemctl reload ssh');
    const status = await desk.run('status', '--json');
    assert.equal(status.exit, 3);
    const agents = status.out
      .split('\n')
      .filter((line) => line.includes('"event":"agent"'))
      .map((line) => JSON.parse(line) as { host: string; error?: { code: string; facts: Record<string, unknown> } });
    const found = new Map(agents.map(({ host, error }) => [host, error]));
    assert.equal(found.get('ant'), undefined);
    assert.equal(found.get('bee')?.code, 'SSH_FORWARDING_REFUSED', JSON.stringify(found.get('bee')));
    assert.equal(found.get('bee')?.facts['through'], gateAddress());
    await fleet.host('bee').run('rm /etc/ssh/sshd_config.d/closed.conf; systemctl reload ssh');

    await fleet.host('gate').run('systemctl stop ssh.socket ssh.service');
    const closed = await desk.run('unload', plan);
    assert.equal(closed.exit, 4, closed.err);
    assert.match(closed.err, /HOST_UNREACHABLE/);
    assert.ok(closed.err.includes(gateAddress()), closed.err);
    assert.match(closed.err, /agentOf: ant/);
    await fleet.host('gate').run('systemctl start ssh.service');
    await succeeds('status');
  });

  test('an agent that is stopped is told as one', async () => {
    await fleet.host('bee').run('systemctl stop p4-agent');
    const connection = await opened();
    try {
      const error = await failure(describe(connection, 'bee'), 'AGENT_UNREACHABLE');
      assert.equal(error.facts['through'], gateAddress());
      assert.match(error.message, /Connection refused/);
      await fleet.host('bee').run('systemctl start p4-agent');
      await eventually(() => describe(connection, 'bee').then(Boolean, () => false), {
        what: 'bee answers again',
        withinMs: limits.agentStartMs,
      });
    } finally {
      await connection.close();
    }
  });
});
