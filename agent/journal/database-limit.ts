/** What a journal's limit leaves for its database file, and for what is admitted. */
import { limits } from '../../protocol/limits.ts';

/** Of the database file; the rest of the limit is the WAL's, with a batch that makes it overflow. */
export const databaseLimitBytes = (limitBytes: number): number =>
  limitBytes - limits.journalWalBytes - 2 * limits.journalBatchBytes;

/** What is used and reserved together may come to this; past it nothing is admitted (J4). */
export const admissionLimitBytes = (limitBytes: number): number =>
  databaseLimitBytes(limitBytes) - limits.journalSpareBytes;
