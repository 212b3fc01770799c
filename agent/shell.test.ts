import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { P4Error } from '../protocol/errors.ts';
import { open, load, readyAgent, right, ring, call } from '../test/simulation/toy-agent.ts';
import { nodeIndex, sessionId, tokenId } from '../protocol/ids.ts';
import { defaultSampling } from '../protocol/sampling.ts';
import type { Effect } from './effects.ts';
import type { Input } from './inputs.ts';
import { Shell, type EffectRunners } from './shell.ts';

const submitted: Input = {
  kind: 'submit',
  call: call(5),
  ring,
  generation: right,
  session: sessionId(1),
  prompt: [1, 2].map(tokenId),
  sampling: defaultSampling,
  stopStrings: [],
  maxTokens: 3,
  ignoreEnd: false,
};

/** A shell over a ready ring with one open session, and all that happens in it in order. */
function watchedShell(onFrame: (shell: Shell) => void): {
  shell: Shell;
  happened: string[];
  finishCommits: () => Promise<void>;
} {
  const happened: string[] = [];
  const commits: (() => void)[] = [];
  const note = (effect: Effect): void => {
    happened.push(effect.kind);
    if (effect.kind === 'send-frame') onFrame(shell);
  };
  const runners: EffectRunners = {
    reply: note,
    'start-stage': note,
    'stop-stage': note,
    'dial-links': note,
    'cut-ring': note,
    'send-frame': note,
    'await-probe': note,
    'publish-begin': note,
    'publish-token': note,
    'publish-end': note,
    'end-lease': note,
  };
  const shell = new Shell({
    initial: open(readyAgent(), 4).turnAll().state,
    journal: {
      admission: () => ({ kind: 'admitted' }),
      commit: (records) => {
        happened.push(`commit ${records.map(({ kind }) => kind).join()}`);
        return new Promise((resolve) => commits.push(resolve));
      },
    },
    runners,
    abandon: (effect) => happened.push(`abandoned ${effect.kind}`),
    log: () => undefined,
  });
  const finishCommits = async (): Promise<void> => {
    for (const finish of commits.splice(0)) finish();
    await shell.settled();
    // The effects behind the last commit run in the turn of the event loop in which it resolves.
    await new Promise(setImmediate);
  };
  return { shell, happened, finishCommits };
}

describe('the shell', () => {
  it('sends a frame before it hands records over (J7), and tells a caller when they are durable (J2)', async () => {
    const { shell, happened, finishCommits } = watchedShell(() => undefined);
    shell.dispatch(submitted);
    assert.deepEqual(happened, ['send-frame', 'commit request-admitted']);
    await finishCommits();
    assert.deepEqual(happened.slice(2), ['publish-begin', 'reply']);
  });

  it('commits records in the order of their steps, even when an effect brings the next step', async () => {
    let isFirst = true;
    const { shell, happened, finishCommits } = watchedShell((within) => {
      if (!isFirst) return;
      isFirst = false;
      within.dispatch({
        kind: 'stage-lost',
        ring,
        load,
        node: nodeIndex(0),
        incarnation: 1,
        error: new P4Error('STAGE_LOST'),
      });
    });
    shell.dispatch(submitted);
    const commits = happened.filter((what) => what.startsWith('commit'));
    assert.equal(commits[0], 'commit request-admitted');
    assert.match(commits[1] ?? '', /request-ended/);
    assert.equal(commits.length, 2);
    await finishCommits();
    assert.ok(happened.includes('publish-end'));
    assert.ok(!happened.some((what) => what.startsWith('abandoned')));
  });
});
