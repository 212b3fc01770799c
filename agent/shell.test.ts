import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { P4Error } from '../protocol/errors.ts';
import { open, load, readyAgent, right, ring, call } from '../test/simulation/toy-agent.ts';
import { nodeIndex, requestId, sessionId, tokenId } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
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
  failCommits: () => Promise<void>;
} {
  const happened: string[] = [];
  const commits: { finish: () => void; fail: (error: P4Error) => void }[] = [];
  const note = (effect: Effect): void => {
    happened.push(effect.kind);
    if (effect.kind === 'send-frame') onFrame(shell);
  };
  const runners: EffectRunners = {
    reply: note,
    'start-stage': note,
    'stop-stage': note,
    'attach-stage': note,
    'await-retry': note,
    'await-deadline': note,
    'await-lease': note,
    'publish-pause': note,
    'publish-resume': note,
    'dial-links': note,
    'cut-ring': note,
    'tell-loading': note,
    'send-frame': note,
    'await-probe': note,
    'publish-begin': note,
    'publish-token': note,
    'publish-end': note,
    'end-lease': note,
    'serve-queue': note,
  };
  const shell = new Shell({
    initial: open(readyAgent(), 4).turnAll().state,
    journal: {
      admission: () => ({ kind: 'admitted' }),
      commit: (records) => {
        happened.push(`commit ${records.map(({ kind }) => kind).join()}`);
        return new Promise((resolve, reject) => commits.push({ finish: resolve, fail: reject }));
      },
      reopen: () => {
        happened.push('reopen');
        return Promise.resolve();
      },
    },
    runners,
    onJournal: (failure) => happened.push(`journal ${failure?.code ?? 'open'}`),
    log: () => undefined,
    meter: null,
  });
  // The effects behind a commit run in the turn of the event loop in which it resolves.
  const finishCommits = async (): Promise<void> => {
    for (const { finish } of commits.splice(0)) finish();
    await new Promise(setImmediate);
  };
  const failCommits = async (): Promise<void> => {
    for (const { fail } of commits.splice(0)) fail(new P4Error('JOURNAL_WRITE_FAILED', { why: 'no space' }));
    await new Promise(setImmediate);
  };
  return { shell, happened, finishCommits, failCommits };
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
        atMs: 0,
      });
    });
    shell.dispatch(submitted);
    const commits = happened.filter((what) => what.startsWith('commit'));
    assert.equal(commits[0], 'commit request-admitted');
    assert.match(commits[1] ?? '', /ring-suspended/);
    assert.equal(commits.length, 2);
    await finishCommits();
    assert.ok(happened.includes('publish-begin'));
  });

  it('keeps what the journal could not take, says so, and writes it in order when it can again', async (context) => {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    const { shell, happened, finishCommits, failCommits } = watchedShell(() => undefined);
    shell.dispatch(submitted);
    shell.dispatch({
      kind: 'cancel',
      call: call(6),
      ring,
      generation: right,
      session: sessionId(1),
      request: requestId(1),
    });
    await failCommits();
    const failed = happened.indexOf('journal JOURNAL_WRITE_FAILED');
    assert.deepEqual(happened.slice(failed), ['journal JOURNAL_WRITE_FAILED', 'reply', 'reply'], 'callers do not wait');
    assert.equal(shell.journalFailure?.code, 'JOURNAL_WRITE_FAILED');
    shell.dispatch({ kind: 'close-session', call: call(7), ring, generation: right, session: sessionId(1) });
    assert.equal(happened.at(-1), 'reply');
    const before = happened.length;
    context.mock.timers.tick(limits.journalRetryMs);
    await new Promise(setImmediate);
    assert.deepEqual(happened.slice(before), [
      'reopen',
      'journal open',
      'commit request-admitted',
      'commit request-ended',
      'commit session-closed',
    ]);
    await finishCommits();
    assert.deepEqual(happened.slice(before + 5), ['publish-begin', 'publish-end', 'end-lease']);
    assert.equal(shell.journalFailure, null);
  });

  it('has a journal opened again that failed in its own work, with no commit to tell of it', async (context) => {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    const { shell, happened } = watchedShell(() => undefined);
    const error = new P4Error('JOURNAL_WRITE_FAILED', { folder: '/journal', why: 'EIO' });
    shell.journalFailed(error);
    shell.journalFailed(new P4Error('JOURNAL_WRITE_FAILED', { folder: '/journal', why: 'again' }));
    assert.equal(shell.journalFailure, error);
    context.mock.timers.tick(limits.journalRetryMs);
    await new Promise(setImmediate);
    assert.deepEqual(happened, ['journal JOURNAL_WRITE_FAILED', 'reopen', 'journal open']);
    assert.equal(shell.journalFailure, null);
  });
});
