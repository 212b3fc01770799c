/**
 * A real Prometheus scrapes a ring of two agents under load, with the rules of `grafana/rules/` in windows of seconds: every
 * rule is evaluated without a fault, and every query of every panel answers, as Grafana would ask it, or is known to be empty
 * here. Then a stage is killed again and again: the ring is told as degraded, and as whole when it is left alone.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';

import { dashboards } from '../../grafana/dashboards/dashboards.ts';
import { substituted } from '../../grafana/dashboards/grafana-variables.ts';
import type { PanelDefinition } from '../../grafana/dashboards/panel.ts';
import { ruleFiles, ruleGroups } from '../../grafana/rules/rule-groups.ts';
import { scaledWindows } from '../../grafana/windows.ts';
import { present } from '../../protocol/assert.ts';
import { eventually } from '../fixture/eventually.ts';
import type { LoadedRing } from '../fixture/loaded-ring.ts';
import { LocalAgents } from '../fixture/local-agents.ts';
import { Prometheus } from './prometheus.ts';

const scrapeSeconds = 1;
/** An hour lasts eight seconds, the four hours of a slope half a minute. */
const windows = scaledWindows(600, scrapeSeconds);
const hosts = ['local', 'local-2'] as const;

let agents: LocalAgents;
let ring: LoadedRing;
let prometheus: Prometheus;
let load: Load;
let folder: string;

/** Two requests side by side, and after each another one, until it is told to stop. */
class Load {
  readonly #done: Promise<unknown>;
  #isOver = false;

  constructor(of: LoadedRing) {
    const ask = async (prompt: string): Promise<void> => {
      while (!this.#isOver) await of.askAlone({ prompt, maxTokens: 24, ignoreEnd: true });
    };
    this.#done = Promise.all(['Once upon a time', 'A small grey cat'].map(ask));
    // A failure is told by `stop`.
    this.#done.catch(() => undefined);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#done;
  }
}

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'p4-prometheus-'));
  agents = await LocalAgents.start(hosts.length);
  const stages = [
    ['local', '0-2'],
    ['local-2', '3-7'],
  ] as const;
  ring = await agents.load({ ring: 'watched', stages });
  const targets = new Map(hosts.map((host) => [host, present(agents.agent(host).metrics, 'metrics are shown')]));
  prometheus = await Prometheus.start({ folder, scrapeSeconds, rules: ruleFiles(windows), targets });
  load = new Load(ring);
});
after(async () => {
  await load.stop();
  await prometheus.stop();
  await agents.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Alerts about times, which in windows of seconds and beside other tests are noise; the others have to be silent. */
const ofTimes: readonly string[] = [
  ...['P4RingSlow', 'P4RingDecaying', 'P4HopSlow', 'P4StageStarved', 'P4CommitSlow', 'P4EventLoopDelayed'],
];

const panels = Object.values(dashboards).flatMap(({ rows }) => rows.flatMap((row) => row.panels));
const chosen = { ring: ['watched'], host: 'all' } as const;
const inGrafana = (expression: string): string => substituted(expression, { chosen, stepSeconds: 1, scrapeSeconds });

const hasPressure = existsSync('/proc/pressure/cpu');
/** Panels some of whose queries have nothing to show in this ring, and why. */
const mayBeEmpty: Readonly<Record<string, string>> = {
  GPUs: 'a host without a GPU has no such series',
  'Calls that were refused or failed': 'none was',
  Compactions: 'the first comes after ten minutes',
  ...(hasPressure ? {} : { 'Waiting for CPU, memory, disk': 'this kernel does not count pressure' }),
};

suite('Prometheus, with a ring under load', () => {
  test('records every rule', async () => {
    const names = Object.values(ruleGroups(windows)).flatMap((groups) =>
      groups.flatMap(({ rules }) => rules.flatMap((rule) => (rule.kind === 'recording' ? [rule.name] : []))),
    );
    const missing = async (): Promise<readonly string[]> => {
      const found = await Promise.all(
        names.map(async (name) => ((await prometheus.query(name)).length > 0 ? [] : [name])),
      );
      return found.flat();
    };
    let lacking: readonly string[] = names;
    await eventually(
      async () => {
        await pause(500);
        lacking = await missing();
        return lacking.length === 0;
      },
      { what: 'all are recorded', withinMs: 45_000 },
    ).catch((error: unknown) => {
      throw new Error(`not recorded: ${lacking.join(', ')}`, { cause: error });
    });
  });

  test('evaluates every rule without a fault, and nothing fires', async () => {
    const rules = await prometheus.rules();
    const wanted = Object.values(ruleGroups(windows)).flatMap((groups) => groups.flatMap((group) => group.rules));
    assert.equal(rules.length, wanted.length);
    assert.deepEqual(
      rules.filter(({ health }) => health !== 'ok'),
      [],
    );
    const fires = (await prometheus.firing()).filter((name) => !ofTimes.includes(name));
    assert.deepEqual(fires, []);
  });

  test('answers every query of every panel', async () => {
    const answers = panels.flatMap(({ title, look, queries }) =>
      queries.map(async ({ expression }) => {
        const found = await asked(inGrafana(expression), look);
        return found ? [] : [`${title}: ${expression}`];
      }),
    );
    const empty = (await Promise.all(answers)).flat();
    const unexpected = empty.filter((line) => !Object.keys(mayBeEmpty).some((title) => line.startsWith(`${title}:`)));
    assert.deepEqual(unexpected, []);
  });

  test('gives every line of a panel labels for its legend', async () => {
    for (const { title, look, queries } of panels) {
      if (look.kind === 'table' || look.kind === 'matrix') continue;
      for (const { expression, legend } of queries) {
        const labels = [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label ?? '');
        for (const { metric } of await prometheus.query(inGrafana(expression))) {
          for (const label of labels) assert.ok(Object.hasOwn(metric, label), `${title}: ${legend} of ${expression}`);
        }
      }
    }
  });
});

/** Whether there is anything to draw. */
async function asked(expression: string, { kind }: PanelDefinition['look']): Promise<boolean> {
  const isNow = kind === 'table' || kind === 'matrix';
  const series = await (isNow ? prometheus.query(expression) : prometheus.queryRange(expression, 15));
  return series.some(({ values }) => values.some(([, value]) => value !== 'NaN'));
}

suite('a stage that is killed', () => {
  test('is told as a degraded ring, which is whole again when the stage is left alone', async () => {
    const degraded = async (): Promise<boolean> => (await prometheus.firing()).includes('P4RingDegraded');
    await eventually(
      async () => {
        const stage = await ring.node(1);
        if (stage.state === 'loaded') killed(stage.pid);
        return degraded();
      },
      { what: 'the ring is told as degraded', withinMs: 20_000 },
    );
    await eventually(async () => !(await degraded()), { what: 'the ring is told as whole', withinMs: 20_000 });
    const [restarts] = await prometheus.query('max(p4_stage_restarts_total)');
    assert.ok(Number(restarts?.values[0]?.[1]) > 0);
  });
});

/** Ends a process; one that has ended already is fine. */
function killed(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    const isGone = error instanceof Error && 'code' in error && error.code === 'ESRCH';
    if (!isGone) throw error;
  }
}
