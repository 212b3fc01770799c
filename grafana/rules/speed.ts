/**
 * How fast a ring decodes, compared with itself at equal load.
 *
 * Speed is tokens per second of one request while it decodes: the inverse of the mean time between tokens. It falls when
 * more requests share the ring, with the context that attention has to read, and while prompts are computed in between. So
 * it is only compared within a level: bands of these three. The speed of the first hour of a load at a level is kept with
 * when the load began; a level that is seen later has its first hour then.
 *
 * Medians over an hour stand for the hour: a dip shorter than half of it does not move them.
 */
import {
  contextBands,
  decayedShare,
  promptBands,
  runningBands,
  slowShare,
  type Band,
} from '../../protocol/speed-level.ts';
import { banded, meanOf, range, rateOf } from '../promql.ts';
import type { Windows } from '../windows.ts';
import { alert, recording, type Rule } from './rule.ts';

/** Labels of a level, besides ring and load. */
const levelLabels = ['running', 'context', 'prompt'] as const;
/** `load` is when the load of the ring began. */
const onLevel = `ring, load, ${levelLabels.join(', ')}`;

export function speedRules(windows: Windows): readonly Rule[] {
  const rate = range(windows.rateSeconds);
  const hour = range(windows.hourSeconds);
  return [
    recording('ring:p4_ring_generated_tokens:rate', rateOf('ring', 'p4_ring_generated_tokens_total', rate)),
    recording('ring:p4_ring_prompt_tokens:rate', rateOf('ring', 'p4_ring_prompt_tokens_total', rate)),
    // The head's agent says it, which alone has sessions: others admit the load some milliseconds apart.
    recording(
      'ring:p4_load:start',
      'count_values by (ring) ("load", p4_ring_load_start_timestamp_seconds and on (host, ring) p4_ring_sessions_limit)',
    ),
    recording(
      'ring:p4_ring_requests_running:mean',
      `${rateOf('ring', 'p4_ring_request_seconds_total', rate)} / (${rateOf('ring', 'p4_ring_active_seconds_total', rate)} > 0)`,
    ),
    recording('ring:p4_stage_kv_cells_used:ratio', 'max by (ring) (p4_stage_kv_cells_used / p4_stage_kv_cells_limit)'),
    recording('ring:p4_speed:rate', `1 / (${meanOf('ring', 'p4_ring_inter_token_seconds', rate)} > 0)`),
    ...levelRules(),
    recording(
      'ring:p4_speed:median',
      `quantile_over_time(0.5, ring:p4_speed:at_level${hour}) and on (ring, load) ring:p4_load:start`,
    ),
    recording('ring:p4_speed:baseline', baseline(windows)),
    recording('ring:p4_speed:ratio', 'ring:p4_speed:median / ring:p4_speed:baseline'),
    recording('ring:p4_speed:slope', slope(windows)),
    recording('ring:p4_decay:ratio', `avg by (ring) (ring:p4_speed:ratio and on (${onLevel}) ring:p4_speed:at_level)`),
  ];
}

/** One label after the other, then the load: an expression for all combinations at once would be a hundred times as long. */
function levelRules(): readonly Rule[] {
  const prompt = '(ring:p4_ring_prompt_tokens:rate / ring:p4_ring_generated_tokens:rate)';
  const at = (of: string, label: string, { by, bands }: { by: string; bands: readonly Band[] }): string =>
    banded(of, { label, by, on: 'ring', bands });
  return [
    recording(
      'ring:p4_speed:by_running',
      at('ring:p4_speed:rate', 'running', { by: 'ring:p4_ring_requests_running:mean', bands: runningBands }),
    ),
    recording(
      'ring:p4_speed:by_context',
      at('ring:p4_speed:by_running', 'context', { by: 'ring:p4_stage_kv_cells_used:ratio', bands: contextBands }),
    ),
    recording(
      'ring:p4_speed:at_level',
      `(\n${at('ring:p4_speed:by_context', 'prompt', { by: prompt, bands: promptBands })}\n) * on (ring) group_left (load) ring:p4_load:start`,
    ),
  ];
}

/**
 * The first hour's speed while that lasts, then what it came to; a level that is new later begins with some minutes of its
 * own. It is handed on from one evaluation to the next.
 */
function baseline(windows: Windows): string {
  const keep = range(windows.keepSeconds);
  const samples = Math.ceil(windows.leastSeconds / windows.intervalSeconds);
  const age = 'time() - max by (ring) (p4_ring_load_start_timestamp_seconds)';
  return [
    `(ring:p4_speed:median and on (ring) (${age} <= ${windows.hourSeconds}))`,
    `(last_over_time(ring:p4_speed:baseline${keep}) and on (ring, load) last_over_time(ring:p4_load:start${keep}))`,
    `(ring:p4_speed:median and on (${onLevel}) (count_over_time(ring:p4_speed:at_level${range(windows.hourSeconds)}) >= ${samples}))`,
  ].join('\nor\n');
}

/** Share of the first hour's speed that is won in an hour; from half a window on. */
function slope({ slopeSeconds, hourSeconds, intervalSeconds }: Windows): string {
  const window = range(slopeSeconds);
  const samples = Math.ceil(slopeSeconds / intervalSeconds / 2);
  return `deriv(ring:p4_speed:median${window}) * ${hourSeconds} / ring:p4_speed:baseline and count_over_time(ring:p4_speed:median${window}) >= ${samples}`;
}

const levelText = 'with {{ $labels.running }} running, context {{ $labels.context }}';

/** Lost in an hour, of the first hour's speed: more than medians of a steady ring wander. */
export const decayingShare = 0.01;

export const speedAlerts: readonly Rule[] = [
  alert({
    name: 'P4RingDecaying',
    expression: `ring:p4_speed:slope < -${decayingShare} and ring:p4_speed:ratio < ${1 - decayedShare}`,
    holds: 'long',
    severity: 'warning',
    summary: `Ring {{ $labels.ring }} slows down, ${levelText}: {{ $value | humanizePercentage }} of its speed an hour`,
    action:
      'Compare tokens/s with journal size and stage times on the Ring dashboard: what grows as speed falls is the cause.',
  }),
  alert({
    name: 'P4RingSlow',
    expression: `ring:p4_speed:ratio < ${1 - slowShare}`,
    holds: 'long',
    severity: 'warning',
    summary: `Ring {{ $labels.ring }} runs at {{ $value | humanizePercentage }} of its first hour's speed, ${levelText}`,
    action: 'Find the stage or link whose time grew on the Ring dashboard, and what else its host does.',
  }),
];
