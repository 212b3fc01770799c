/** A ring: whether it serves, how long requests wait, where a token's time goes. */
import { meanOf, quantileOf, range, rateOf } from '../promql.ts';
import type { Windows } from '../windows.ts';
import { alert, recording, type Rule } from './rule.ts';

const latencies = [
  ['p4_ring_time_to_first_token_seconds', [0.5, 0.95]],
  ['p4_ring_inter_token_seconds', [0.5, 0.95, 0.99]],
  ['p4_ring_queue_seconds', [0.5, 0.95]],
  ['p4_ring_request_duration_seconds', [0.5, 0.95]],
] as const;

/** Host is the sender's, peer the receiver's. */
const edge = 'host, ring, source, destination, peer';

export function ringRules(windows: Windows): readonly Rule[] {
  const window = range(windows.rateSeconds);
  return [
    ...latencies.flatMap(([histogram, shares]) =>
      shares.map((share) =>
        recording(`ring:${histogram}:p${share * 100}`, quantileOf(share, 'ring', { histogram, window })),
      ),
    ),
    recording('stage:p4_compute:ratio', rateOf('host, ring, stage', 'p4_stage_compute_seconds_total', window)),
    // Of a ring that has work: where nothing runs, nobody waits for a stage.
    recording(
      'stage:p4_idle:ratio',
      `clamp(1 - stage:p4_compute:ratio / on (ring) group_left () ${busyShare(window)}, 0, 1)`,
    ),
    recording('ring:p4_bubble:ratio', 'avg by (ring) (stage:p4_idle:ratio)'),
    recording(
      'stage:p4_decode_seconds:mean',
      `stage:p4_compute:ratio / (${rateOf('host, ring, stage', 'p4_stage_decodes_total', window)} > 0)`,
    ),
    // A thread that computes and is not kept waiting uses one second of a CPU each second.
    recording(
      'stage:p4_cpu_per_compute:ratio',
      `${rateOf('host, ring, stage', 'p4_stage_cpu_seconds_total', window)} / (stage:p4_compute:ratio > 0.05)`,
    ),
    ...[0.5, 0.99].map((share) =>
      recording(
        `link:p4_link_acknowledgement_seconds:p${share * 100}`,
        quantileOf(share, edge, { histogram: 'p4_link_acknowledgement_seconds', window }),
      ),
    ),
    // There and back over the network: what is left when the time at the receiver is taken off.
    recording(
      'link:p4_hop_seconds:mean',
      `clamp_min((${meanOf(edge, 'p4_link_acknowledgement_seconds', window)}) - on (ring, source, destination) group_left () (${rateOf(
        'ring, source, destination',
        'p4_link_held_seconds_total',
        window,
      )} / (${rateOf('ring, source, destination', 'p4_link_received_frames_total', window)} > 0)), 0)`,
    ),
    recording('link:p4_link_sent_bytes:rate', rateOf(edge, 'p4_link_sent_bytes_total', window)),
    recording(
      'host:p4_agent_cpu_per_token:mean',
      // Of all rings that the host has a part in.
      `sum by (host) (rate(process_cpu_seconds_total{job="p4"}${window})) / (sum by (host) ((p4_ring_ready * 0 + 1) * on (ring) group_left () ring:p4_ring_generated_tokens:rate) > 0)`,
    ),
  ];
}

const busyShare = (window: string): string => `(${rateOf('ring', 'p4_ring_active_seconds_total', window)} > 0.01)`;

/** But for one that is loaded for the first time, which takes as long as its weights are large. */
const notWhole =
  'min by (ring) (p4_ring_ready) == 0 unless on (ring) (max by (ring) (p4_ring_phase{phase=~"loading|loaded|linking|linked|probing"}) == 1 and on (ring) max by (ring) (p4_ring_suspensions_total) == 0)';

export function ringAlerts(windows: Windows): readonly Rule[] {
  const usual = range(windows.usualSeconds);
  return [
    alert({
      name: 'P4RingDegraded',
      expression: notWhole,
      holds: 'short',
      severity: 'warning',
      summary: 'Ring {{ $labels.ring }} lost a part: its requests wait',
      action:
        'npm run status says which stage or link, on which host, and for how long. It comes back by itself where it can.',
    }),
    alert({
      name: 'P4RingDown',
      expression: notWhole,
      holds: 'medium',
      severity: 'critical',
      summary: 'Ring {{ $labels.ring }} has been down for a while: its requests fail at their deadline',
      action: 'npm run status says what is lost and prints the command that loads the ring again where that is needed.',
    }),
    alert({
      name: 'P4HopSlow',
      expression: [
        `link:p4_hop_seconds:mean > 0.003 and link:p4_hop_seconds:mean > 3 * quantile_over_time(0.5, link:p4_hop_seconds:mean${usual})`,
        'link:p4_hop_seconds:mean > 0.05',
      ].join('\nor\n'),
      holds: 'medium',
      severity: 'warning',
      summary:
        'Hops of ring {{ $labels.ring }} from stage {{ $labels.source }} to {{ $labels.destination }} take {{ $value | humanizeDuration }}',
      action: 'Look at the network between the two hosts, and at the CPU of the receiving one.',
    }),
    alert({
      name: 'P4StageStarved',
      expression: [
        `stage:p4_cpu_per_compute:ratio < 0.7 * quantile_over_time(0.9, stage:p4_cpu_per_compute:ratio${usual})`,
        'stage:p4_cpu_per_compute:ratio < 0.7 and on (host, ring, stage) p4_stage_info{device="cpu"}',
      ].join('\nor\n'),
      holds: 'medium',
      severity: 'warning',
      summary:
        'Stage {{ $labels.stage }} of ring {{ $labels.ring }} waits for a CPU on {{ $labels.host }} while it computes',
      action:
        'Something else uses the CPUs of that host: stop it, or give the stage CPUs of its own (cpus in the plan).',
    }),
    alert({
      name: 'P4KvFull',
      expression: 'ring:p4_stage_kv_cells_used:ratio > 0.95',
      holds: 'medium',
      severity: 'warning',
      summary: 'Ring {{ $labels.ring }} uses {{ $value | humanizePercentage }} of its KV cache',
      action:
        'Sessions hold it while they are open: close idle ones, or load the plan with more context or fewer sessions.',
    }),
  ];
}
