/**
 * A long run: many sessions of one ring beside each other, some cancelled, some left by their clients, until so many tokens
 * are drawn. Memory has to stay flat, KV cells come back, and the journal makes room beside it: the one of the head's agent
 * is full of what has had its time when the run begins.
 */
import { randomBits } from '../../model/random-weights.ts';
import { assert, present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { memoryUse } from '../bench/process-usage.ts';
import { eventually } from '../fixture/eventually.ts';
import { LocalAgents } from '../fixture/local-agents.ts';
import type { LoadedRing } from '../fixture/loaded-ring.ts';
import { randomSession } from '../fixture/random-session.ts';
import { fillWithExpired } from '../ring/filled-journal.ts';
import { leastSamples, secondHalfGrowth } from './growth.ts';

export interface LongRunOrder {
  /** Tokens to draw, of all sessions together. */
  readonly tokens: number;
  readonly seed: number;
  readonly onSample?: (drawn: number) => void;
}

export interface ProcessGrowth {
  readonly role: 'agent' | 'stage';
  readonly name: string;
  /** When half of the tokens are drawn, in bytes. */
  readonly residentBytes: number;
  /** From there to the end. */
  readonly growthBytes: number;
}

export interface LongRunReport {
  readonly tokens: number;
  readonly sessions: number;
  readonly seconds: number;
  readonly processes: readonly ProcessGrowth[];
  /** Of the head's agent. */
  readonly journal: { readonly bytesBefore: number; readonly bytesAfter: number; readonly recordsAfter: number };
}

/** The most that a process may grow in the second half of 100,000 tokens: an agent by 650 bytes for each of them. */
export const mostGrowthBytes: Readonly<Record<ProcessGrowth['role'], number>> = {
  agent: 32 * 2 ** 20,
  stage: 8 * 2 ** 20,
};

const sessions = 8;
/** Most tokens of a text. */
const mostTokens = 120;
const samples = 2 * leastSamples;
const stages = [
  ['local', '0-2'],
  ['local-2', '3-5'],
  ['local', '6-7'],
] as const;

/** @throws when a receipt is wrong, a KV cell stays, or a process is left */
export async function runLong(order: LongRunOrder): Promise<LongRunReport> {
  const agents = await LocalAgents.start(2);
  try {
    const head = agents.agent('local');
    await head.stop();
    await fillWithExpired(head.config);
    await head.start();
    const bytesBefore = await journalOf(agents);
    const ring = await loadWhenRoom(agents);
    const measured = await drawAll({ agents, ring, order });
    await ring.untilEmpty();
    assert((await ring.headStatus()).requestsRunning === 0, 'no request runs any more');
    const after = await journalOf(agents);
    return {
      ...measured,
      journal: { bytesBefore: bytesBefore.bytes, bytesAfter: after.bytes, recordsAfter: after.records },
    };
  } finally {
    await agents.stop();
  }
}

/** A full journal admits nothing until it has made room, which it begins with when it is asked to (J4). */
async function loadWhenRoom(agents: LocalAgents): Promise<LoadedRing> {
  let ring: LoadedRing | null = null;
  const load = async (): Promise<boolean> => {
    try {
      ring = await agents.load({ ring: 'long', stages, sessions });
      return true;
    } catch (error) {
      if (error instanceof P4Error && error.code === 'JOURNAL_FULL') return false;
      throw error;
    }
  };
  await eventually(load, { what: 'the journal has made room', withinMs: 60_000 });
  return present<LoadedRing>(ring, 'it was loaded');
}

export function longRunLines({ tokens, sessions: count, seconds, processes, journal }: LongRunReport): string[] {
  const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  return [
    `${String(tokens)} tokens in ${String(count)} sessions, ${String(sessions)} at once, in ${seconds.toFixed(0)} s`,
    ...processes.map(
      ({ name, residentBytes, growthBytes }) =>
        `${name}: ${mebibytes(residentBytes)} at half, grew by ${mebibytes(growthBytes)} in the second half`,
    ),
    `journal: ${mebibytes(journal.bytesBefore)} before, ${mebibytes(journal.bytesAfter)} after with ` +
      `${String(journal.recordsAfter)} records`,
  ];
}

/** Those that grew by more than they may. */
export const grown = ({ processes }: LongRunReport): readonly ProcessGrowth[] =>
  processes.filter(({ role, growthBytes }) => growthBytes > mostGrowthBytes[role]);

interface Drawing {
  readonly agents: LocalAgents;
  readonly ring: LoadedRing;
  readonly order: LongRunOrder;
}

async function drawAll({ agents, ring, order }: Drawing): Promise<Omit<LongRunReport, 'journal'>> {
  const { tokens, seed, onSample } = order;
  const processes = await processesOf(agents, ring);
  const sizes = processes.map((): number[] => []);
  const startMs = performance.now();
  let [drawn, opened, taken] = [0, 0, 0];
  const sample = (): void => {
    for (; taken < samples && drawn >= ((taken + 1) * tokens) / samples; taken += 1) {
      processes.forEach(({ pid }, index) => sizes[index]?.push(memoryUse(pid).residentBytes));
      onSample?.(drawn);
    }
  };
  const work = async (): Promise<void> => {
    while (drawn < tokens) {
      opened += 1;
      const found = await randomSession({ ring, random: randomBits(seed, opened), mostTokens });
      drawn += found;
      sample();
    }
  };
  await Promise.all(Array.from({ length: sessions }, work));
  return {
    tokens: drawn,
    sessions: opened,
    seconds: (performance.now() - startMs) / 1000,
    processes: processes.map(({ role, name }, index) => {
      const own = present(sizes[index], 'each process has its samples');
      const residentBytes = present(own[Math.floor(own.length / 2)], 'a middle');
      return { role, name, residentBytes, growthBytes: secondHalfGrowth(own) };
    }),
  };
}

interface RunningProcess extends Pick<ProcessGrowth, 'role' | 'name'> {
  readonly pid: number;
}

async function processesOf(agents: LocalAgents, ring: LoadedRing): Promise<readonly RunningProcess[]> {
  const ofAgents = agents.hosts.map((host): RunningProcess => {
    return { role: 'agent', name: `agent ${host}`, pid: agents.agent(host).pid };
  });
  const ofStages = (await ring.nodes()).map(({ node, pid }): RunningProcess => {
    return { role: 'stage', name: `stage ${String(node)}`, pid };
  });
  return [...ofAgents, ...ofStages];
}

async function journalOf(agents: LocalAgents): Promise<{ readonly bytes: number; readonly records: number }> {
  const { journal } = await agents.status('local');
  const { bytes, records } = present(journal, 'an agent has a journal');
  return { bytes: Number(bytes), records: Number(records) };
}
