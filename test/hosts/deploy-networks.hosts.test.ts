/**
 * Deploy where networks differ: ssh answers on a slow one, the fast one has IPv6 alone, and a still faster one joins just
 * two of three hosts. What was decided is looked up in the hosts themselves: their sockets and their interfaces' counters.
 */
import assert from 'node:assert/strict';
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { ensureCertificate } from '../../provisioner/pki.ts';
import { stateFolder, type StateFolder } from '../../provisioner/state-folder.ts';
import { diagnose } from '../../transport/connection-diagnosis.ts';
import { greedyToken } from '../exactness/recording.ts';
import { stepLogits } from '../exactness/seeded-text.ts';
import { contextShape } from '../exactness/subjects.ts';
import { UncutModel } from '../exactness/uncut-model.ts';
import { OperatorDesk, type Deployed } from './operator-desk.ts';
import { TestHosts } from './test-hosts.ts';

const names = ['ant', 'bee', 'cat'] as const;
type Name = (typeof names)[number];
const checkout = join(import.meta.dirname, '../../..');
const model = join(checkout, 'plans/stories.gguf');
const prompt = 'Once upon a time';
const maxTokens = 40;
const agentPort = 7400;

interface Decision {
  readonly host: Name;
  readonly chosen: { readonly address: string; readonly why: string } | null;
  readonly rejected: readonly { readonly address: string; readonly why: string }[];
}

const stateOf = ({ folder }: OperatorDesk): StateFolder =>
  stateFolder({ option: join(folder, 'state'), environment: {}, workingFolder: folder });

suite('deploy over networks that differ', () => {
  let fleet: TestHosts;
  let desk: OperatorDesk;

  /** @param more what a host has besides its address, by its name */
  const writeInventory = (more: Readonly<Partial<Record<Name, string>>> = {}): void => {
    const lines = names.map((name) => `  ${name}: { address: ${fleet.host(name).address('slow')}${more[name] ?? ''} }`);
    const defaults = `fleet: { user: ops, key: ${fleet.key}, become: sudo }`;
    desk.write('inventory.yaml', [defaults, 'hosts:', ...lines, ''].join('\n'));
  };
  const advertising = (wish: string): string => `, variables: { advertise: { ${wish} } }`;
  const writePlan = (ring: string, stages: readonly string[]): string =>
    desk.write(
      `${ring}.yaml`,
      [
        ...[`ring: ${ring}`, `model: ${model}`, 'context: 512', 'sessions: 2', 'decode: exact', 'stages:'],
        ...stages.map((stage) => `  - { host: ${stage} }`),
        '',
      ].join('\n'),
    );
  const infer = async (plan: string): Promise<{ readonly tokens: readonly number[]; readonly text: string }> => {
    const options = ['--max-tokens', String(maxTokens), '--temperature', '0', '--json'];
    const { exit, out, err } = await desk.run('infer', plan, prompt, ...options);
    assert.equal(exit, 0, `${out}\n${err}`);
    const events = out
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { readonly event: string; readonly token: number; readonly text: string });
    return {
      tokens: events.filter(({ event }) => event === 'token').map(({ token }) => token),
      text: events
        .filter(({ event }) => event === 'token' || event === 'end')
        .map(({ text }) => text)
        .join(''),
    };
  };
  const succeeds = async (...words: readonly string[]): Promise<void> => {
    const { exit, out, err } = await desk.run(...words);
    assert.equal(exit, 0, `${words.join(' ')}: ${out}\n${err}`);
  };
  const agentStarts = (): Promise<readonly string[]> =>
    Promise.all(names.map((name) => fleet.host(name).run('systemctl show -p InvocationID --value p4-agent.service')));
  const decisionsOf = (run: Deployed): readonly Decision[] =>
    (run.of('addresses')[0]?.['decisions'] ?? []) as readonly Decision[];
  /** Both ends of every connection that a host has to an agent, or its own agent to others. */
  const agentSockets = async (name: Name): Promise<readonly string[]> => {
    const ports = `( sport = :${agentPort} or dport = :${agentPort} )`;
    const text = await fleet.host(name).run(`ss -Htn state established '${ports}'`);
    return text.split('\n').flatMap((line) => (line === '' ? [] : [line.trim().split(/\s+/).slice(2).join(' ')]));
  };
  /** Bytes that a host has sent so far over a network. */
  const sentBytes = async (name: Name, network: string): Promise<number> =>
    Number(await fleet.host(name).run(`cat /sys/class/net/${network}/statistics/tx_bytes`));

  before(async () => {
    fleet = await TestHosts.start({
      hosts: [
        { name: 'ant', networks: ['slow', 'fast', 'pair'] },
        { name: 'bee', networks: ['slow', 'fast', 'pair'] },
        { name: 'cat', networks: ['slow', 'fast'] },
      ],
      networks: [
        // Far enough apart that a machine with other work still measures the three in this order.
        { name: 'slow', rateMbit: 50, hasOperator: true },
        { name: 'fast', rateMbit: 100, families: ['ipv6'] },
        { name: 'pair' },
      ],
    });
    desk = new OperatorDesk();
    writeInventory();
  });
  after(async () => {
    desk.remove();
    await fleet.stop();
  });

  test('the fast network is chosen although it has only IPv6 and the operator is not in it', async () => {
    const run = (await desk.deploy()).succeeded();
    for (const { host, chosen, rejected } of decisionsOf(run)) {
      assert.equal(chosen?.address, fleet.host(host).address('fast', 'ipv6'), JSON.stringify(chosen));
      const slow = rejected.find(({ address }) => address === fleet.host(host).address('slow'));
      // On a busy machine a burst may say less of one host than of the network: what was chosen is the same.
      assert.match(slow?.why ?? '', /^(slower: |not faster than )/, `${host}: the slow network is rejected`);
      const listening = await fleet.host(host).run(`ss -Htln 'sport = :${agentPort}'`);
      assert.ok(listening.includes(`[${fleet.host(host).address('fast', 'ipv6')}]:${agentPort}`), listening);
      assert.ok(!listening.includes('172.17.'), 'nobody listens on the trap');
    }
    assert.equal(decisionsOf(run).length, names.length);
    assert.deepEqual(
      run.of('note').filter(({ text }) => String(text).includes('closed from here')),
      [],
      'the trial answered the operator',
    );
    await succeeds('status');
    assert.deepEqual((await desk.deploy('--check')).succeeded().changes, []);
  });

  test('a ring over all three hosts says what the uncut model says, over the fast network alone', async () => {
    const plan = writePlan('all', ['ant, layers: 0-2', 'bee, layers: 3-4', 'cat, layers: 5-7']);
    await succeeds('load', plan);
    const before = await Promise.all(['fast', 'slow', 'pair'].map((network) => sentBytes('bee', network)));
    const { tokens, text } = await infer(plan);
    const sockets = await agentSockets('bee');
    const after = await Promise.all(['fast', 'slow', 'pair'].map((network) => sentBytes('bee', network)));
    const [fast = 0, slow = 0, pair = 0] = after.map((bytes, index) => bytes - (before[index] ?? 0));
    assert.ok(fast > tokens.length * 1000, `hidden states go over the fast network: ${fast} bytes`);
    assert.ok(slow < fast / 10 && pair < fast / 10, `nothing else does: ${slow} and ${pair} bytes of ${fast}`);
    assert.ok(sockets.length > 0);
    for (const ends of sockets) assert.ok(ends.includes(fleet.host('bee').address('fast', 'ipv6')), ends);

    const uncut = new UncutModel({ path: model, ...contextShape, observes: false });
    try {
      const { vocabulary } = uncut;
      const row = Array.from(vocabulary.tokenize(prompt, { addSpecial: true, parseSpecial: false }));
      assert.equal(tokens.length, maxTokens);
      // Each token is the uncut model's own choice after those before it: so is the whole text.
      assert.deepEqual(tokens, stepLogits(uncut, { prompt: row, tokens }, 'paired').map(greedyToken));
      const { bytes, offsets } = vocabulary.pieces();
      const pieces = tokens.map((token) => bytes.subarray(offsets[token], offsets[token + 1]));
      assert.equal(text, Buffer.concat(pieces).toString('utf8'));
    } finally {
      uncut.close();
    }
  });

  test('a client of another fleet gets nothing', async () => {
    const other = new OperatorDesk();
    try {
      cpSync(join(desk.folder, 'state'), join(other.folder, 'state'), { recursive: true });
      rmSync(join(other.folder, 'state', 'pki'), { recursive: true });
      const plan = join(desk.folder, 'all.yaml');
      const status = await other.run('status');
      assert.equal(status.exit, 3, status.out);
      for (const name of names) assert.match(status.out, new RegExp(`^${name} .* CERTIFICATE_REFUSED`, 'm'));
      assert.doesNotMatch(status.out, /Ring all/);
      for (const words of [
        ['infer', plan, prompt],
        ['unload', plan],
      ]) {
        const { exit, out, err } = await other.run(...words);
        assert.equal(exit, 3, err);
        assert.equal(out, '');
        assert.deepEqual(err.match(/^[A-Z_]+(?=:)/gm), ['CERTIFICATE_REFUSED'], err);
      }
      // Nor does one that takes the agents for its own.
      const { identity } = await ensureCertificate(stateOf(other), { role: 'operator' }, new Date());
      const { authority } = (await ensureCertificate(stateOf(desk), { role: 'operator' }, new Date())).identity;
      const at = { address: fleet.host('ant').address('slow'), port: agentPort };
      const verdict = await diagnose({ at, tls: { ...identity, authority }, serverName: 'ant' });
      assert.deepEqual([verdict.kind, 'by' in verdict && verdict.by], ['certificate-refused', 'there']);
      await succeeds('status', plan);
    } finally {
      other.remove();
    }
  });

  test('a ring over just two hosts uses the faster network that they share', async () => {
    await succeeds('unload', join(desk.folder, 'all.yaml'));
    const plan = writePlan('two', ['ant, layers: 0-3', 'bee, layers: 4-7']);
    await succeeds('load', plan);
    const before = await Promise.all(['pair', 'fast'].map((network) => sentBytes('ant', network)));
    const { tokens } = await infer(plan);
    const after = await Promise.all(['pair', 'fast'].map((network) => sentBytes('ant', network)));
    const [pair = 0, fast = 0] = after.map((bytes, index) => bytes - (before[index] ?? 0));
    assert.ok(pair > tokens.length * 1000, `hidden states go over the pair's network: ${pair} bytes`);
    assert.ok(fast < pair / 10, `nothing goes over the other: ${fast} bytes of ${pair}`);
    const sockets = await agentSockets('bee');
    assert.ok(
      sockets.some((ends) => ends.includes(fleet.host('bee').address('pair'))),
      sockets.join('\n'),
    );
    await succeeds('unload', plan);
  });

  test('an address that not all others reach is refused, and nothing is switched', async () => {
    const starts = await agentStarts();
    const state = readFileSync(join(desk.folder, 'state/fleet.json'), 'utf8');
    writeInventory({ ant: advertising(`address: ${fleet.host('ant').address('pair')}`) });
    const run = await desk.deploy();
    assert.equal(run.end.exit, 3);
    assert.deepEqual(run.failures, ['ant: ADVERTISE_UNREACHABLE']);
    assert.match(JSON.stringify(run.of('host-failed')[0]?.['facts']), /cat/, 'who cannot reach it is named');
    assert.doesNotMatch(JSON.stringify(run.of('host-failed')[0]?.['facts']), /bee/, 'who can is not');
    assert.deepEqual(run.changes, []);
    assert.deepEqual(await agentStarts(), starts);
    assert.equal(readFileSync(join(desk.folder, 'state/fleet.json'), 'utf8'), state);
  });

  test('an interface that the inventory names is used', async () => {
    writeInventory({ cat: advertising('interface: slow') });
    const run = (await desk.deploy()).succeeded();
    const chosen = new Map(decisionsOf(run).map((decision) => [decision.host, decision.chosen?.address]));
    assert.equal(chosen.get('cat'), fleet.host('cat').address('slow'));
    const { hosts } = JSON.parse(readFileSync(join(desk.folder, 'state/fleet.json'), 'utf8')) as {
      readonly hosts: readonly { readonly name: string; readonly address: string }[];
    };
    assert.equal(hosts.find(({ name }) => name === 'cat')?.address, fleet.host('cat').address('slow'));
    await succeeds('status');
  });

  test('an operator who comes to a host by ssh alone, without a jump host, is told what to open', async () => {
    const operator = fleet
      .host('ant')
      .address('slow')
      .replace(/\.\d+$/, '.1');
    const closed = ['INPUT', '-s', operator, '-p', 'tcp', '!', '--dport', '22', '-j', 'REJECT'];
    await fleet.host('cat').inNetwork(['iptables', '-I', ...closed]);
    try {
      writeInventory({ cat: advertising('interface: slow') });
      const started = (await agentStarts())[names.indexOf('cat')];
      const run = await desk.deploy('--measure');
      assert.equal(run.end.exit, 4);
      assert.deepEqual(run.failures, ['cat: AGENT_NOT_REACHED'], run.end.out);
      const facts = JSON.stringify(run.of('host-failed')[0]?.['facts']);
      assert.ok(facts.includes(fleet.host('cat').address('slow')) && facts.includes(String(agentPort)), facts);
      assert.ok(
        run.of('note').some(({ text }) => /^cat: this machine reaches none/.test(String(text))),
        'and was told before',
      );
      assert.equal((await agentStarts())[names.indexOf('cat')], started);
    } finally {
      await fleet.host('cat').inNetwork(['iptables', '-D', ...closed]);
    }
  });
});
