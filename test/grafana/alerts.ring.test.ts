/**
 * Alerts that are raised by a real cause and clear when it is gone, under a real Prometheus whose windows are seconds.
 *
 * `npm test` fills a journal. `npm run prove:alerts` also has a ring decay, by a journal whose appends read all that was
 * appended, and takes a stage's CPU away.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { constants, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';

import { ruleFiles } from '../../grafana/rules/rule-groups.ts';
import { scaledWindows } from '../../grafana/windows.ts';
import { present } from '../../protocol/assert.ts';
import { limits } from '../../protocol/limits.ts';
import { LocalAgents, type RingPlan } from '../fixture/local-agents.ts';
import { fillJournalTo } from '../ring/filled-journal.ts';
import { AlertWatch, isLong } from './alert-watch.ts';
import { plantedEnvironment, type Plant } from './plants.ts';
import { Prometheus } from './prometheus.ts';
import { RingLoad } from './ring-load.ts';

const scrapeSeconds = 1;

const decaying: RingPlan = {
  ring: 'decaying',
  stages: [
    ['local', '0-2'],
    ['local-2', '3-7'],
  ],
};
const asks = ['Once upon a time', 'A small grey cat'].map((prompt) => ({ prompt, maxTokens: 48, ignoreEnd: true }));
/** As long as a ring that decays takes to be told, and longer: an hour, two of a slope, an hour of it, of 10 s each. */
const silentMs = 50_000;
/** A stage that decodes a few tokens computes for less than the scheduler lets it run at a time. */
const longPrompts = ['cat ', 'dog '].map((word) => ({ prompt: word.repeat(150), maxTokens: 8, ignoreEnd: true }));

interface Watched {
  readonly agents: LocalAgents;
  readonly prometheus: Prometheus;
  /** What ends with the test, the last first. */
  readonly ends: (() => unknown)[];
}

/** Agents, and a Prometheus whose windows are `factor` times as short as the real ones; all ends with the test. */
async function watched(context: TestContext, hosts: number, factor: number): Promise<Watched> {
  const ends: Watched['ends'] = [];
  context.after(async () => {
    for (const end of ends.reverse()) await end();
  });
  const folder = mkdtempSync(join(tmpdir(), 'p4-prometheus-'));
  ends.push(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  const agents = await LocalAgents.start(hosts);
  ends.push(() => agents.stop());
  const targets = new Map(
    agents.hosts.map((host) => [host, present(agents.agent(host).metrics, 'metrics are shown')] as const),
  );
  const rules = ruleFiles(scaledWindows(factor, scrapeSeconds));
  const prometheus = await Prometheus.start({ folder, scrapeSeconds, rules, targets });
  ends.push(() => prometheus.stop());
  return { agents, prometheus, ends };
}

/** What else this machine does is not to be the cause: a process, and those that it starts from now on, goes first. */
function favour(pid: number): void {
  if (process.getuid?.() === 0) setPriority(pid, constants.priority.PRIORITY_HIGHEST);
}

suite('a journal that is filled to more than 85% of its limit', () => {
  test('is told as near its limit, until its agent has a larger one', async (context) => {
    const { agents, prometheus } = await watched(context, 1, 600);
    const agent = agents.agent('local');
    const alert = new AlertWatch(prometheus, 'P4JournalNearLimit', 'host:p4_journal_full:ratio');
    await alert.untilClear(15_000);
    await agent.stop();
    await fillJournalTo(0.9, agent.config);
    await agent.start();
    context.diagnostic(`fires after ${await alert.untilFires(30_000)} s`);
    await agent.stop();
    agent.config = { ...agent.config, journalLimitBytes: 2 * limits.journalLeastBytes };
    await agent.start();
    context.diagnostic(`clears after ${await alert.untilClear(30_000)} s`);
    await alert.staysSilent(5_000);
  });
});

if (isLong) {
  suite('an append that takes the longer the more was appended', () => {
    test('is told as a ring that decays, until the agent is itself again', async (context) => {
      const { agents, prometheus, ends } = await watched(context, 2, 360);
      let load: RingLoad | null = null;
      ends.push(() => load?.stop());
      const begin = async (plants: readonly Plant[]): Promise<void> => {
        await load?.stop();
        load = null;
        for (const host of agents.hosts) {
          const agent = agents.agent(host);
          await agent.stop();
          agent.environment = plantedEnvironment(plants);
          await agent.start();
          favour(agent.pid);
        }
        // The same load each time: its stages ended with their agents.
        load = new RingLoad(await agents.load(decaying), asks);
      };
      await begin(['slow-decode']);
      const alert = new AlertWatch(
        ...[prometheus, 'P4RingDecaying', '{__name__=~"ring:p4_speed:(ratio|slope|median|baseline)"}'],
      );
      await alert.staysSilent(silentMs);
      await begin(['slow-decode', 'journal-walk']);
      context.diagnostic(`fires after ${await alert.untilFires(150_000)} s`);
      await begin(['slow-decode']);
      context.diagnostic(`clears after ${await alert.untilClear(90_000)} s`);
      await alert.staysSilent(silentMs);
    });
  });

  suite('a stage whose CPU others take', () => {
    test('is told as starved, until they end', async (context) => {
      const { agents, prometheus, ends } = await watched(context, 1, 600);
      const { cpuGroups } = await agents.fleet.describe(
        present(agents.hosts[0], 'a host'),
        AbortSignal.timeout(10_000),
      );
      const cpu = Number.parseInt(present(cpuGroups[0]?.cores[0], 'a machine has a CPU'), 10);
      const stages = [['local', '0-7', { threads: 1, cpus: String(cpu) }]] as const;
      favour(agents.agent('local').pid);
      const ring = await agents.load({ ring: 'starved', stages });
      const load = new RingLoad(ring, longPrompts);
      ends.push(() => load.stop());
      const alert = new AlertWatch(prometheus, 'P4StageStarved', 'stage:p4_cpu_per_compute:ratio');
      // What else this machine does may take the CPU away as well, for a while.
      await alert.untilCalm(5_000, 60_000);
      const loops = Array.from({ length: 6 }, () =>
        spawn('taskset', ['--cpu-list', String(cpu), 'sh', '-c', 'while :; do :; done'], { stdio: 'ignore' }),
      );
      loops.forEach(({ pid }) => {
        favour(present(pid, 'a started process has a number'));
      });
      const end = async (): Promise<void> => {
        const running = loops.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
        await Promise.all(
          running.map(async (loop) => {
            const exit = once(loop, 'exit');
            loop.kill('SIGKILL');
            await exit;
          }),
        );
      };
      try {
        context.diagnostic(`fires after ${await alert.untilFires(60_000)} s`);
      } finally {
        await end();
      }
      context.diagnostic(`clears after ${await alert.untilClear(90_000)} s`);
      await alert.untilCalm(5_000, 60_000);
    });
  });
}
