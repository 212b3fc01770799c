/**
 * `p4 journal repair`: makes a journal of every record that is what its checksum says, and says what that leaves out
 * (J6). The damaged files are kept beside it.
 *
 * No agent can open the journal meanwhile: what needs a repair is refused, and so is what a repair has not finished.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { present } from '../../protocol/assert.ts';
import { limits } from '../../protocol/limits.ts';
import { noFailpoint } from './failpoint.ts';
import { openingFailure } from './failure.ts';
import { inspectJournal, type Inspection } from './inspection.ts';
import { openJournal } from './journal.ts';
import { recordBytes } from './ledger.ts';
import { Mark } from './mark.ts';
import { databaseLimitBytes } from './database-limit.ts';
import { rowText, type Row } from './record-codec.ts';
import { asideFileName, isRepairUnfinished, makeReady, newJournalFolder, swapIn } from './repair-swap.ts';
import { Salvage, type Sacrifice } from './salvage.ts';
import { migrate } from './schema.ts';
import { lockedConnection, Store } from './store.ts';

export type RepairOutcome =
  | { readonly kind: 'whole'; readonly inspection: Inspection }
  /** A repair that was cut off when all was saved is finished. */
  | { readonly kind: 'finished'; readonly aside: string }
  | { readonly kind: 'repaired'; readonly aside: string; readonly report: RepairReport };

export interface RepairReport extends Sacrifice {
  readonly inspection: Inspection;
  readonly savedRecords: number;
  /** Whole records that could not be kept, since what they belong to is lost. */
  readonly droppedRecords: number;
}

export interface RepairOrder {
  readonly folder: string;
  readonly limitBytes: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * Rejects with `JOURNAL_MISSING`, `JOURNAL_LOCKED` while an agent runs, `JOURNAL_TOO_NEW`, and `JOURNAL_UNWRITABLE` where
 * there is no room for the new journal beside the old one; then the old one is as it was.
 */
export async function repairJournal(order: RepairOrder): Promise<RepairOutcome> {
  const { folder } = order;
  try {
    if (await isRepairUnfinished(folder)) return { kind: 'finished', aside: await swapIn(folder) };
    const salvage = new Salvage();
    const inspection = await inspectJournal(folder, (row) => {
      salvage.note(row);
    });
    if (inspection.lost.length === 0 && inspection.faults.length === 0) return { kind: 'whole', inspection };
    salvage.noteLost(inspection.lost);
    const report = await makeJournal(order, { salvage, inspection });
    await makeReady(folder);
    return { kind: 'repaired', aside: await swapIn(folder), report };
  } catch (error) {
    throw openingFailure(folder, error);
  }
}

interface Findings {
  readonly salvage: Salvage;
  readonly inspection: Inspection;
}

async function makeJournal(order: RepairOrder, { salvage, inspection }: Findings): Promise<RepairReport> {
  const folder = await newJournalFolder(order.folder);
  const sacrifice = salvage.sacrifice();
  const connection = await lockedConnection(folder, databaseLimitBytes(order.limitBytes));
  let saved: SavedRows;
  try {
    await migrate(connection, folder);
    const store = await Store.over(connection, noFailpoint);
    saved = await saveRows(store, { from: order.folder, salvage });
    const said = saidOf({ ...sacrifice, inspection });
    const highest = salvage.highestIds(inspection.expired);
    await store.inherit(highest, { at: Math.floor(order.now() / 1000), said });
    await store.keep({ ...saved, through: inspection.lastRecord });
    await store.checkpoint('emptied');
    const { journal } = present(await store.kept(), 'the new journal has its counters');
    const mark = await Mark.open(folder, { journal, number: inspection.lastRecord }, noFailpoint);
    await mark.close();
  } finally {
    await connection.close();
  }
  await endWhatCannotGoOn({ ...order, folder }, salvage.endings());
  const aside = `damaged-${new Date(order.now()).toISOString().replaceAll(/[:.]/g, '-')}`;
  await writeFile(join(folder, asideFileName), aside, { flush: true });
  const droppedRecords = inspection.records - saved.records;
  return { ...sacrifice, inspection, savedRecords: saved.records, droppedRecords };
}

interface SavedRows {
  readonly records: number;
  readonly bytes: number;
}

async function saveRows(
  store: Store,
  { from, salvage }: { readonly from: string; readonly salvage: Salvage },
): Promise<SavedRows> {
  let records = 0;
  let bytes = 0;
  let texts: string[] = [];
  let waitingBytes = 0;
  const write = async (): Promise<void> => {
    await store.append(texts, null);
    await store.checkpoint('reused');
    texts = [];
    waitingBytes = 0;
  };
  await inspectJournal(from, async (row: Row) => {
    if (!salvage.keeps(row)) return;
    texts.push(rowText(row));
    records += 1;
    bytes += recordBytes(row);
    waitingBytes += recordBytes(row);
    if (texts.length >= limits.journalBatchRecords || waitingBytes >= limits.journalBatchBytes) await write();
  });
  await write();
  return { records, bytes };
}

/** Opens the new journal as an agent will, which verifies it, and commits the rest. */
async function endWhatCannotGoOn(
  { folder, limitBytes, now }: RepairOrder,
  endings: Parameters<Awaited<ReturnType<typeof openJournal>>['commit']>[0],
): Promise<void> {
  const journal = await openJournal({ folder, limitBytes, now });
  try {
    await journal.commit(endings);
  } finally {
    await journal.close();
  }
}

/** One line for the table of repairs, as short as it can name things. */
function saidOf({ inspection, ...sacrifice }: Sacrifice & { readonly inspection: Inspection }): string {
  const named = (list: readonly unknown[]): readonly unknown[] => list.slice(0, limits.journalNamedFaults);
  return JSON.stringify({
    lost: named(inspection.lost.map(({ from, to }) => [from, to])),
    faults: named(inspection.faults),
    lostLoads: named(sacrifice.lostLoads),
    cutRequests: named(sacrifice.cutRequests),
    closedSessions: named(sacrifice.closedSessions),
  });
}
