/**
 * What an agent decides: `step(state, input)` says the next state, what to write down, and what to do then.
 *
 * Pure: no I/O, no clock, no randomness, no waiting. The shell commits the records, then runs the effects (J2).
 */
import type { Effect } from './effects.ts';
import type { Input, InputKind } from './inputs.ts';
import type { JournalRecord } from './records.ts';
import type { AgentState } from './state.ts';
import { adopted, restored } from './step-claim.ts';
import { dialFailed, link, linkLost, linkUp, neighbourLoads } from './step-link.ts';
import { forget, load, unload } from './step-load.ts';
import {
  cancel,
  closeSession,
  leaseExpired,
  leaveQueue,
  openSession,
  resumeSession,
  serveQueue,
  settle,
  submit,
} from './step-outer.ts';
import { frameFinished, probe, probeTimeout, returned } from './step-ring.ts';
import { stageLoaded, stageLost, stageStopped } from './step-stage.ts';
import { recoveryDeadline, retry } from './step-timers.ts';

export interface Step {
  readonly state: AgentState;
  readonly records: readonly JournalRecord[];
  readonly effects: readonly Effect[];
}

type Handler<Kind extends InputKind> = (state: AgentState, input: Extract<Input, { kind: Kind }>) => Step;

const handlers: { readonly [Kind in InputKind]: Handler<Kind> } = {
  restored,
  adopted,
  load,
  unload,
  forget,
  'stage-loaded': stageLoaded,
  'stage-lost': stageLost,
  'stage-stopped': stageStopped,
  link,
  'link-up': linkUp,
  'dial-failed': dialFailed,
  'link-lost': linkLost,
  'neighbour-loads': neighbourLoads,
  probe,
  'probe-timeout': probeTimeout,
  retry,
  'recovery-deadline': recoveryDeadline,
  'lease-expired': leaseExpired,
  'serve-queue': serveQueue,
  returned,
  'frame-finished': frameFinished,
  'open-session': openSession,
  'leave-queue': leaveQueue,
  'resume-session': resumeSession,
  submit,
  cancel,
  'close-session': closeSession,
  settle,
};

export function step(state: AgentState, input: Input): Step {
  return (handlers[input.kind] as Handler<InputKind>)(state, input);
}
