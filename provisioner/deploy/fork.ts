/** Many hosts at once, but not all. */
import { P4Error } from '../../protocol/errors.ts';
import type { HostRun } from './host-run.ts';
import type { PhaseName } from './phase.ts';

export interface ForkOrder {
  readonly phase: PhaseName;
  readonly hosts: readonly HostRun[];
  /** Hosts at once, from 1. */
  readonly forks: number;
}

/**
 * Does something on every host that has not failed. A host's failure is noted at the host; the others go on.
 * @throws CANCELLED, and bugs
 */
export async function onHosts(order: ForkOrder, action: (host: HostRun) => Promise<void>): Promise<void> {
  const left = order.hosts.filter(({ hasFailed }) => !hasFailed).values();
  const work = async (): Promise<void> => {
    for (const host of left) {
      try {
        await action(host);
      } catch (error) {
        if (!(error instanceof P4Error) || error.code === 'CANCELLED') throw error;
        host.fail(order.phase, error);
      }
    }
  };
  // All end before the first bad end is told: nothing goes on behind the back of who cleans up.
  const ends = await Promise.allSettled(Array.from({ length: Math.min(order.forks, order.hosts.length) }, work));
  const bad = ends.find((end) => end.status === 'rejected');
  if (bad !== undefined) throw bad.reason;
}
