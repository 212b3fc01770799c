/** Values of the agent itself and of its journal. */
import process from 'node:process';
import { X509Certificate } from 'node:crypto';

import { protocolVersionText } from '../../protocol/protocol-version.ts';
import type { TlsIdentity } from '../../protocol/tls-identity.ts';
import { admissionLimitBytes } from '../journal/database-limit.ts';
import type { JournalStats } from '../journal/journal.ts';
import { release } from '../release.ts';
import { mismatchPlaces, type CallMeter } from './call-meter.ts';
import type { JournalMeter } from './journal-meter.ts';
import type { Samples } from './samples.ts';

/** When the certificates end, in seconds since 1970. */
export interface Expiries {
  readonly agent: number;
  readonly authority: number;
}

export const expiriesOf = ({ certificate, authority }: TlsIdentity): Expiries => ({
  agent: endOf(certificate),
  authority: endOf(authority),
});

const endOf = (pem: string): number => new Date(new X509Certificate(pem).validTo).getTime() / 1000;

const startedAt = Date.now() / 1000 - process.uptime();

export function addProcess(samples: Samples): void {
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed } = process.memoryUsage();
  samples.addInfo('p4_build_info', { version: release, protocol: protocolVersionText, node: process.versions.node });
  samples.add('process_cpu_seconds_total', {}, (user + system) / 1e6);
  samples.add('process_resident_memory_bytes', {}, rss);
  samples.add('process_start_time_seconds', {}, startedAt);
  samples.add('p4_agent_heap_used_bytes', {}, heapUsed);
  // Active since the loop began.
  samples.add('p4_agent_event_loop_busy_seconds_total', {}, performance.eventLoopUtilization().active / 1000);
}

export function addCalls(samples: Samples, calls: CallMeter): void {
  for (const { method, code, count } of calls.failures) samples.add('p4_rpc_failures_total', { method, code }, count);
  for (const at of mismatchPlaces) samples.add('p4_generation_mismatches_total', { at }, calls.mismatches[at]);
}

export function addExpiries(samples: Samples, { agent, authority }: Expiries): void {
  samples.add('p4_certificate_expiry_timestamp_seconds', { certificate: 'agent' }, agent);
  samples.add('p4_certificate_expiry_timestamp_seconds', { certificate: 'authority' }, authority);
}

export function addJournal(
  samples: Samples,
  { stats, meter }: { readonly stats: JournalStats; readonly meter: JournalMeter },
): void {
  samples.addState('p4_journal_up', {}, stats.state === 'open');
  samples.add('p4_journal_failures_total', {}, meter.failures);
  samples.add('p4_journal_bytes', {}, stats.databaseBytes);
  samples.add('p4_journal_reserved_bytes', {}, stats.reservedBytes);
  samples.add('p4_journal_limit_bytes', {}, admissionLimitBytes(stats.limitBytes));
  samples.add('p4_journal_wal_bytes', {}, stats.walBytes);
  samples.add('p4_journal_records', {}, stats.records);
  samples.add('p4_journal_waiting_records', {}, stats.waitingRecords);
  samples.add('p4_journal_committed_records_total', {}, meter.committedRecords);
  samples.add('p4_journal_removed_records_total', {}, meter.removedRecords);
  samples.add('p4_journal_dropped_hops_total', {}, stats.droppedHops);
  samples.addTimes('p4_journal_commit_seconds', {}, meter.commits);
  samples.addTimes('p4_journal_checkpoint_seconds', {}, meter.checkpoints);
  samples.addTimes('p4_journal_compaction_seconds', {}, meter.compactions);
}
