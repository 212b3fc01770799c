/** OUTER's calls: each is checked against ring, generation and phase (G3), then decided by the head's part. */
import { P4Error } from '../protocol/errors.ts';
import type { HeadState } from './head/head-state.ts';
import { followed, repliedHead, type HeadStep, type LoadAddress } from './head/head-step.ts';
import * as requests from './head/requests.ts';
import * as sessions from './head/sessions.ts';
import type { Input, OuterInput } from './inputs.ts';
import { addressedRing, headMissing, refused, ringOfLoad, unchanged } from './outcome.ts';
import type { AgentState, LiveRing } from './state.ts';
import { pumped } from './step-ring.ts';
import type { Step } from './step.ts';

type InputOf<Kind extends OuterInput['kind']> = Extract<Input, { kind: Kind }>;

export const openSession = (state: AgentState, input: InputOf<'open-session'>): Step =>
  whenAdmitting(state, input, (head, at) => sessions.openSession(head, at, input));

export const leaveQueue = (state: AgentState, input: InputOf<'leave-queue'>): Step =>
  atHead(state, input, (head, at) => sessions.leaveQueue(head, at, input.call));

export const resumeSession = (state: AgentState, input: InputOf<'resume-session'>): Step =>
  atHead(state, input, (head, at) => sessions.resumeSession(head, at, input));

export const submit = (state: AgentState, input: InputOf<'submit'>): Step =>
  whenAdmitting(state, input, (head, at) => requests.submit(head, at, input));

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

/** Nobody has held the session for too long. */
export function leaseExpired(state: AgentState, input: Extract<Input, { kind: 'lease-expired' }>): Step {
  const ring = ringOfLoad(state, input);
  if (ring === null || ring.head === null) return unchanged(state);
  return pumped(state, ring, sessions.closeSession(ring.head, { ring: ring.ring, load: ring.load }, input.session));
}

export function serveQueue(state: AgentState, input: Extract<Input, { kind: 'serve-queue' }>): Step {
  const ring = ringOfLoad(state, input);
  if (ring === null || ring.head === null) return unchanged(state);
  return pumped(state, ring, sessions.serveQueue(ring.head, { ring: ring.ring, load: ring.load }, input.call));
}

type Decision = (head: HeadState, at: LoadAddress) => HeadStep;

/** What is admitted while the ring is suspended waits with the rest (R1); the bound is that of the sessions. */
function whenAdmitting(state: AgentState, input: OuterInput, decide: Decision): Step {
  const addressed = addressedRing(state, input);
  const refusal = addressed.kind === 'ring' && addressed.ring.head !== null ? admissionFault(addressed.ring) : null;
  return refusal === null ? atHead(state, input, decide) : refused(state, input.call, refusal);
}

function admissionFault({ ring, phase, suspension }: LiveRing): P4Error | null {
  if (phase.kind === 'ready') return null;
  if (suspension === null || phase.kind === 'ending') return new P4Error('RING_NOT_READY', { ring, phase: phase.kind });
  return suspension.isOverdue ? suspension.error : null;
}

function atHead(state: AgentState, input: OuterInput, decide: Decision): Step {
  const addressed = addressedRing(state, input);
  if (addressed.kind === 'refused') return refused(state, input.call, addressed.error);
  const { ring } = addressed;
  if (ring.head === null) return refused(state, input.call, headMissing(ring, state.host));
  return pumped(state, ring, decide(ring.head, { ring: ring.ring, load: ring.load }));
}
