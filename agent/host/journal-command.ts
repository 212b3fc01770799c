/** `p4 journal check|repair|stats`: looks at this host's journal, mends it, says what it holds. */
import type { AgentConfig } from '../../protocol/agent-config.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { JournalReport } from '../../protocol/host-order.ts';
import { limits } from '../../protocol/limits.ts';
import { inspectJournal, type Inspection } from '../journal/inspection.ts';
import { loadsOf } from '../journal/journal-report.ts';
import { Ledger } from '../journal/ledger.ts';
import { noteRow } from '../journal/opening.ts';
import { repairJournal, type RepairReport } from '../journal/repair.ts';
import { askAgent } from './agent-call.ts';
import type { Output } from './output.ts';

type Place = Pick<AgentConfig, 'host' | 'stateFolder' | 'runtimeFolder' | 'journalLimitBytes'>;

const damagedExit = 4;

/** Returns the exit status: 0 for a whole journal, 4 for one with a fault. */
export async function checkJournal({ stateFolder }: Place, output: Output): Promise<number> {
  const inspection = await inspectJournal(stateFolder);
  const { records, lastRecord, lost, faults, repairs } = inspection;
  const isWhole = lost.length === 0 && faults.length === 0;
  output.line(`${stateFolder}: ${records} records are whole, the last is number ${lastRecord}.`);
  sayDamage(inspection, output);
  if (repairs.length > 0) output.line(`It was repaired before: ${repairs.length} times.`);
  output.line(isWhole ? 'The journal is whole.' : 'The journal is damaged: `p4 journal repair` saves what is whole.');
  output.result({ folder: stateFolder, isWhole, records, lastRecord, lost, faults, repairs: repairs.map(parsedText) });
  return isWhole ? 0 : damagedExit;
}

export async function repair(place: Place, output: Output): Promise<number> {
  const { stateFolder: folder, journalLimitBytes: limitBytes } = place;
  const outcome = await repairJournal({ folder, limitBytes, now: Date.now });
  switch (outcome.kind) {
    case 'whole':
      output.line('The journal is whole: there is nothing to repair, and nothing was changed.');
      output.result({ folder, outcome: outcome.kind });
      return 0;
    case 'finished':
      output.line('A repair that was cut off is finished: what it saved is the journal now.');
      output.line(`The damaged files are in ${outcome.aside}.`);
      output.result({ folder, outcome: outcome.kind, aside: outcome.aside });
      return 0;
    case 'repaired':
      sayRepair(outcome.report, output);
      output.line(`The damaged files are in ${outcome.aside}; delete them when nobody needs them.`);
      output.result({ folder, outcome: outcome.kind, aside: outcome.aside, ...outcome.report });
      return 0;
  }
}

/** Of an agent that runs, by asking it; else of its files. */
export async function journalStats(place: Place, output: Output): Promise<number> {
  const answer = await askAgent(place.runtimeFolder, { kind: 'journal' });
  const report = answer?.kind === 'journal' ? answer.report : await reportOfFiles(place);
  const { records, recordBytes, lastRecord, databaseBytes, reservedBytes, limitBytes, loads, moreLoads } = report;
  output.line(
    `journal of ${place.host}, ${answer === null ? 'no agent holds it' : `held by its agent: ${report.state}`}`,
  );
  output.line(`records   ${records}, ${mebibytes(recordBytes)}; the last is number ${lastRecord}`);
  output.line(`database  ${mebibytes(databaseBytes)} in use, ${mebibytes(reservedBytes)} promised to what runs`);
  output.line(`limit     ${mebibytes(limitBytes)}`);
  output.line(`loads     ${loads.length + moreLoads}${moreLoads > 0 ? `, ${moreLoads} older ones not shown` : ''}`);
  for (const { ring, load, stands, sessions, requests, lastRequest } of loads)
    output.line(
      `  ${ring}  ${load}  ${stands ? 'stands' : 'ended'}, ${sessions} sessions, ${requests} requests up to ${lastRequest}`,
    );
  output.result({ host: place.host, isHeld: answer !== null, ...report });
  return 0;
}

async function reportOfFiles({ stateFolder: folder, journalLimitBytes: limitBytes }: Place): Promise<JournalReport> {
  const ledger = new Ledger();
  const { lost, faults, expired, databaseBytes, ...counted } = await inspectJournal(folder, (row) => {
    noteRow(ledger, folder, row);
  });
  const [fault] = [...faults, ...lost.map(({ from, to, why }) => `records ${from} to ${to}: ${why}`)];
  if (fault !== undefined)
    throw new P4Error('JOURNAL_CORRUPT', { folder, why: fault, repair: '/opt/p4/libexec/p4 journal repair' });
  for (const ids of expired) ledger.history(ids.load)?.raise(ids);
  const { records, recordBytes, lastRecord } = counted;
  const { reservedBytes } = ledger;
  return {
    ...{ state: 'closed', records, recordBytes, lastRecord, databaseBytes, reservedBytes, limitBytes },
    ...loadsOf(ledger),
  };
}

function sayDamage({ lost, faults }: Inspection, output: Output): void {
  for (const { from, to, why } of named(lost, output))
    output.line(from === to ? `record ${from}: ${why}` : `records ${from} to ${to}: ${why}`);
  for (const fault of named(faults, output)) output.line(fault);
}

function sayRepair(report: RepairReport, output: Output): void {
  const { inspection, savedRecords, droppedRecords, lostLoads, cutRequests, closedSessions } = report;
  output.line(`${savedRecords} records are saved.`);
  sayDamage(inspection, output);
  if (droppedRecords > 0) output.line(`${droppedRecords} whole records went: what they belong to is lost.`);
  for (const number of named(lostLoads, output))
    output.line(`The load that was admitted as record ${number} is lost: load its ring anew.`);
  for (const name of named(cutRequests, output))
    output.line(`Request ${name}: its text is lost, or its end is drawn again; a settlement that was there still is.`);
  for (const name of named(closedSessions, output))
    output.line(`Session ${name} is closed: what it held may be incomplete. Open a new one.`);
  if (inspection.lost.length > 0)
    output.line(
      'A ring that was unloaded, or forgotten, in what is lost may stand again: unload it or forget it again.',
    );
}

function named<Item>(items: readonly Item[], output: Output): readonly Item[] {
  const more = items.length - limits.journalNamedFaults;
  if (more > 0) output.line(`${more} more than the ${limits.journalNamedFaults} of these:`);
  return items.slice(0, limits.journalNamedFaults);
}

const mebibytes = (bytes: number): string => `${(bytes / 1024 ** 2).toFixed(1)} MiB`;

function parsedText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
