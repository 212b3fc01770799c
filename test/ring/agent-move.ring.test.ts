/** An agent that is reached at another port than when its ring was loaded: what `load` told of it outlives the other agents. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { openJournal } from '../../agent/journal/journal.ts';
import { standingLoads } from '../../agent/standing-loads.ts';
import { present } from '../../protocol/assert.ts';
import { hostName } from '../../protocol/ids.ts';
import { LocalAgents, type RingPlan } from '../fixture/local-agents.ts';

const plan: RingPlan = {
  ring: 'moves',
  deadline: 50,
  stages: [
    ['local', '0-3'],
    ['local-2', '4-7'],
  ],
};

describe('a ring of which an agent moves', () => {
  let agents: LocalAgents;
  before(async () => {
    agents = await LocalAgents.start(2);
  });
  after(() => agents.stop());

  /** What an agent that starts now would find. */
  async function kept(host: string): Promise<{ readonly ports: readonly number[]; readonly deadlineSeconds: number }> {
    const { stateFolder: folder, journalLimitBytes: limitBytes } = agents.agent(host).config;
    const journal = await openJournal({ folder, limitBytes });
    try {
      const [load] = await standingLoads(journal, hostName(host));
      const { terms } = present(load, 'a load stands').restored;
      return { ports: terms.addresses.map(({ port }) => port), deadlineSeconds: terms.deadlineSeconds };
    } finally {
      await journal.close();
    }
  }

  test('is ready again by the same plan, and the other agent keeps where it moved to (G6)', async () => {
    await agents.load(plan);
    const before = agents.hosts.map((host) => agents.agent(host).port);
    await agents.move('local-2');
    const now = agents.hosts.map((host) => agents.agent(host).port);
    assert.notDeepEqual(now, before);
    const ring = await agents.load({ ...plan, deadline: 20 });
    const { tokens } = await ring.askAlone({ prompt: 'Once upon a time', maxTokens: 8, ignoreEnd: true });
    assert.equal(tokens.length, 8);
    await agents.agent('local').kill();
    assert.deepEqual(await kept('local'), { ports: now, deadlineSeconds: 20 });
    await agents.agent('local').start();
    await agents.load({ ...plan, deadline: 20 });
    await agents.agent('local').kill();
    assert.deepEqual(await kept('local'), { ports: now, deadlineSeconds: 20 }, 'the same terms again change nothing');
    await agents.agent('local').start();
  });
});
