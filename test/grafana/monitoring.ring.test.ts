/**
 * A real Prometheus scrapes a ring of two agents under load, with the rules of `grafana/rules/` in windows of seconds: every
 * rule is evaluated without a fault, and every query of every panel answers, as Grafana would ask it, or is known to be empty
 * here. Then a stage is killed again and again: the ring is told as degraded, and as whole when it is left alone.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { ruleFiles } from '../../grafana/rules/rule-groups.ts';
import { scaledWindows } from '../../grafana/windows.ts';
import { present } from '../../protocol/assert.ts';
import { eventually } from '../fixture/eventually.ts';
import type { LoadedRing } from '../fixture/loaded-ring.ts';
import { LocalAgents } from '../fixture/local-agents.ts';
import { Prometheus } from './prometheus.ts';
import { RingLoad } from './ring-load.ts';
import { emptyQueries, faultyRules, unlabelledLines, untilAllRecorded, type WatchedRing } from './watched-queries.ts';

const scrapeSeconds = 1;
/** An hour lasts eight seconds, the four hours of a slope half a minute. */
const windows = scaledWindows(600, scrapeSeconds);
const hosts = ['local', 'local-2'] as const;

let agents: LocalAgents;
let ring: LoadedRing;
let prometheus: Prometheus;
let load: RingLoad;
let folder: string;

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
  load = new RingLoad(ring);
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

const watched = (): WatchedRing => ({ prometheus, windows, scrapeSeconds, ring: 'watched' });

suite('Prometheus, with a ring under load', () => {
  test('records every rule', async () => {
    await untilAllRecorded(watched(), 45_000);
  });

  test('evaluates every rule without a fault, and nothing fires', async () => {
    assert.deepEqual(await faultyRules(watched()), []);
    const fires = (await prometheus.firing()).filter((name) => !ofTimes.includes(name));
    assert.deepEqual(fires, []);
  });

  test('answers every query of every panel', async () => {
    assert.deepEqual(await emptyQueries(watched()), []);
  });

  test('gives every line of a panel labels for its legend', async () => {
    assert.deepEqual(await unlabelledLines(watched()), []);
  });
});

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
