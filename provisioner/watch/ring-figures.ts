/**
 * What a ring did between two looks, and how it is at the second. Pure.
 *
 * Rates are of the agents' own clocks, so the network's delay is in none of them. What is not known is `null`: its host did
 * not answer, the agent started again, nothing happened, or there is but one look.
 */
import { present } from '../../protocol/assert.ts';
import type { NodeStatus } from '../../protocol/messages.ts';
import type { MetricName } from '../../protocol/metric-table.ts';
import type { LayerRange, Plan, StagePlan } from '../../protocol/plan.ts';
import type { Look } from './look.ts';
import { grown, ratio, ValueSpan, type Labels } from './sample-values.ts';

export interface RingFigures {
  readonly tokensPerSecond: number | null;
  readonly promptTokensPerSecond: number | null;
  /** Generated since the head's agent started. */
  readonly tokens: number | null;
  readonly requestsRunning: number | null;
  readonly requestsWaiting: number | null;
  readonly sessionsOpen: number | null;
  readonly sessionsLimit: number | null;
  /** Clients that wait for a session. */
  readonly sessionsWaiting: number | null;
  /** Of the stage that has most in use. */
  readonly kvCellsUsed: number | null;
  readonly kvCellsLimit: number | null;
  /** When the load was admitted, in seconds since 1970. */
  readonly loadedAtSeconds: number | null;
  readonly stages: readonly StageFigures[];
  /** From each stage to the next one, and home to the head; none in a ring of one stage. */
  readonly links: readonly LinkFigures[];
  readonly journals: readonly JournalFigures[];
}

export interface StageFigures {
  readonly stage: number;
  readonly host: string;
  readonly layers: LayerRange;
  /** As its agent says (`NodeStatus`); `silent` where that does not answer, `absent` where it holds nothing of the stage. */
  readonly state: string;
  /** Share of its weights that are loaded, while they are not all. */
  readonly loadProgress: number | null;
  /** Mean time of a decode. */
  readonly decodeSeconds: number | null;
  /** Share of the time in which the ring had work and this stage had none. */
  readonly idleShare: number | null;
}

export interface LinkFigures {
  readonly source: number;
  readonly destination: number;
  /** The receiver's. */
  readonly host: string;
  /** Within an agent a hop is a function call: it has no time to speak of, and nobody counts it (E2). */
  readonly kind: 'within-agent' | 'between-agents';
  /** Mean time there and back over the network, without the receiver's own. */
  readonly hopSeconds: number | null;
  readonly bytesPerSecond: number | null;
  readonly isUp: boolean | null;
}

export interface JournalFigures {
  readonly host: string;
  /** As its agent says; `silent` where that does not answer. */
  readonly state: string;
  readonly bytes: number | null;
  readonly limitBytes: number | null;
  readonly records: number | null;
  readonly recordsPerSecond: number | null;
}

/** Least share of the time that a ring has to be active for idle shares to say something. */
const leastActive = 0.01;

/** @param before `null` where there is no earlier look */
export function ringFigures(plan: Plan, before: Look | null, after: Look): RingFigures {
  const { ring } = plan;
  const host = present(plan.stages[0], 'a plan has a head').host;
  const span = ValueSpan.between(before?.values.get(host), after.values.get(host));
  const now = (name: MetricName, labels = {}): number | null =>
    after.values.get(host)?.value(name, { ring, ...labels }) ?? null;
  const rate = (name: MetricName): number | null => span?.rate(name, { ring }) ?? null;
  const looks = { plan, before, after, activeShare: rate('p4_ring_active_seconds_total') };
  return {
    tokensPerSecond: rate('p4_ring_generated_tokens_total'),
    promptTokensPerSecond: rate('p4_ring_prompt_tokens_total'),
    tokens: now('p4_ring_generated_tokens_total'),
    requestsRunning: now('p4_ring_requests_running'),
    requestsWaiting: now('p4_ring_requests_waiting'),
    sessionsOpen: now('p4_ring_sessions_open'),
    sessionsLimit: now('p4_ring_sessions_limit'),
    sessionsWaiting: now('p4_ring_sessions_waiting'),
    kvCellsUsed: fullestKv(plan, after),
    kvCellsLimit: now('p4_stage_kv_cells_limit', { stage: '0' }),
    loadedAtSeconds: now('p4_ring_load_start_timestamp_seconds'),
    stages: plan.stages.map((stage) => stageFigures(stage, looks)),
    links: plan.stages.length === 1 ? [] : plan.stages.map((stage) => linkFigures(stage, looks)),
    journals: after.answers.map(({ host: of }) => journalFigures(of, before, after)),
  };
}

interface Looks {
  readonly plan: Plan;
  readonly before: Look | null;
  readonly after: Look;
  /** Share of the time in which the ring had work. */
  readonly activeShare: number | null;
}

/** Cells in use at the stage that has most; `null` where no stage tells. */
export function fullestKv({ ring }: Plan, { values }: Look): number | null {
  const used = [...values.values()].flatMap((each) => each.all('p4_stage_kv_cells_used', { ring }));
  return used.length === 0 ? null : Math.max(...used.map(({ value }) => value));
}

function stageFigures({ index, host, layers }: StagePlan, { plan, before, after, activeShare }: Looks): StageFigures {
  const labels = { ring: plan.ring, stage: String(index) };
  const span = ValueSpan.between(before?.values.get(host), after.values.get(host));
  const computing = span?.growth('p4_stage_compute_seconds_total', labels) ?? null;
  const state = nodeState(index, host, { plan, after });
  const progress = after.values.get(host)?.value('p4_stage_load_progress_ratio', labels) ?? null;
  return {
    ...{ stage: index, host, layers, state },
    loadProgress: state === 'loading' ? progress : null,
    decodeSeconds: ratio(computing, span?.growth('p4_stage_decodes_total', labels) ?? null),
    idleShare: span === null ? null : idleShare(computing, { span, labels, activeShare }),
  };
}

function idleShare(
  computing: number | null,
  {
    span,
    labels,
    activeShare,
  }: { readonly span: ValueSpan; readonly labels: { ring: string; stage: string } } & Pick<Looks, 'activeShare'>,
): number | null {
  if (computing === null || activeShare === null || activeShare < leastActive) return null;
  // The stage's figures may be older than those of its agent.
  const [then, now] = [span.before, span.after].map((values) => {
    const age = values.value('p4_stage_report_age_seconds', labels);
    return age === null ? null : values.atSeconds - age;
  });
  const share = ratio(computing, grown(then ?? null, now ?? null));
  return share === null ? null : Math.max(0, Math.min(1, 1 - share / activeShare));
}

function nodeState(stage: number, host: string, { plan, after }: Pick<Looks, 'plan' | 'after'>): string {
  const answer = after.answers.find((each) => each.host === host)?.answer;
  if (answer?.kind !== 'status') return 'silent';
  const isOurs = ({ node }: NodeStatus): boolean => node === stage;
  const nodes = answer.status.rings.flatMap(({ ring, nodes: all }) => (ring === plan.ring ? all : []));
  return nodes.find(isOurs)?.state ?? 'absent';
}

function linkFigures({ index: source, host }: StagePlan, { plan, before, after }: Looks): LinkFigures {
  const destination = (source + 1) % plan.stages.length;
  const receiver = present(plan.stages[destination], 'a link leads to a stage of the plan').host;
  const ends = { source, destination, host: receiver };
  if (receiver === host) return { ...ends, kind: 'within-agent', hopSeconds: null, bytesPerSecond: null, isUp: null };
  const labels = { ring: plan.ring, source: String(source), destination: String(destination) };
  const sending = ValueSpan.between(before?.values.get(host), after.values.get(host));
  const receiving = ValueSpan.between(before?.values.get(receiver), after.values.get(receiver));
  const isUp = after.values.get(host)?.value('p4_link_up', labels) ?? null;
  return {
    ...{ ...ends, kind: 'between-agents', hopSeconds: hopSeconds(sending, receiving, labels) },
    bytesPerSecond: sending?.rate('p4_link_sent_bytes_total', labels) ?? null,
    isUp: isUp === null ? null : isUp === 1,
  };
}

/** There and back over the network: what is left when the time at the receiver is taken off. */
function hopSeconds(sending: ValueSpan | null, receiving: ValueSpan | null, labels: Labels): number | null {
  if (sending === null || receiving === null) return null;
  const acknowledged = sending.mean('p4_link_acknowledgement_seconds', labels);
  const held = receiving.growth('p4_link_held_seconds_total', labels);
  const heldMean = ratio(held, receiving.growth('p4_link_received_frames_total', labels));
  return acknowledged === null || heldMean === null ? null : Math.max(0, acknowledged - heldMean);
}

function journalFigures(host: string, before: Look | null, after: Look): JournalFigures {
  const answer = after.answers.find((each) => each.host === host)?.answer;
  const journal = answer?.kind === 'status' ? answer.status.journal : null;
  const span = ValueSpan.between(before?.values.get(host), after.values.get(host));
  return {
    ...{ host, state: journal?.state ?? 'silent' },
    bytes: journal === null ? null : Number(journal.bytes),
    limitBytes: after.values.get(host)?.value('p4_journal_limit_bytes') ?? null,
    records: journal === null ? null : Number(journal.records),
    recordsPerSecond: span?.rate('p4_journal_committed_records_total') ?? null,
  };
}
