/** What is counted of the journal's own work. */
import { metricTable } from '../../protocol/metric-table.ts';
import { DurationCounts } from './duration-counts.ts';

export class JournalMeter {
  readonly commits = new DurationCounts(metricTable.p4_journal_commit_seconds.buckets);
  readonly checkpoints = new DurationCounts(metricTable.p4_journal_checkpoint_seconds.buckets);
  readonly compactions = new DurationCounts(metricTable.p4_journal_compaction_seconds.buckets);
  committedRecords = 0;
  removedRecords = 0;
  failures = 0;

  transaction({ records, ms }: { readonly records: number; readonly ms: number }): void {
    this.committedRecords += records;
    this.commits.add(ms / 1000);
  }

  checkpoint(ms: number): void {
    this.checkpoints.add(ms / 1000);
  }

  compaction(ms: number): void {
    this.compactions.add(ms / 1000);
  }

  removed(records: number): void {
    this.removedRecords += records;
  }
}
