/** A host: its agent, its disk, its certificates. */
import { quantileOf, range } from '../promql.ts';
import type { Windows } from '../windows.ts';
import { alert, recording, type Rule } from './rule.ts';

const gigabyte = 1e9;

export function hostRules(windows: Windows): readonly Rule[] {
  const window = range(windows.rateSeconds);
  return [
    recording(
      'host:p4_agent_event_loop_delay_seconds:p99',
      quantileOf(0.99, 'host', { histogram: 'p4_agent_event_loop_delay_seconds', window }),
    ),
    recording('host:p4_disk_free:ratio', 'min by (host, folder) (p4_disk_free_bytes / p4_disk_size_bytes)'),
  ];
}

export function hostAlerts(windows: Windows): readonly Rule[] {
  const hour = range(windows.hourSeconds);
  return [
    alert({
      name: 'P4AgentDown',
      expression: 'up{job="p4"} == 0',
      holds: 'short',
      severity: 'critical',
      summary: 'The agent of {{ $labels.host }} does not answer Prometheus',
      action:
        'On that host: systemctl status p4-agent. If it runs, look at the way to its metrics port and at the certificates.',
    }),
    alert({
      name: 'P4EventLoopDelayed',
      expression: 'host:p4_agent_event_loop_delay_seconds:p99 > 0.05',
      holds: 'medium',
      severity: 'warning',
      summary: 'The agent of {{ $labels.host }} comes to its work {{ $value | humanizeDuration }} late',
      action: 'Something else uses the CPUs of that host, or the agent does too much at once: look at its CPU.',
    }),
    alert({
      name: 'P4DiskLow',
      // A share alone would call for room on a disk of many terabytes, a size alone would let a small one run full.
      expression: `host:p4_disk_free:ratio < 0.05 and (min by (host, folder) (p4_disk_free_bytes) < ${20 * gigabyte})`,
      holds: 'medium',
      severity: 'critical',
      summary: 'The disk of {{ $labels.host }} with its {{ $labels.folder }} is almost full',
      action: 'npm run slices -- --prune removes slices that no ring uses; else make room on that disk.',
    }),
    alert({
      name: 'P4CertificateExpiring',
      expression: 'min by (host, certificate) (p4_certificate_expiry_timestamp_seconds) - time() < 21 * 86400',
      holds: 'medium',
      severity: 'warning',
      summary:
        'The certificate of {{ $labels.host }} ({{ $labels.certificate }}) ends in {{ $value | humanizeDuration }}',
      action: 'npm run deploy renews it.',
    }),
    alert({
      name: 'P4AddressMissing',
      expression: 'max by (host) (p4_advertised_address_missing) == 1',
      holds: 'medium',
      severity: 'warning',
      summary: '{{ $labels.host }} lost the address that it advertises: others cannot reach it there',
      action: 'Give the host its address back, or npm run deploy with --measure, which chooses another one.',
    }),
    alert({
      name: 'P4GenerationMismatch',
      expression: `sum by (host) (increase(p4_generation_mismatches_total${hour})) > 0`,
      holds: 'none',
      severity: 'warning',
      summary: 'Calls came to {{ $labels.host }} with the generation of another load',
      action: 'A client uses an old generation file: have it read the one of the load that stands.',
    }),
  ];
}
