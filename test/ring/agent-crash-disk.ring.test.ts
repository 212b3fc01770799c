/**
 * The disk of an agent's journal answers EIO, then ENOSPC, at each of the journal's failpoints, in every moment of an
 * agent's life that passes them: with real stages, at the agent of the ring's head and at the other one. The agent stops
 * admitting and says why, goes on when the disk does, or ends with one clear error; nothing that was told is lost (J1, J2,
 * J8). An error after a write is what a failed sync looks like: what was written is not believed.
 *
 * `npm test` tries one case of `telling` at the agent of the head, as seed 1 chooses (`append.after`, passing 55). `npm run prove:crashes` tries every
 * case.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { eventually } from '../fixture/eventually.ts';
import type { AgentEnd } from '../fixture/local-agents.ts';
import {
  allCrashCases,
  caseName,
  crashHosts,
  crashSeed,
  erring,
  oneOfEach,
  someCrashCases,
  triesAllCrashes,
  type CrashCase,
  type CrashHost,
  type Moment,
} from './crash-cases.ts';
import { CrashRing, errorsMet, inTheEnd, loseStages, planOf, saidArmed, type Telling } from './crash-ring.ts';

const seed = crashSeed();
const everyCase = oneOfEach(allCrashCases(seed));
const cases = triesAllCrashes() ? everyCase : someCrashCases(everyCase, ['telling'], seed);
const casesOf = (...of: readonly Moment[]): readonly CrashCase[] => cases.filter(({ moment }) => of.includes(moment));
const storyTokens = (moment: Moment): number => (moment === 'upkeep' ? 800 : 320);

/** The disk fails before the journal is opened again, and for long enough that callers meet it: some tries more. */
const lasting = (of: CrashCase): string =>
  of.moment === 'reopening'
    ? `append.after:EIO:${of.host === crashHosts[0] ? 10 : 3},${erring(of)}`
    : `${erring(of)},open.before:EIO:2,open.before:EIO:3`;

let ring: CrashRing;

before(async () => {
  ring = await CrashRing.start(Math.max(...cases.map(({ moment }) => storyTokens(moment))));
});
after(() => ring.stop());

function assertEndedWith(code: string, { log }: { readonly log: string }, end: AgentEnd): void {
  assert.deepEqual([end.status, end.signal], [4, null], log.slice(-2000));
  assert.match(end.out, new RegExp(`"event":"failed","code":"${code}"`));
  assert.match(log.slice(-2000), new RegExp(`^${code}: `, 'm'));
}

const journalOf = async (host: CrashHost) =>
  present((await ring.agents.status(host)).journal, 'it tells of its journal');
/** Times that an agent was seen to refuse. */
const refused = new Map<CrashHost, number>(crashHosts.map((host) => [host, 0]));

/** While its journal cannot be written, an agent says so and admits nothing. */
async function refuses(host: CrashHost): Promise<void> {
  const { state, reason } = await journalOf(host);
  // It is opened again after some seconds: this may come too late to meet it.
  if (state === 'open') return;
  assert.equal(state, 'failed');
  assert.match(reason, /^JOURNAL_WRITE_FAILED: [^]*(EIO|ENOSPC) at a failpoint/);
  try {
    await ring.agents.load(planOf('other'));
  } catch (refusal) {
    if (!(refusal instanceof P4Error)) throw refusal;
    assert.equal(refusal.code, 'JOURNAL_WRITE_FAILED', refusal.message);
    refused.set(host, (refused.get(host) ?? 0) + 1);
    return;
  }
  assert.ok(await ring.hasJournal(host), 'nothing is admitted before the journal can be written');
  await ring.unload('other');
}

describe('a disk that fails while an agent opens its journal', () => {
  for (const host of crashHosts) {
    const own = casesOf('opening').filter((each) => each.host === host);
    if (own.length === 0) continue;
    test(`the agent of ${host}, at ${own.map(({ point }) => point).join(', ')}: it says why it does not come up`, async () => {
      const tellings = await ring.stories(storyTokens('opening'));
      const agent = ring.agent(host);
      await agent.kill();
      for (const { point } of own) {
        for (const error of ['EIO', 'ENOSPC']) {
          const end = await agent.startInVain(`${point}:${error}`);
          assert.deepEqual(errorsMet(agent, point), [error]);
          assertEndedWith('JOURNAL_UNWRITABLE', agent, end);
        }
      }
      await agent.start();
      await ring.load();
      await ring.toldAsEver(tellings);
      await ring.untilWhole();
    });
  }
});

describe('a disk that fails while a ring tells', () => {
  for (const of of casesOf('telling', 'upkeep', 'reopening')) {
    test(caseName(of), async () => {
      const { host, point } = of;
      const agent = ring.agent(host);
      const tellings = await ring.stories(storyTokens(of.moment));
      await agent.kill();
      await agent.start(lasting(of));
      const metBoth = (): boolean => errorsMet(agent, point).length === 2;
      const seen = eventually(() => saidArmed(agent).includes('"journal-failed"'), {
        what: 'the journal fails',
        withinMs: 60_000,
      }).then(() => refuses(host));
      await inTheEnd(() => ring.load());
      if (of.moment === 'upkeep') await ring.writeMuch(() => saidArmed(agent).includes('"journal-failed"'));
      if (host !== crashHosts[0]) await loseStages(ring, host, metBoth);
      await seen;
      await ring.toldAsEver(tellings);
      if (!metBoth()) {
        // What is left to meet is met when it ends.
        assertEndedWith('JOURNAL_WRITE_FAILED', agent, await agent.end());
        assert.ok(metBoth());
        await agent.start();
        await ring.load();
        await ring.toldAsEver(tellings);
      }
      await eventually(() => ring.hasJournal(host), { what: 'its journal is written again' });
      await ring.untilWhole();
    });
  }
});

describe('a disk that fails while an agent ends', () => {
  for (const of of casesOf('ending')) {
    test(caseName(of), async () => {
      const { host, point, nth } = of;
      const agent = ring.agent(host);
      await agent.stop();
      let tellings: readonly Telling[] = [];
      for (const error of ['EIO', 'ENOSPC']) {
        await agent.start(`${point}:${error}:${nth}`);
        await ring.load();
        if (tellings.length === 0) tellings = await ring.stories(storyTokens(of.moment));
        assertEndedWith('JOURNAL_WRITE_FAILED', agent, await agent.end());
        assert.deepEqual(errorsMet(agent, point), [error]);
      }
      await agent.start();
      await ring.load();
      await ring.toldAsEver(tellings);
      await ring.untilWhole();
    });
  }
});

test('the ring that went through all this is unloaded, and nothing of it is left', async () => {
  for (const host of new Set(casesOf('telling').map((of) => of.host)))
    assert.ok((refused.get(host) ?? 0) > 0, `the agent of ${host} refused what came meanwhile`);
  await ring.unload('crash');
});
