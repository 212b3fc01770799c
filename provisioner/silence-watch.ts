/**
 * Who waits for a token that does not come is told for whom. The head's agent speaks of what is lost; a stage or an agent that
 * is halted is not lost yet, and then only asking all of them shows which one does not answer.
 */
import type { HostName } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import type { FleetConnection } from './fleet-connection.ts';
import { askStatus } from './fleet-status.ts';
import type { HostAnswer } from './status-table.ts';

/** A stage that does not answer, or an agent: `node` is `null` then. */
export interface SilentPart {
  readonly node: number | null;
  readonly host: string;
  readonly reason: string;
}

export interface SilenceWatchOrder {
  readonly fleet: FleetConnection;
  readonly ring: string;
  readonly hosts: readonly HostName[];
  readonly signal: AbortSignal;
  readonly tell: (part: SilentPart) => void;
}

export class SilenceWatch {
  readonly #order: SilenceWatchOrder;
  readonly #timer: NodeJS.Timeout;
  /** Each is told once in a silence. */
  readonly #told = new Set<string>();
  #isAsking = false;

  /** The silence begins here. */
  constructor(order: SilenceWatchOrder) {
    this.#order = order;
    this.#timer = setInterval(() => void this.#look(), limits.readerSilenceMs).unref();
  }

  /** Something came: the silence is over, and the next one begins. */
  heard(): void {
    this.#told.clear();
    this.#timer.refresh();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    const { fleet, ring, hosts, signal, tell } = this.#order;
    const call = { ring, samples: false, deadlineMs: limits.readerSilenceMs, signal };
    try {
      const answers = await Promise.all(hosts.map((host) => askStatus(fleet, { ...call, host })));
      if (signal.aborted) return;
      for (const part of answers.flatMap((answer) => silentParts(answer, ring))) {
        const key = `${String(part.node)} ${part.host}`;
        if (this.#told.has(key)) continue;
        this.#told.add(key);
        tell(part);
      }
    } finally {
      this.#isAsking = false;
    }
  }
}

/** What of the ring is silent, as far as this answer tells. */
export function silentParts({ host, answer }: HostAnswer, ring: string): readonly SilentPart[] {
  if (answer.kind === 'error') return [{ node: null, host, reason: answer.error.code }];
  return answer.status.rings
    .filter((part) => part.ring === ring)
    .flatMap(({ nodes }) => nodes.filter(({ state }) => state === 'silent'))
    .map(({ node, reason }) => ({ node, host, reason }));
}

export const silenceLine = ({ node, host, reason }: SilentPart): string =>
  node === null
    ? `no token comes: the agent on host ${host} does not answer (${reason})`
    : `no token comes: stage ${node} on host ${host}: ${reason}`;
