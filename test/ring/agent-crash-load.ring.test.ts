/**
 * An agent's journal fails while a ring is loaded for the first time, and while it makes room: the agent is killed at each
 * failpoint that it passes then, or its disk answers EIO, then ENOSPC. The same load again comes to the ring, or an unload
 * takes down whatever is there (G6, J1, J2, J4); a journal that was full has room again.
 *
 * `npm test` tries one kill while a ring is loaded, as seed 1 chooses (`append.after`, passing 2, the agent of the head);
 * `npm run prove:crashes` tries every case.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { eventually } from '../fixture/eventually.ts';
import type { TestAgent } from '../fixture/local-agents.ts';
import {
  allCrashCases,
  caseName,
  crashHosts,
  crashSeed,
  erring,
  killed,
  someCrashCases,
  triesAllCrashes,
  type CrashCase,
  type Moment,
} from './crash-cases.ts';
import { assertKilledAt, CrashRing, errorsMet, inTheEnd, refusals } from './crash-ring.ts';
import { fillWithExpired } from './filled-journal.ts';

const seed = crashSeed();
const everyCase = allCrashCases(seed);
const cases = triesAllCrashes() ? everyCase : someCrashCases(everyCase, ['loading'], seed);
const casesOf = (moment: Moment): readonly CrashCase[] => cases.filter((each) => each.moment === moment);
const erringCases = triesAllCrashes() ? casesOf('loading') : [];

let ring: CrashRing;

before(async () => {
  ring = await CrashRing.start(12);
  await ring.unload('crash');
});
after(() => ring.stop());

describe('an agent that is killed while a ring is loaded for the first time', () => {
  for (const [index, of] of casesOf('loading').entries()) {
    const isMended = index % 2 === 0;
    test(`${caseName(of)}: ${isMended ? 'the same load again mends it' : 'an unload takes it down'}`, async () => {
      await ring.mend();
      const agent = ring.agent(of.host);
      await agent.stop();
      await agent.start(killed(of));
      await assert.rejects(ring.loaded('fresh'), P4Error);
      await eventually(() => !agent.isRunning, { what: 'it is killed' });
      assertKilledAt(of.point, agent, await agent.ended);
      await agent.start();
      const begun = ring.kept('fresh');
      if (isMended) {
        const fresh = await ring.loaded('fresh');
        if (begun?.phase === 'loading') assert.equal(fresh.generation.toString(), begun.generation);
        await ring.tellsAsEver(fresh);
      }
      if (ring.kept('fresh')?.phase !== 'failed') await ring.unload('fresh');
      else await ring.nothingLeft('fresh');
    });
  }
});

/** Tries to load a ring: false while its agent has no room for it, or is gone. */
async function isRoomLoaded(): Promise<boolean> {
  try {
    await ring.loaded('room');
    return true;
  } catch (error) {
    if (error instanceof P4Error && (error.code === 'JOURNAL_FULL' || refusals.has(error.code))) return false;
    throw error;
  }
}

/** Cases of one host that one full journal serves: pages are given back once, and then it has room. */
const roomCases = crashHosts
  .flatMap((host) => {
    const own = casesOf('making room').filter((each) => each.host === host);
    return [own.filter(({ point }) => point !== 'vacuum.after'), own.filter(({ point }) => point === 'vacuum.after')];
  })
  .filter(({ length }) => length > 0);
const roomName = (group: readonly CrashCase[]): string => group.map(caseName).join('; ');

/** The agent of these cases, its journal full. */
async function fullAgent(group: readonly CrashCase[]): Promise<TestAgent> {
  await ring.mend();
  const agent = ring.agent(present(group[0], 'a group has a case').host);
  await agent.stop();
  await fillWithExpired(agent.config);
  return agent;
}

describe('an agent that is killed while it makes room', () => {
  for (const group of roomCases) {
    test(roomName(group), async () => {
      const agent = await fullAgent(group);
      const isDead = async (): Promise<boolean> => {
        await isRoomLoaded();
        return !agent.isRunning;
      };
      for (const of of group) {
        await agent.start(killed(of));
        await eventually(isDead, { what: 'it is killed', withinMs: 60_000 });
        assertKilledAt(of.point, agent, await agent.ended);
      }
      await agent.start();
      await eventually(isRoomLoaded, { what: 'there is room again', withinMs: 60_000 });
      await ring.tellsAsEver(await ring.loaded('room'));
      await ring.unload('room');
    });
  }
});

describe('a disk that fails while a ring is loaded for the first time', () => {
  for (const of of erringCases) {
    test(caseName(of), async () => {
      await ring.mend();
      const agent = ring.agent(of.host);
      await agent.stop();
      await agent.start(erring(of));
      await inTheEnd(async () => ring.tellsAsEver(await ring.loaded('fresh')));
      assert.equal(errorsMet(agent, of.point)[0], 'EIO');
      await eventually(() => ring.hasJournal(of.host), { what: 'its journal is written again' });
      await ring.unload('fresh');
    });
  }
});

describe('a disk that fails while an agent makes room', () => {
  for (const group of roomCases) {
    test(roomName(group), async () => {
      const agent = await fullAgent(group);
      await agent.start(group.map(erring).join());
      await inTheEnd(async () => ring.tellsAsEver(await ring.loaded('room')));
      const haveFailed = (): boolean => group.every(({ point }) => errorsMet(agent, point).includes('EIO'));
      await eventually(haveFailed, { what: 'all have failed', withinMs: 60_000 });
      await eventually(() => ring.hasJournal(group[0]?.host ?? 'local'), { what: 'its journal is written again' });
      await ring.unload('room');
    });
  }
});
