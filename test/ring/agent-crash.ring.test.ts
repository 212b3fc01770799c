/**
 * An agent is killed at each of its journal's failpoints, before and after every commit, in every moment of its life that
 * passes them: the agent of the ring's head and the other one, real processes with real stages and real SQLite. Whatever
 * was admitted is finished with the same words (G6, J2, J6, J8, S2, S3, R2, R3), and what was not is refused clearly.
 *
 * `npm test` tries one case of `telling` at either agent, as seed 1 chooses (`append.after`, passing 55, and `append.before`,
 * passing 2).
 * `npm run prove:crashes` tries every case. A power loss is a kill after which the mark is as it was last synced; SQLite
 * syncs what it commits by itself.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import { eventually } from '../fixture/eventually.ts';
import {
  allCrashCases,
  caseName,
  crashHosts,
  crashSeed,
  killed,
  pointsLeftOut,
  someCrashCases,
  triesAllCrashes,
  type CrashCase,
  type CrashHost,
  type Moment,
} from './crash-cases.ts';
import { assertKilledAt, CrashRing, loseStages, type Telling } from './crash-ring.ts';

const seed = crashSeed();
const everyCase = allCrashCases(seed);
const cases = triesAllCrashes() ? everyCase : someCrashCases(everyCase, ['telling', 'telling'], seed);
const casesOf = (...of: readonly Moment[]): readonly CrashCase[] => cases.filter(({ moment }) => of.includes(moment));

/** Long enough that a story is still told when the agent has come to any of its passings: tokens share commits. */
const storyTokens = (moment: Moment): number => (moment === 'upkeep' ? 800 : 320);
/** At the reopening: the disk fails first. */
const failing = (of: CrashCase): string =>
  of.moment === 'reopening' ? `append.after:EIO:${of.host === 'local' ? 10 : 3},${killed(of)}` : killed(of);

let ring: CrashRing;

before(async () => {
  ring = await CrashRing.start(Math.max(...cases.map(({ moment }) => storyTokens(moment))));
});
after(() => ring.stop());

test('every failpoint of the journal has its cases, at the agent of the head and at the other one', () => {
  for (const host of crashHosts) assert.deepEqual(pointsLeftOut(everyCase, host), [], host);
});

/** Loads the ring while an agent may die of it. */
async function loadedUnlessDead(host: CrashHost): Promise<void> {
  try {
    await ring.load();
  } catch (error) {
    if (!(error instanceof P4Error)) throw error;
    await eventually(() => !ring.agent(host).isRunning, {
      what: `only a death keeps it from loading: ${error.message}`,
    });
  }
}

/** The agent has died where it was to: starts it again, loads the ring again, and hears the stories to their end. */
async function finished(of: CrashCase, tellings: readonly Telling[]): Promise<void> {
  const agent = ring.agent(of.host);
  assertKilledAt(of.point, agent, await agent.ended);
  await agent.start();
  await ring.load();
  await ring.toldAsEver(tellings);
}

describe('an agent that is killed while it opens its journal', () => {
  for (const host of crashHosts) {
    const own = casesOf('opening').filter((each) => each.host === host);
    if (own.length === 0) continue;
    test(`the agent of ${host}, at ${own.map(({ point }) => point).join(', ')}: its ring tells on`, async () => {
      const tellings = await ring.stories(storyTokens('opening'));
      const agent = ring.agent(host);
      await agent.kill();
      for (const each of own) assertKilledAt(each.point, agent, await agent.startInVain(killed(each)));
      await agent.start();
      await ring.load();
      await ring.toldAsEver(tellings);
      await ring.untilWhole();
    });
  }
});

describe('an agent that is killed while its ring tells', () => {
  for (const [index, of] of casesOf('telling', 'upkeep', 'reopening').entries()) {
    const losesPower = index % 2 === 1;
    test(`${caseName(of)}${losesPower ? ', with the power' : ''}`, async () => {
      const agent = ring.agent(of.host);
      const tellings = await ring.stories(storyTokens(of.moment));
      await agent.kill();
      await agent.start(failing(of));
      const mark = join(agent.config.stateFolder, 'journal.mark');
      const synced = readFileSync(mark);
      await loadedUnlessDead(of.host);
      const newcomer = ring.newcomer();
      if (of.moment === 'upkeep') await ring.writeMuch(() => !agent.isRunning);
      if (of.host !== 'local') await loseStages(ring, of.host, () => !agent.isRunning);
      await eventually(() => !agent.isRunning, { what: 'it is killed', withinMs: 60_000 });
      if (losesPower) writeFileSync(mark, synced);
      await finished(of, tellings);
      await ring.toldOrRefused(newcomer);
      await ring.untilWhole();
    });
  }
});

describe('an agent that is killed while it ends', () => {
  for (const of of casesOf('ending')) {
    test(caseName(of), async () => {
      const agent = ring.agent(of.host);
      await agent.stop();
      await agent.start(killed(of));
      await ring.load();
      const tellings = await ring.stories(storyTokens(of.moment));
      await agent.end();
      await finished(of, tellings);
      await ring.untilWhole();
    });
  }
});

test('the ring that went through all this is unloaded, and nothing of it is left', async () => {
  await ring.unload('crash');
});
