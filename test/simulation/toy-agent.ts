/**
 * An agent whose effects a toy ring runs, one after another: what it decided is kept to look at.
 *
 * Its `step` is the one that runs in production.
 */
import assert from 'node:assert/strict';
import type { CallId, CallReply } from '../../agent/calls.ts';
import type { Effect, StartStage } from '../../agent/effects.ts';
import type { Input } from '../../agent/inputs.ts';
import type { JournalRecord, LoadTerms } from '../../agent/records.ts';
import type { AgentState } from '../../agent/state.ts';
import { step } from '../../agent/step.ts';
import type { ErrorCode } from '../../protocol/errors.ts';
import { noStep } from '../../protocol/hop-frame.ts';
import {
  generation,
  hostName,
  loadId,
  nodeIndex,
  ringName,
  sessionId,
  sliceId,
  tokenId,
  type HostName,
} from '../../protocol/ids.ts';
import type { Plan } from '../../protocol/plan.ts';
import { defaultSampling } from '../../protocol/sampling.ts';
import { ToyRing } from './toy-ring.ts';

export const alpha = hostName('alpha');
export const ring = ringName('toy');
export const load = loadId('0'.repeat(31) + '1');
export const right = generation('17592186044417');
export const wrong = generation('17592186044418');
export const call = (id: number): CallId => id as CallId;

export const planOver = (hosts: readonly HostName[], sessions = 4): Plan => ({
  ring,
  model: 'toy.gguf',
  modelOn: 'operator',
  contextTokens: 64,
  sessions,
  keptPrefixes: 3,
  kv: { keys: 'f16', values: 'f16' },
  decode: 'fast',
  wire: 'f32',
  deadlineSeconds: 60,
  stages: hosts.map((host, index) => ({
    index: nodeIndex(index),
    host,
    layers: { first: index, last: index },
    device: { kind: 'cpu' },
    threads: 1,
  })),
});

type LoadInput = Extract<Input, { kind: 'load' }>;

export const loadInput = (plan: Plan, changes: Partial<LoadInput> = {}): LoadInput => ({
  kind: 'load',
  call: call(1),
  ring,
  generation: right,
  load,
  atMs: 0,
  plan,
  planDigest: 'digest',
  assignment: '{}',
  placements: plan.stages.map(() => ({ sliceId: sliceId('a'.repeat(64)), address: '127.0.0.1', port: 7400 })),
  generationDigest: { salt: '', hash: '' },
  digestMatches: false,
  ...changes,
});

/** The terms of such a load over one stage. */
export const toldTerms: LoadTerms = { deadlineSeconds: 60, addresses: [{ address: '127.0.0.1', port: 7400 }] };

/** What a journal says of it, but for its sessions and requests. */
export const claim = {
  ...{ ring, load, planDigest: 'digest', generationDigest: { salt: '', hash: '' } },
  ...{ terms: toldTerms, fault: null },
} as const;

/** An agent whose effects are run by a toy ring, one dispatch after another; everything it did is kept to look at. */
export class ToyAgent {
  state: AgentState = { host: alpha, rings: new Map(), nextIncarnation: 1, nextSuspension: 1 };
  toy: ToyRing;
  readonly #stages: number;
  readonly records: JournalRecord[] = [];
  readonly replies = new Map<CallId, CallReply>();
  readonly tokens: number[] = [];
  readonly ends: Extract<Effect, { kind: 'publish-end' }>[] = [];
  readonly started: StartStage[] = [];
  readonly stopped: number[] = [];
  /** Frames that the head stage has not finished; `turn` runs the oldest. */
  readonly frames: Extract<Effect, { kind: 'send-frame' }>[] = [];

  constructor(stages = 1) {
    this.#stages = stages;
    this.toy = new ToyRing(stages, right);
  }

  /** Every stage is empty, and what was on its way is gone. */
  loseStages(): this {
    this.toy = new ToyRing(this.#stages, right);
    this.frames.length = 0;
    return this;
  }

  /** Goes on from a state of before: the journal did not admit what came since. */
  forget(before: AgentState): this {
    this.state = before;
    return this;
  }

  dispatch(input: Input): this {
    const next = step(this.state, input);
    this.state = next.state;
    this.records.push(...next.records);
    for (const effect of next.effects) this.#run(effect);
    return this;
  }

  /** @param atMs when what comes of the frame is home */
  turn(atMs = 1): boolean {
    const frame = this.frames.shift();
    if (frame === undefined) return false;
    const items = this.toy.run(frame);
    this.dispatch({ kind: 'frame-finished', ring, load });
    this.dispatch({ kind: 'returned', ring, load, items, slowest: noStep, atMs });
    return true;
  }

  turnAll(): this {
    while (this.turn());
    return this;
  }

  refusal(id: number): ErrorCode | null {
    const reply = this.replies.get(call(id));
    return reply?.kind === 'refused' ? reply.error.code : null;
  }

  #run(effect: Effect): void {
    if (effect.kind === 'reply') this.replies.set(effect.call, effect.reply);
    if (effect.kind === 'send-frame') this.frames.push(effect);
    if (effect.kind === 'serve-queue') this.dispatch(effect);
    if (effect.kind === 'publish-token') this.tokens.push(effect.token);
    if (effect.kind === 'publish-end') this.ends.push(effect);
    if (effect.kind === 'start-stage') this.started.push(effect);
    if (effect.kind === 'stop-stage') this.stopped.push(effect.incarnation);
    // Frames on their way are of before.
    if (effect.kind === 'cut-ring') this.frames.length = 0;
  }
}

const vocabulary = { size: 100, piece: () => Buffer.from('x'), endsGeneration: () => false };

export function stageUp(agent: ToyAgent, index: number, atMs = 0): void {
  const started = agent.started[index];
  assert.ok(started !== undefined);
  const { node } = started.order;
  const { incarnation } = started;
  agent.dispatch({
    kind: 'stage-loaded',
    ring,
    load,
    node,
    incarnation,
    pid: 1,
    vocabulary: node === 0 ? vocabulary : null,
    keepsPrefixes: true,
    atMs,
  });
}

export function readyAgent(sessions = 4): ToyAgent {
  const agent = new ToyAgent().dispatch(loadInput(planOver([alpha], sessions)));
  stageUp(agent, 0);
  return makeReady(agent);
}

/** Links and probes a ring whose stages are up. */
export function makeReady(agent: ToyAgent): ToyAgent {
  agent.dispatch({ kind: 'link', call: call(2), ring, generation: right, atMs: 0 });
  agent.dispatch({ kind: 'probe', call: call(3), ring, generation: right, nonce: 5, atMs: 0 }).turnAll();
  assert.equal(agent.replies.get(call(3))?.kind, 'probed');
  return agent;
}

export const open = (agent: ToyAgent, id: number, owner: string | null = null): ToyAgent =>
  agent.dispatch({ kind: 'open-session', call: call(id), ring, generation: right, owner, waits: false });

interface Ask {
  readonly session: number;
  readonly prompt: readonly number[];
  readonly maxTokens: number;
}

export const submit = (agent: ToyAgent, id: number, { session, prompt, maxTokens }: Ask): ToyAgent =>
  agent.dispatch({
    kind: 'submit',
    call: call(id),
    ring,
    generation: right,
    session: sessionId(session),
    prompt: prompt.map(tokenId),
    sampling: defaultSampling,
    stopStrings: [],
    maxTokens,
    ignoreEnd: false,
  });
