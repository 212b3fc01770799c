/**
 * `p4 forget RING`: gives a ring up on this host without its generation (G7), for when the generation file is lost. An
 * agent that runs does it; without one, the journal's next reader finds the load ended.
 */
import process from 'node:process';
import { createInterface } from 'node:readline/promises';

import type { AgentConfig } from '../../protocol/agent-config.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { LoadId, RingName } from '../../protocol/ids.ts';
import { openJournal, type Journal } from '../journal/journal.ts';
import { askAgent } from './agent-call.ts';
import type { Output } from './output.ts';

export interface ForgetOrder {
  readonly ring: RingName;
  readonly isConfirmed: boolean;
}

type Place = Pick<AgentConfig, 'host' | 'stateFolder' | 'runtimeFolder' | 'journalLimitBytes'>;

/** Rejects with `FORGET_UNCONFIRMED`, `RING_UNKNOWN`, `AGENT_SILENT`, and what the journal refuses to open with. */
export async function forget(place: Place, { ring, isConfirmed }: ForgetOrder, output: Output): Promise<void> {
  output.line(`Forgets ring ${ring} on host ${place.host}, without its generation:`);
  output.line('- its stages here are ended, and what runs in them is lost;');
  output.line('- the name is free here for another load; the journal keeps a record of this;');
  output.line('- other hosts of the ring keep their share until it is forgotten there, too.');
  if (!isConfirmed) await confirm(ring, output);
  const answer = await askAgent(place.runtimeFolder, { kind: 'forget', ring });
  if (answer === null) await forgetInJournal(place, ring);
  const stages = answer?.kind === 'forgotten' ? answer.stages : null;
  output.line(`${ring} is forgotten on ${place.host}.`);
  if (stages === null) output.line('No agent runs here: one that starts ends what is left of its stages.');
  else output.line(`${stages} of its stages ended here.`);
  output.line('Now run the same on every other host of its plan, and load the ring again where its plan is.');
  output.result({ forgotten: ring, host: place.host, by: stages === null ? 'journal' : 'agent', stages: stages ?? 0 });
}

async function confirm(ring: RingName, output: Output): Promise<void> {
  if (output.isJson || !process.stdin.isTTY) throw new P4Error('FORGET_UNCONFIRMED', { ring });
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  try {
    const typed = await lines.question(`Type ${ring} to go on: `);
    if (typed.trim() !== ring) throw new P4Error('FORGET_UNCONFIRMED', { ring, typed: typed.trim() });
  } finally {
    lines.close();
  }
}

async function forgetInJournal(place: Place, ring: RingName): Promise<void> {
  const { host, stateFolder: folder, journalLimitBytes: limitBytes } = place;
  const journal = await openJournal({ folder, limitBytes }).catch((error: unknown) => {
    // An agent of before this socket, or one that is just starting or ending.
    if (error instanceof P4Error && error.code === 'JOURNAL_LOCKED')
      throw new P4Error('AGENT_SILENT', error.facts, error);
    throw error;
  });
  try {
    const load = await standingLoad(journal, ring);
    if (load === null) throw new P4Error('RING_UNKNOWN', { ring, host });
    await journal.commit([{ kind: 'load-ended', load, by: 'forget' }]);
  } finally {
    await journal.close();
  }
}

async function standingLoad(journal: Journal, ring: RingName): Promise<LoadId | null> {
  for await (const record of journal.replay())
    if (record.kind === 'load-admitted' && record.ring === ring) return record.load;
  return null;
}
