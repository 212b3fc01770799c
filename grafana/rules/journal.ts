/** A host's journal: how full it is, how fast it grows, how long a commit takes. */
import { quantileOf, range, rateOf } from '../promql.ts';
import type { Windows } from '../windows.ts';
import { alert, recording, type Rule } from './rule.ts';

export function journalRules(windows: Windows): readonly Rule[] {
  const window = range(windows.rateSeconds);
  const commits = { histogram: 'p4_journal_commit_seconds', window };
  return [
    recording(
      'host:p4_journal_full:ratio',
      'max by (host) ((p4_journal_bytes + p4_journal_reserved_bytes) / p4_journal_limit_bytes)',
    ),
    recording('host:p4_journal_bytes:deriv', `max by (host) (deriv(p4_journal_bytes${range(windows.hourSeconds)}))`),
    recording('host:p4_journal_commit_seconds:p50', quantileOf(0.5, 'host', commits)),
    recording('host:p4_journal_commit_seconds:p99', quantileOf(0.99, 'host', commits)),
    recording('host:p4_journal_committed_records:rate', rateOf('host', 'p4_journal_committed_records_total', window)),
  ];
}

export function journalAlerts(windows: Windows): readonly Rule[] {
  const hour = range(windows.hourSeconds);
  const day = 24 * windows.hourSeconds;
  return [
    alert({
      name: 'P4JournalNotWritable',
      expression: 'min by (host) (p4_journal_up) == 0',
      holds: 'none',
      severity: 'critical',
      summary: 'The journal of {{ $labels.host }} cannot be written: nothing is admitted there',
      action: 'npm run status has the reason. The agent opens it again by itself when it can.',
    }),
    alert({
      name: 'P4JournalGrowing',
      expression: `host:p4_journal_full:ratio > 0.5 and on (host) (predict_linear(p4_journal_bytes${hour}, ${day}) > on (host) p4_journal_limit_bytes)`,
      holds: 'long',
      severity: 'warning',
      summary:
        'The journal of {{ $labels.host }} will reach its limit within a day: {{ $value | humanizePercentage }} now',
      action:
        'Close sessions that nobody uses: their tokens stay while they are open. Or raise the limit of the journal.',
    }),
    alert({
      name: 'P4JournalNearLimit',
      expression: 'host:p4_journal_full:ratio > 0.85',
      holds: 'medium',
      severity: 'critical',
      summary:
        'The journal of {{ $labels.host }} is at {{ $value | humanizePercentage }} of its limit: admissions will be refused',
      action:
        'Close sessions that nobody uses; p4 journal stats, on the host, says what fills it. Or raise the limit of the journal.',
    }),
    alert({
      name: 'P4CommitSlow',
      expression: 'host:p4_journal_commit_seconds:p50 > 0.05 or host:p4_journal_commit_seconds:p99 > 0.25',
      holds: 'medium',
      severity: 'warning',
      summary:
        'Commits to the journal of {{ $labels.host }} take {{ $value | humanizeDuration }}: tokens reach readers that much later',
      action: 'Look at what else writes to that disk, and at the health of the disk.',
    }),
  ];
}
