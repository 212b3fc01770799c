import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { generation, hostName, loadId, ringName } from '../protocol/ids.ts';
import type { Failure } from './failure.ts';
import {
  beginLoad,
  loaderStep,
  type KeptLoad,
  type LoaderEffect,
  type LoaderInput,
  type LoaderState,
  type LoadName,
  type LoadOrder,
  type LoadOutcome,
} from './loader-step.ts';

const [one, two, three] = [hostName('one'), hostName('two'), hostName('three')];
const order: LoadOrder = { ring: ringName('tale'), planDigest: 'a'.repeat(64), hosts: [one, two, three] };
const fresh: LoadName = { generation: generation('17592186044417'), loadId: loadId('0'.repeat(32)) };
const earlier: KeptLoad = {
  generation: generation('7'),
  loadId: loadId('1'.repeat(32)),
  planDigest: order.planDigest,
  phase: 'ready',
};
const refusal: Failure = { code: 'AGENT_NOT_STARTED', facts: { host: 'two' } };
const unknown: Failure = { code: 'RING_UNKNOWN', facts: {} };
const taken: Failure = { code: 'RING_TAKEN', facts: {} };
const mismatch: Failure = { code: 'GENERATION_MISMATCH', facts: {} };
const unanswered: Failure = { code: 'AGENT_UNREACHABLE', facts: {} };
const cancelled: Failure = { code: 'CANCELLED', facts: {} };

/** Runs the inputs and collects what the loader asks for. */
class Run {
  state: LoaderState = beginLoad(order);
  readonly effects: LoaderEffect[] = [];

  give(...inputs: readonly LoaderInput[]): this {
    for (const input of inputs) {
      const { state, effects } = loaderStep(this.state, input);
      this.state = state;
      this.effects.push(...effects);
    }
    return this;
  }

  /** Effects as short words since the last call. */
  words(): string[] {
    return this.effects.splice(0).map(wordOf);
  }

  get outcome(): LoadOutcome | null {
    const finish = this.effects.find((effect) => effect.kind === 'finish');
    return finish?.kind === 'finish' ? finish.outcome : null;
  }
}

const wordOf = (effect: LoaderEffect): string => {
  if (effect.kind === 'keep') return `keep ${effect.phase}`;
  if (effect.kind === 'restore') return 'restore';
  if (effect.kind === 'finish') return `finish ${effect.outcome.kind}`;
  return `${effect.kind === 'abandon' ? 'abandon ' : ''}${effect.command} ${effect.host}`;
};

const begin = (kept: KeptLoad | null): LoaderInput => ({ kind: 'begin', kept, fresh });
const kept: LoaderInput = { kind: 'kept' };
const unloadFailed = (host: typeof one, failure: Failure): LoaderInput => ({
  kind: 'failed',
  command: 'unload',
  host,
  failure,
});
const done = (command: 'load' | 'link' | 'probe' | 'unload', ...hosts: (typeof one)[]): LoaderInput[] =>
  hosts.map((host) => ({ kind: 'done', command, host }));

describe('the loader', () => {
  test('writes the generation down, loads everywhere, links everywhere, probes at the head, and says ready', () => {
    const run = new Run().give(begin(null));
    assert.deepEqual(run.words(), ['keep loading'], 'G2: nothing is sent before the file is durable');
    assert.deepEqual(run.give(kept).words(), ['load one', 'load two', 'load three']);
    assert.deepEqual(run.give(...done('load', three, one)).words(), []);
    assert.deepEqual(run.give(...done('load', two)).words(), ['link one', 'link two', 'link three']);
    assert.deepEqual(run.give(...done('link', one, two, three)).words(), ['probe one']);
    assert.deepEqual(run.give(...done('probe', one)).words(), ['keep ready']);
    run.give(kept);
    assert.deepEqual(run.outcome, { kind: 'ready', load: fresh, replayed: false });
  });

  test('tells a kept load with the same plan again, under its own generation', () => {
    for (const phase of ['loading', 'ready'] as const) {
      const run = new Run().give(begin({ ...earlier, phase }), kept);
      const loads = run.effects.filter((effect) => effect.kind === 'command');
      assert.deepEqual(
        loads.map((effect) => effect.load.generation),
        [earlier.generation, earlier.generation, earlier.generation],
      );
    }
  });

  test('takes a new generation after an unload or a failed load', () => {
    for (const phase of ['unloaded', 'failed'] as const) {
      const run = new Run().give(begin({ ...earlier, phase }));
      assert.deepEqual(run.effects, [{ kind: 'keep', load: fresh, phase: 'loading' }]);
    }
  });

  test('refuses another plan while the ring is loaded, and sends nothing', () => {
    const run = new Run().give(begin({ ...earlier, planDigest: 'b'.repeat(64) }));
    assert.deepEqual(run.effects.length, 1);
    assert.ok(run.outcome?.kind === 'failed' && run.outcome.failure.code === 'RING_LOADED');
  });

  test('does not tell a load again whose unload was cut short, and sends nothing', () => {
    const run = new Run().give(begin({ ...earlier, phase: 'unloading' }));
    assert.equal(run.effects.length, 1);
    assert.ok(run.outcome?.kind === 'failed' && run.outcome.failure.code === 'RING_HALF_UNLOADED');
  });

  test('sends nothing when the generation cannot be written down', () => {
    const run = new Run().give(begin(null), { kind: 'keep-failed', failure: refusal });
    assert.deepEqual(run.words(), ['keep loading', 'finish failed']);
  });

  test('takes a failed load from every agent again, then marks it failed', () => {
    const run = new Run().give(begin(null), kept, ...done('load', one));
    run.words();
    run.give({ kind: 'failed', command: 'load', host: two, failure: refusal });
    assert.deepEqual(run.words(), ['unload one', 'unload two', 'unload three']);
    run.give(...done('unload', one, three), { kind: 'failed', command: 'unload', host: two, failure: unknown });
    assert.deepEqual(run.words(), [], "the third agent's Load is not answered yet");
    run.give({ kind: 'failed', command: 'load', host: three, failure: refusal });
    assert.deepEqual(run.words(), ['keep failed']);
    run.give(kept);
    const expected = { kind: 'failed', failure: refusal, host: two, withdrawn: [one, three], left: [] };
    assert.deepEqual(run.outcome, expected);
  });

  test('unloads again what an Unload has overtaken', () => {
    const run = new Run().give(begin(null), kept, ...done('load', one, two), { kind: 'cancel', failure: cancelled });
    run.give(...done('unload', one, two), { kind: 'failed', command: 'unload', host: three, failure: unknown });
    run.words();
    assert.deepEqual(run.give(...done('load', three)).words(), ['unload three']);
    assert.deepEqual(run.give(...done('unload', three)).words(), ['keep failed']);
  });

  test('keeps the load in its file while an agent may still hold it', () => {
    const run = new Run().give(begin(null), kept, ...done('load', one, two, three));
    run.give({ kind: 'failed', command: 'link', host: two, failure: refusal }, ...done('unload', one, three));
    run.give({ kind: 'failed', command: 'unload', host: two, failure: refusal });
    assert.deepEqual(run.words().slice(-1), ['keep loading']);
    run.give({ kind: 'keep-failed', failure: refusal });
    assert.ok(run.outcome?.kind === 'failed' && run.outcome.left[0]?.host === two);
  });

  test('leaves no generation behind where every agent refused the load', () => {
    const run = new Run().give(begin({ ...earlier, phase: 'unloaded' }), kept);
    run.words();
    run.give({ kind: 'failed', command: 'load', host: two, failure: taken });
    run.give(...[one, two, three].map((host): LoaderInput => unloadFailed(host, mismatch)));
    run.give({ kind: 'failed', command: 'load', host: one, failure: taken });
    assert.deepEqual(run.words(), ['unload one', 'unload two', 'unload three']);
    run.give({ kind: 'failed', command: 'load', host: three, failure: taken });
    assert.deepEqual(run.effects, [{ kind: 'restore', load: fresh }]);
    run.effects.splice(0);
    run.give(kept);
    assert.deepEqual(run.outcome, { kind: 'failed', failure: taken, host: two, withdrawn: [], left: [] });
  });

  test('keeps the generation where an agent had taken it, gave no answer, or may hold it', () => {
    const ends: readonly (readonly [LoaderInput, LoaderInput])[] = [
      [
        { kind: 'done', command: 'load', host: one },
        { kind: 'done', command: 'unload', host: one },
      ],
      [{ kind: 'done', command: 'load', host: one }, unloadFailed(one, unknown)],
      [{ kind: 'failed', command: 'load', host: one, failure: unanswered }, unloadFailed(one, unknown)],
    ];
    for (const [loaded, unloaded] of ends) {
      const run = new Run().give(begin(null), kept, loaded);
      run.give(...[two, three].map((host): LoaderInput => ({ kind: 'failed', command: 'load', host, failure: taken })));
      run.give(unloaded, unloadFailed(two, mismatch), unloadFailed(three, mismatch));
      assert.equal(run.words().at(-1), 'keep failed');
    }
    const run = new Run().give(begin(null), kept);
    run.give(
      ...[one, two, three].map((host): LoaderInput => ({ kind: 'failed', command: 'load', host, failure: taken })),
    );
    run.give(unloadFailed(one, unanswered), unloadFailed(two, mismatch), unloadFailed(three, mismatch));
    assert.equal(run.words().at(-1), 'keep loading');
  });

  test('waits no longer for the Load of an agent that does not answer the Unload', () => {
    const run = new Run().give(begin(null), kept, ...done('load', one, two), { kind: 'cancel', failure: cancelled });
    run.give(...done('unload', one, two));
    run.words();
    run.give({ kind: 'failed', command: 'unload', host: three, failure: refusal });
    assert.deepEqual(run.words(), ['abandon load three', 'keep loading']);
  });

  test('takes nothing down when a ring that stood before cannot be confirmed', () => {
    const run = new Run().give(begin(earlier), kept, ...done('load', one));
    run.words();
    run.give({ kind: 'failed', command: 'load', host: two, failure: refusal });
    assert.deepEqual(run.words(), ['abandon load three', 'finish failed']);
  });

  test('withdraws what it has told when it is cancelled', () => {
    const early = new Run().give(begin(null), { kind: 'cancel', failure: cancelled }, kept);
    assert.deepEqual(early.words(), ['keep loading', 'restore'], 'no agent has heard of it');
    const late = new Run().give(begin(null), kept, ...done('load', one, two, three));
    late.words();
    late.give({ kind: 'cancel', failure: cancelled });
    assert.deepEqual(late.words(), [
      'abandon link one',
      'abandon link two',
      'abandon link three',
      'unload one',
      'unload two',
      'unload three',
    ]);
  });

  test('finishes exactly once and last, whatever arrives in whatever order', () => {
    for (let seed = 1; seed <= 2000; seed += 1) checkRandomRun(seed);
  });

  test('leaves nothing on an agent that it does not name, whatever overtakes what', () => {
    const outcomes = new Map<string, number>();
    for (let seed = 1; seed <= 3000; seed += 1) {
      const kind = checkRandomAgents(seed);
      outcomes.set(kind, (outcomes.get(kind) ?? 0) + 1);
    }
    for (const kind of ['ready', 'failed', 'left']) assert.ok((outcomes.get(kind) ?? 0) > 50, `some runs end ${kind}`);
  });
});

/** Answers are given in random order, doubled, out of phase and mixed with failures and cancellation. */
function checkRandomRun(seed: number): void {
  const random = numbersFrom(seed);
  const run = new Run();
  const all: LoaderEffect[] = [];
  const stands = random() < 0.3;
  run.give(begin(stands ? earlier : null));
  for (let step = 0; step < 1000 && run.state.kind !== 'finished'; step += 1) {
    all.push(...run.effects.splice(0));
    run.give(randomInput(random, all));
  }
  all.push(...run.effects);
  const words = all.map(wordOf);
  const seen = `seed ${seed}: ${words.join(', ')}`;
  assert.equal(words.filter((word) => word.startsWith('finish')).length, 1, seen);
  assert.ok(words.at(-1)?.startsWith('finish'), seen);
  assert.ok(words[0]?.startsWith('keep'), seen);
  if (stands) assert.ok(!words.some((word) => word.startsWith('unload')), seen);
  const order = ['load', 'link', 'probe'].map((phase) => words.findIndex((word) => word.startsWith(phase)));
  const sent = order.filter((position) => position >= 0);
  assert.deepEqual(
    sent,
    [...sent].sort((a, b) => a - b),
    seen,
  );
}

function randomInput(random: () => number, all: readonly LoaderEffect[]): LoaderInput {
  const effect = all[Math.floor(random() * all.length)];
  if (random() < 0.02) return { kind: 'cancel', failure: cancelled };
  if (effect === undefined || effect.kind === 'keep' || effect.kind === 'restore') {
    return random() < 0.1 ? { kind: 'keep-failed', failure: refusal } : { kind: 'kept' };
  }
  if (effect.kind !== 'command') return { kind: 'kept' };
  const { command, host } = effect;
  if (random() < 0.05) return { kind: 'failed', command, host, failure: refusal };
  return { kind: 'done', command, host };
}

/** Agents that hold a load or not; calls and answers arrive in random order. What each run ended as. */
function checkRandomAgents(seed: number): string {
  const random = numbersFrom(seed);
  const run = new Run().give(begin(null));
  const holding = new Set<string>();
  const held = new Set<string>();
  const [calls, answers]: [Extract<LoaderEffect, { kind: 'command' }>[], LoaderInput[]] = [[], []];
  const taken = <Item>(items: Item[]): Item | undefined => items.splice(Math.floor(random() * items.length), 1)[0];
  const words: string[] = [];
  while (run.outcome === null) {
    for (const effect of run.effects.splice(0)) {
      words.push(wordOf(effect));
      if (effect.kind === 'command') calls.push(effect);
      else if (effect.kind !== 'finish' && effect.kind !== 'abandon') answers.push(kept);
    }
    const call = random() < 0.5 ? taken(calls) : undefined;
    if (call !== undefined) answers.push(answerOf(call, holding, random));
    for (const host of holding) held.add(host);
    const answer = call === undefined ? taken(answers) : undefined;
    if (answer !== undefined) run.give(answer);
    if (random() < 0.01) run.give({ kind: 'cancel', failure: cancelled });
  }
  const seen = `seed ${seed}: ${words.join(', ')}`;
  assert.ok(!words.includes('restore') || held.size === 0, `an agent had it; ${seen}`);
  const loads = calls.filter(({ command }) => command === 'load').map(({ host }): string => host);
  return checkedEnd(run.outcome, { holding, loads, seen });
}

/** Every host that holds the load, or may come to hold it, is told of. */
function checkedEnd(
  outcome: NonNullable<Run['outcome']>,
  { holding, loads, seen }: { holding: ReadonlySet<string>; loads: readonly string[]; seen: string },
): string {
  const left = outcome.kind === 'failed' ? outcome.left.map(({ host }): string => host) : [];
  if (outcome.kind === 'ready') assert.equal(holding.size, order.hosts.length, seen);
  else for (const host of [...holding, ...loads]) assert.ok(left.includes(host), `${host} holds it; ${seen}`);
  return left.length > 0 ? 'left' : outcome.kind;
}

function answerOf(
  { command, host }: Extract<LoaderEffect, { kind: 'command' }>,
  holding: Set<string>,
  random: () => number,
): LoaderInput {
  const failed = (failure: Failure): LoaderInput => ({ kind: 'failed', command, host, failure });
  if (command === 'unload') {
    if (random() < 0.1) return failed(refusal);
    return holding.delete(host) ? { kind: 'done', command, host } : failed(unknown);
  }
  if (random() < 0.1) return failed(refusal);
  if (command === 'load') holding.add(host);
  return { kind: 'done', command, host };
}

/** mulberry32: the same numbers for the same seed. */
function numbersFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
