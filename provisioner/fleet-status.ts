/** What the agents of a fleet say of themselves, and what this operator knows besides. */
import { P4Error } from '../protocol/errors.ts';
import type { HostName } from '../protocol/ids.ts';
import type { Plan } from '../protocol/plan.ts';
import type { FleetConnection } from './fleet-connection.ts';
import { readGeneration, readGenerations, type KeptGeneration } from './generation-file.ts';
import { ringHosts } from './opened-plan.ts';
import { replaysOf } from './ring-replay.ts';
import { isDefaultState } from './state-option.ts';
import type { StateFolder } from './state-folder.ts';
import type { HostAnswer, KnownRings } from './status-table.ts';

/** Exit status when an agent does not answer or a ring is not ready. */
export const notReadyExit = 3;

export interface StatusCall {
  readonly host: HostName;
  /** Empty for every ring. */
  readonly ring: string;
  /** Whether the answer shall have metrics, too. */
  readonly samples: boolean;
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
}

/** An agent that does not answer, or a host that has left the fleet, is part of the status and no failure of the asking. */
export async function askStatus(fleet: FleetConnection, call: StatusCall): Promise<HostAnswer> {
  const { host, ring, samples, deadlineMs, signal } = call;
  const address = fleet.isKnown(host) ? fleet.addressText(host) : '';
  try {
    const status = await fleet.client(host).call(['Agent', 'Status'], { ring, samples }, { deadlineMs, signal });
    return { host, address, answer: { kind: 'status', status } };
  } catch (error) {
    if (!(error instanceof P4Error)) throw error;
    return { host, address, answer: { kind: 'error', error } };
  }
}

/** Loads of this operator that stand, or whose loading or unloading was cut short and may be tried again. */
export async function knownLoads(plan: Plan | null, state: StateFolder): Promise<readonly KeptGeneration[]> {
  const known =
    plan === null
      ? await readGenerations(state)
      : [await readGeneration(state, plan.ring)].filter((kept) => kept !== null);
  return known.filter(({ phase }) => phase === 'ready' || phase === 'loading' || phase === 'unloading');
}

/** What these loads say of rings whose agents answered like this. */
export function knownRings(
  loads: readonly KeptGeneration[],
  answers: readonly HostAnswer[],
  state: StateFolder,
): KnownRings {
  const said = answers.flatMap(({ host, answer }) =>
    answer.kind === 'status' ? [{ host, status: answer.status }] : [],
  );
  // A variable of this terminal need not be set where the command is typed.
  const replays = replaysOf(loads, said, isDefaultState(state) ? null : state.root);
  return {
    replays: new Map(replays.map((one) => [one.ring, one])),
    hosts: new Map(loads.map((load) => [load.plan.ring, ringHosts(load.plan)])),
  };
}
