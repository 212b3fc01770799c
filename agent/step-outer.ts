/** OUTER's calls: each is checked against ring, generation and phase (G3), then decided by the head's part. */
import { P4Error } from '../protocol/errors.ts';
import type { HeadState } from './head/head-state.ts';
import { followed, repliedHead, type HeadStep, type LoadAddress } from './head/head-step.ts';
import * as requests from './head/requests.ts';
import * as sessions from './head/sessions.ts';
import type { Input, OuterInput } from './inputs.ts';
import { addressedRing, refused, withRing } from './outcome.ts';
import type { AgentState, LiveRing } from './state.ts';
import { pumped } from './step-ring.ts';
import type { Step } from './step.ts';

type InputOf<Kind extends OuterInput['kind']> = Extract<Input, { kind: Kind }>;

export const openSession = (state: AgentState, input: InputOf<'open-session'>): Step =>
  whenReady(state, input, (head, at) => sessions.openSession(head, at, input.call));

export const submit = (state: AgentState, input: InputOf<'submit'>): Step =>
  whenReady(state, input, (head, at) => requests.submit(head, at, input));

export const cancel = (state: AgentState, input: InputOf<'cancel'>): Step =>
  atHead(state, input, (head, at) => sessions.cancelRequest(head, at, input));

export const settle = (state: AgentState, input: InputOf<'settle'>): Step =>
  atHead(state, input, (head, at) => sessions.askSettlement(head, at, input));

/** Closing a session that is not open is an answer, not an error: its lease may have ended first. */
export function closeSession(state: AgentState, input: InputOf<'close-session'>): Step {
  const { call } = input;
  return atHead(state, input, (head, at) => {
    const closed = sessions.closeSession(head, at, input.session);
    return followed(closed, repliedHead(closed.head, call, { kind: 'session-closed' }));
  });
}

type Decision = (head: HeadState, at: LoadAddress) => HeadStep;

function whenReady(state: AgentState, input: OuterInput, decide: Decision): Step {
  const addressed = addressedRing(state, input);
  if (addressed.kind === 'ring' && addressed.ring.phase.kind !== 'ready' && addressed.ring.head !== null) {
    return refused(state, input.call, notReady(addressed.ring));
  }
  return atHead(state, input, decide);
}

function atHead(state: AgentState, input: OuterInput, decide: Decision): Step {
  const addressed = addressedRing(state, input);
  if (addressed.kind === 'refused') return refused(state, input.call, addressed.error);
  const { ring } = addressed;
  if (ring.head === null) {
    return refused(state, input.call, new P4Error('NOT_THE_HEAD', { ring: ring.ring, host: state.host }));
  }
  const headStep = decide(ring.head, { ring: ring.ring, load: ring.load });
  if (ring.phase.kind === 'ready') return pumped(state, ring, headStep);
  const { head, records, effects } = headStep;
  return { state: withRing(state, { ...ring, head }), records, effects };
}

function notReady(ring: LiveRing): P4Error {
  if (ring.phase.kind === 'lost') return ring.phase.error;
  return new P4Error('RING_NOT_READY', { ring: ring.ring, phase: ring.phase.kind });
}
