/** Values of a ring: what its meter counted, and what the agent's state says of it. */
import { basename } from 'node:path';
import { finishReasons } from '../../protocol/finish.ts';
import type { HostName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { runningRequests, type HeadState } from '../head/head-state.ts';
import { isHead, type LiveRing, type RingState } from '../state.ts';
import type { RingMeter } from './ring-meter.ts';
import type { Samples } from './samples.ts';

export const ringPhases = [
  ...(['claimed', 'loading', 'loaded', 'linking', 'linked', 'unlinked'] as const),
  ...(['probing', 'ready', 'suspended', 'ending'] as const),
] as const;

export interface MeteredRing {
  readonly ring: RingState;
  readonly isReady: boolean;
  readonly meter: RingMeter;
  readonly host: HostName;
  /** Sources of the links that stand. */
  readonly linked: ReadonlySet<number>;
  /** When its load was admitted, in milliseconds since 1970; `null` where that is not known. */
  readonly admittedAt: number | null;
  readonly nowMs: number;
}

export function addRing(
  samples: Samples,
  { ring: state, isReady, meter, host, linked, admittedAt, nowMs }: MeteredRing,
): void {
  const { ring } = state;
  const phaseNow = phaseOf(state);
  for (const phase of ringPhases) samples.addState('p4_ring_phase', { ring, phase }, phase === phaseNow);
  samples.addState('p4_ring_ready', { ring }, isReady);
  samples.add('p4_ring_suspensions_total', { ring }, meter.suspensions);
  samples.add('p4_ring_recoveries_total', { ring }, meter.recoveries);
  samples.add('p4_ring_suspended_seconds_total', { ring }, meter.suspendedSeconds(nowMs));
  samples.add('p4_ring_load_start_timestamp_seconds', { ring }, (admittedAt ?? NaN) / 1000);
  samples.add('p4_ring_load_duration_seconds', { ring }, meter.loadSeconds ?? NaN);
  addLinks(samples, { meter, linked, nowMs });
  if (state.kind === 'claimed') return;
  addPlan(samples, state);
  if (!isHead(state, host)) return;
  addCounts(samples, meter, nowMs);
  if (state.head !== null) addHead(samples, { ring: state, head: state.head, meter });
}

const phaseOf = (ring: RingState): (typeof ringPhases)[number] => {
  if (ring.kind === 'claimed') return 'claimed';
  return ring.suspension === null || ring.phase.kind === 'ending' ? ring.phase.kind : 'suspended';
};

function addPlan(samples: Samples, { ring, planDigest, plan }: LiveRing): void {
  const model = basename(plan.model).slice(0, limits.metricLabelCharacters);
  samples.addInfo('p4_ring_info', {
    ...{ ring, plan: planDigest.slice(0, limits.metricDigestDigits), model },
    ...{ decode: plan.decode, stages: String(plan.stages.length) },
  });
}

function addCounts(samples: Samples, meter: RingMeter, nowMs: number): void {
  const { ring } = meter;
  samples.add('p4_ring_prompt_tokens_total', { ring }, meter.promptTokens);
  samples.add('p4_ring_reused_tokens_total', { ring }, meter.reusedTokens);
  samples.add('p4_ring_adopted_tokens_total', { ring }, meter.adoptedTokens);
  samples.add('p4_ring_generated_tokens_total', { ring }, meter.generatedTokens);
  samples.add('p4_ring_requests_admitted_total', { ring }, meter.admitted);
  samples.add('p4_ring_requests_settled_total', { ring }, meter.settled);
  for (const reason of finishReasons)
    samples.add('p4_ring_requests_finished_total', { ring, reason }, meter.finished.get(reason) ?? 0);
  samples.addTimes('p4_ring_time_to_first_token_seconds', { ring }, meter.firstToken);
  samples.addTimes('p4_ring_inter_token_seconds', { ring }, meter.interToken);
  samples.addTimes('p4_ring_queue_seconds', { ring }, meter.queue);
  samples.addTimes('p4_ring_request_duration_seconds', { ring }, meter.duration);
  for (const { level, seconds, tokens } of meter.firstHour.known) {
    const { running, context, prompt: beside } = level;
    samples.add('p4_ring_first_hour_token_seconds', { ring, running, context, beside }, seconds / tokens);
  }
  const { activeSeconds, requestSeconds } = meter.activity(nowMs);
  samples.add('p4_ring_active_seconds_total', { ring }, activeSeconds);
  samples.add('p4_ring_request_seconds_total', { ring }, requestSeconds);
}

function addHead(
  samples: Samples,
  {
    ring: { ring, suspension },
    head,
    meter,
  }: { readonly ring: LiveRing; readonly head: HeadState; readonly meter: RingMeter },
): void {
  const admitted = runningRequests(head.requests);
  const waiting = suspension === null ? Math.min(meter.unfed, admitted) : admitted;
  samples.add('p4_ring_requests_running', { ring }, admitted - waiting);
  samples.add('p4_ring_requests_waiting', { ring }, waiting);
  samples.add('p4_ring_sessions_open', { ring }, head.sessions.size);
  samples.add('p4_ring_sessions_limit', { ring }, head.slots.length);
  samples.add('p4_ring_sessions_waiting', { ring }, head.queue.length);
}

function addLinks(samples: Samples, { meter, linked, nowMs }: Pick<MeteredRing, 'meter' | 'linked' | 'nowMs'>): void {
  const labelsOf = (ends: { readonly source: number; readonly destination: number; readonly peer: string }) => ({
    ...{ ring: meter.ring, source: String(ends.source), destination: String(ends.destination), peer: ends.peer },
  });
  for (const sending of meter.sending.values()) {
    const labels = labelsOf(sending.ends);
    samples.addState('p4_link_up', labels, linked.has(sending.ends.source));
    samples.add('p4_link_sent_frames_total', labels, sending.frames);
    samples.add('p4_link_sent_bytes_total', labels, sending.bytes);
    samples.addTimes('p4_link_acknowledgement_seconds', labels, sending.acknowledgements);
    samples.add('p4_link_unacknowledged_frames', labels, sending.unacknowledged);
    samples.add('p4_link_window_frames', labels, limits.linkWindowFrames);
    samples.add('p4_link_window_full_seconds_total', labels, sending.fullSeconds(nowMs));
  }
  for (const receiving of meter.receiving.values()) {
    const labels = labelsOf(receiving.ends);
    samples.add('p4_link_received_frames_total', labels, receiving.frames);
    samples.add('p4_link_received_bytes_total', labels, receiving.bytes);
    samples.add('p4_link_held_seconds_total', labels, receiving.heldSeconds);
  }
}
