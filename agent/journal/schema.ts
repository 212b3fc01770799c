/**
 * The tables of a journal, as numbered steps that only grow: a step that has shipped is never changed.
 *
 * `records` is append-only: one row for each record in the order of their numbers. There is no index: a request's records
 * lie between its admission and its settlement, so a range of numbers finds them, and each token's commit writes one page
 * instead of two. `hops` is a ring of the last hops.
 * `kept` is one row: how many records there are up to the number `through`, so that nobody counts (J3). Who deletes
 * records writes `kept` in the same transaction: up to `through` a missing record shows in the count, after it in a gap.
 * `expired` has a row for each load of which records were deleted: the highest ids among them, written with the deletion,
 * so that a request that has expired is told from one that never was, and no id is given twice (E1).
 * `repairs` has a row for each repair the journal has been through: what it said was lost (J6).
 */

import { P4Error } from '../../protocol/errors.ts';
import type { Connection } from './connection.ts';
import { corrupt } from './failure.ts';

/** `p4jr`: tells a journal from any other SQLite database. */
const applicationId = 0x70346a72;

const steps: readonly string[] = [
  `CREATE TABLE records (
     number INTEGER PRIMARY KEY,
     kind INTEGER NOT NULL,
     load INTEGER NOT NULL,
     session INTEGER,
     request INTEGER,
     step INTEGER,
     token INTEGER,
     at INTEGER,
     body TEXT,
     crc32c INTEGER NOT NULL
   ) STRICT;
   CREATE TABLE hops (
     slot INTEGER PRIMARY KEY,
     number INTEGER NOT NULL,
     at INTEGER NOT NULL,
     load TEXT NOT NULL,
     source INTEGER NOT NULL,
     target INTEGER NOT NULL,
     frame INTEGER NOT NULL,
     rows INTEGER NOT NULL,
     bytes INTEGER NOT NULL,
     crc32c INTEGER NOT NULL
   ) STRICT;
   CREATE TABLE kept (
     journal TEXT NOT NULL,
     records INTEGER NOT NULL,
     bytes INTEGER NOT NULL,
     through INTEGER NOT NULL,
     opened INTEGER NOT NULL
   ) STRICT;
   INSERT INTO kept VALUES (lower(hex(randomblob(16))), 0, 0, 0, 0);
   PRAGMA application_id = ${applicationId};`,
  `CREATE TABLE expired (
     load INTEGER PRIMARY KEY,
     session INTEGER NOT NULL,
     request INTEGER NOT NULL,
     crc32c INTEGER NOT NULL
   ) STRICT;
   CREATE TABLE repairs (
     number INTEGER PRIMARY KEY,
     at INTEGER NOT NULL,
     said TEXT NOT NULL
   ) STRICT;`,
];

export const knownSchemaSteps = steps.length;

/** Whether the file has no tables yet. */
export async function isEmptyDatabase(connection: Connection): Promise<boolean> {
  return (await connection.value('SELECT count(*) FROM sqlite_schema')) === 0;
}

/** Brings the tables of an empty or older journal to this version, each step in a transaction of its own. */
export async function migrate(connection: Connection, folder: string): Promise<void> {
  if (await isEmptyDatabase(connection)) {
    await connection.exec('CREATE TABLE schema (step INTEGER PRIMARY KEY, applied INTEGER NOT NULL) STRICT');
  }
  const applied = Number(await connection.value('SELECT ifnull(max(step), 0) FROM schema'));
  if (applied > steps.length)
    throw new P4Error('JOURNAL_TOO_NEW', { folder, found: `schema ${applied}`, known: `schema ${steps.length}` });
  if (applied > 0 && (await connection.value('PRAGMA application_id')) !== applicationId)
    throw corrupt(folder, 'the database is not a journal of p4');
  for (const [index, sql] of steps.entries()) {
    if (index < applied) continue;
    await connection.exec(`BEGIN IMMEDIATE; ${sql} INSERT INTO schema VALUES (${index + 1}, unixepoch()); COMMIT`);
  }
}
