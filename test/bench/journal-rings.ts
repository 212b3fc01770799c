/** The arms of the journal's benchmark: under each agent the same ring, with a journal of its own. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

import { assert, present } from '../../protocol/assert.ts';
import { defaultSampling } from '../../protocol/sampling.ts';
import { requireFinished } from '../../provisioner/answer-printer.ts';
import { unlessAborted } from '../../provisioner/interrupt.ts';
import { runRequest } from '../../provisioner/ring-request.ts';
import type { LoadedRing } from '../fixture/loaded-ring.ts';
import type { LocalAgents, RingPlan, TestAgent } from '../fixture/local-agents.ts';
import { fillJournal, journalLimitBytes } from './journal-filling.ts';
import type { Drawn, JournalArm } from './journal-measurement.ts';
import { cpuMs } from './process-usage.ts';

export interface RingsOrder {
  readonly arms: readonly JournalArm[];
  readonly model: { readonly path: string; readonly layers: number; readonly contextTokens: number };
  /** Where journals in memory are; its owner removes it. */
  readonly memoryFolder: string;
  readonly signal: AbortSignal;
}

/** Two stages of one thread under one agent, with the arm's journal. */
export class JournalRing {
  readonly arm: JournalArm;
  readonly host: string;
  readonly #agents: LocalAgents;
  readonly #plan: RingPlan;
  readonly #signal: AbortSignal;
  #ring: LoadedRing | null = null;

  constructor(arm: JournalArm, parts: { agents: LocalAgents; host: string; order: RingsOrder }) {
    const { agents, host, order } = parts;
    const { path, layers, contextTokens } = order.model;
    this.arm = arm;
    this.host = host;
    this.#agents = agents;
    this.#signal = order.signal;
    const half = layers / 2;
    this.#plan = {
      ring: `journal-${host}`,
      model: path,
      stages: [
        [host, `0-${half - 1}`],
        [host, `${half}-${layers - 1}`],
      ],
      context: contextTokens,
      sessions: 1,
      decode: 'fast',
    };
  }

  get agent(): TestAgent {
    return this.#agents.agent(this.host);
  }

  /** The folder of its journal. */
  get folder(): string {
    return this.agent.config.stateFolder;
  }

  /** Loads the ring into an agent with an empty journal, and fills this while the agent is down. */
  async prepare(): Promise<void> {
    const { records } = this.arm;
    if (records === 0) return;
    await this.start();
    await this.stop();
    await fillJournal({ folder: this.folder, records, signal: this.#signal });
  }

  /** Starts the agent; the ring that its journal holds is loaded again (G6), into stages that are new. */
  async start(): Promise<void> {
    this.#signal.throwIfAborted();
    await this.agent.start();
    this.#ring = await unlessAborted(this.#agents.load(this.#plan), this.#signal);
  }

  async stop(): Promise<void> {
    this.#ring = null;
    await this.agent.stop();
  }

  /** Records that the agent's journal holds, as it counts them. */
  async held(): Promise<number> {
    const { journal } = await this.#agents.status(this.host);
    return Number(present(journal, 'an agent has a journal').records);
  }

  /** Greedy tokens after a prompt of one token, in a session of their own. */
  async decode(count: number): Promise<Drawn> {
    const ring = present(this.#ring, 'the ring is loaded');
    const tokens: number[] = [];
    const timesMs: number[] = [];
    const { pid } = this.agent;
    const startCpuMs = cpuMs(pid);
    const result = await runRequest({
      ring: ring.calls,
      order: {
        prompt: { kind: 'tokens', ids: [1] },
        parseSpecial: false,
        sampling: { ...defaultSampling, temperature: 0 },
        maxTokens: count,
        stopStrings: [],
        ignoreEnd: true,
      },
      signal: this.#signal,
      onNews: (news) => {
        if (news.kind !== 'token') return;
        timesMs.push(performance.now());
        tokens.push(news.token.token);
      },
    });
    requireFinished(result);
    assert(tokens.length === count, 'as many tokens as were asked for');
    return {
      tokens,
      intervalsMs: timesMs.slice(1).map((ms, index) => ms - (timesMs[index] ?? 0)),
      cpuMs: cpuMs(pid) - startCpuMs,
    };
  }
}

/** Agents, one for each arm, all down; each with a journal that holds what it is to hold, and a ring with it if any. */
export async function prepareRings(
  order: RingsOrder,
  { agents, said }: { readonly agents: LocalAgents; readonly said: (arm: JournalArm) => void },
): Promise<readonly JournalRing[]> {
  const rings: JournalRing[] = [];
  for (const [index, arm] of order.arms.entries()) {
    said(arm);
    const host = present(agents.hosts[index], 'each arm has an agent');
    const ring = new JournalRing(arm, { agents, host, order });
    await ring.agent.stop();
    const { config } = ring.agent;
    const stateFolder = arm.isOnDisk ? config.stateFolder : join(order.memoryFolder, host);
    await mkdir(stateFolder, { recursive: true, mode: 0o700 });
    ring.agent.config = { ...config, stateFolder, journalLimitBytes };
    await ring.prepare();
    rings.push(ring);
  }
  return rings;
}
