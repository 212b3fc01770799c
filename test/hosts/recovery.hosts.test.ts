/**
 * What is admitted is finished with the same words, whatever dies meanwhile: stages are units that outlive their agent, so
 * an agent that was killed takes them up again, and one that lives starts a killed stage again (R1 to R3).
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { after, before, suite, test } from 'node:test';
import { chooser } from '../fixture/chooser.ts';
import { eventually } from '../fixture/eventually.ts';
import { OperatorDesk, type DeskCommand } from './operator-desk.ts';
import { TestHosts } from './test-hosts.ts';

const names = ['ant', 'bee'] as const;
type Name = (typeof names)[number];
const checkout = join(import.meta.dirname, '../../..');
/** A kill and the ring's return take some four seconds; `npm run prove:kills` does fifty. */
const kills = Number(process.env['P4_KILLS'] ?? 3);
const seed = Number(process.env['P4_SEED'] ?? 1);

/** What each of the sessions asks, greedy and seeded. */
const asks = [
  ['Once upon a time', '--temperature', '0'],
  ['The little dog', '--temperature', '0.8', '--seed', '7'],
  ['One day', '--temperature', '1.1', '--top-k', '20', '--seed', '11'],
  ['Lily and Tom', '--temperature', '0.7', '--repeat-penalty', '1.2', '--seed', '5'],
] as const;

suite('a fleet whose stages and agents are killed', () => {
  let fleet: TestHosts;
  let desk: OperatorDesk;
  let plan = '';
  let calm = '';

  const planText = (ring: string, sessions: number): string =>
    [
      ...[`ring: ${ring}`, `model: ${join(checkout, 'plans/stories.gguf')}`, 'context: 1024', `sessions: ${sessions}`],
      ...['decode: exact', 'stages:', '  - { host: ant, layers: 0-3 }', '  - { host: bee, layers: 4-7 }', ''],
    ].join('\n');
  const tell = (of: string, ask: readonly string[], tokens: number): Promise<DeskCommand> =>
    desk.run('infer', of, ...ask, '--max-tokens', String(tokens), '--ignore-end');
  const told = async (of: string, ask: readonly string[], tokens: number): Promise<string> => {
    const { exit, out, err } = await tell(of, ask, tokens);
    assert.equal(exit, 0, err);
    return out;
  };
  /** What comes while an agent is down is refused, and admitted when it is asked again. */
  const toldInTheEnd = async (of: string, ask: readonly string[], tokens: number): Promise<string> => {
    for (;;) {
      const { exit, out, err } = await tell(of, ask, tokens);
      if (exit === 0) return out;
      assert.equal(out, '', err);
      assert.match(err, /AGENT_UNREACHABLE|AGENT_STOPPING|RING_EMPTY|RING_NOT_READY|AGENT_RESTARTED/);
      await delay(200);
    }
  };
  const isReady = async (of: string): Promise<boolean> => (await desk.run('status', of)).exit === 0;
  const untilReady = (of: string): Promise<void> =>
    eventually(() => isReady(of), { what: `${of} is ready again`, withinMs: 60_000 });
  /** Process numbers of the stages on a host, by their unit. */
  const stages = async (name: Name): Promise<ReadonlyMap<string, string>> => {
    const units = await fleet.host(name).run(`
      for unit in $(systemctl list-units --plain --no-legend 'p4-stage@*' | cut -d' ' -f1); do
        echo "$unit $(systemctl show -p MainPID --value "$unit")"
      done`);
    return new Map(
      units
        .split('\n')
        .filter(Boolean)
        .map((line) => line.split(' ') as [string, string]),
    );
  };
  const agentPid = (name: Name): Promise<string> =>
    fleet.host(name).run('systemctl show -p MainPID --value p4-agent.service');
  const killAgent = async (name: Name): Promise<void> => {
    // Ten deaths in ten minutes are too many for systemd, and here they are wanted.
    await fleet.host(name).run(`systemctl reset-failed p4-agent.service; kill -9 ${await agentPid(name)}`);
  };

  before(async () => {
    fleet = await TestHosts.start({
      hosts: names.map((name) => ({ name })),
      networks: [{ name: 'wire', hasOperator: true }],
    });
    desk = new OperatorDesk();
    desk.writeInventory(fleet, { hosts: names, network: 'wire' });
    (await desk.deploy()).succeeded();
    plan = desk.write('plan.yaml', planText('shaken', asks.length));
    calm = desk.write('calm.yaml', planText('calm', 1));
    for (const each of [plan, calm]) {
      const { exit, err } = await desk.run('load', each);
      assert.equal(exit, 0, err);
    }
  });
  after(async () => {
    desk.remove();
    await fleet.stop();
  });

  for (const name of names) {
    test(`the agent of ${name} is killed: its stages are taken up with their weights, and the story goes on`, async () => {
      const undisturbed = await told(plan, asks[0], 900);
      const before = await Promise.all(names.map(stages));
      const former = await agentPid(name);
      const telling = tell(plan, asks[0], 900);
      await eventually(async () => /[1-9] requests? running/.test((await desk.run('status', plan)).out), {
        what: 'the story is told',
      });
      await killAgent(name);
      const { exit, out, err } = await telling;
      assert.equal(exit, 0, err);
      assert.equal(out, undisturbed);
      await untilReady(plan);
      await untilReady(calm);
      assert.notEqual(await agentPid(name), former, 'it was killed');
      assert.deepEqual(await Promise.all(names.map(stages)), before, 'no stage has started again');
    });
  }

  test(`${kills} random kills under ${asks.length} sessions: every story is its undisturbed twin`, async (context) => {
    const tokens = 400;
    const twins: string[] = [];
    for (const ask of asks) twins.push(await told(plan, ask, tokens));
    const calmTwin = await told(calm, asks[0], 30);
    let isOver = false;
    let [stories, calmStories] = [0, 0];
    const tellOn = async (of: number): Promise<void> => {
      while (!isOver) {
        assert.equal(await toldInTheEnd(plan, asks[of] ?? [], tokens), twins[of]);
        stories += 1;
      }
    };
    // Kills of the other ring's stages do not reach it; those of agents, which both share, it survives as well.
    const tellCalmly = async (): Promise<void> => {
      while (!isOver) {
        assert.equal(await toldInTheEnd(calm, asks[0], 30), calmTwin);
        calmStories += 1;
      }
    };
    const choose = chooser(seed);
    const strike = async (): Promise<void> => {
      for (let kill = 0; kill < kills; kill += 1) {
        const name = names[choose(2)] ?? 'ant';
        const what = choose(4);
        if (what === 0) await killAgent(name);
        else {
          const [unit = '', pid = ''] = [...(await stages(name))][choose(2)] ?? [];
          if (what < 3) await fleet.host(name).run(`kill -9 ${pid}`);
          else await fleet.host(name).run(`kill -STOP ${pid}; sleep 2; kill -CONT ${pid}`);
          context.diagnostic(`${what < 3 ? 'killed' : 'halted'} ${unit} on ${name}`);
        }
        await delay(choose(3000));
        await untilReady(plan);
        await untilReady(calm);
      }
      isOver = true;
    };
    const all = [strike(), tellCalmly(), ...asks.map((_, of) => tellOn(of))];
    await Promise.all(
      all.map((one) =>
        one.catch((error: unknown) => {
          isOver = true;
          throw error;
        }),
      ),
    );
    context.diagnostic(`${stories} stories, ${calmStories} of the other ring`);
    assert.ok(stories >= asks.length);
  });
});
