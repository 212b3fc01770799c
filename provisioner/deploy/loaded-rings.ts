/** Which rings run on which hosts: asked of their agents, before anything is decided that would end one. */
import { P4Error } from '../../protocol/errors.ts';
import { ringName, type HostName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { StatusReply } from '../../protocol/messages.ts';
import { FleetConnection } from '../fleet-connection.ts';
import { readFleet } from '../fleet-file.ts';
import type { LoadedRing } from '../network/kept-choice.ts';
import type { Deployment } from './deploy-order.ts';
import type { HostRun } from './host-run.ts';

/** Where stages run and no agent says of which ring, they count as a ring of this name. */
const unknownRing = 'unknown';

export async function loadedRings({ order, hosts, signal }: Deployment): Promise<readonly LoadedRing[]> {
  // Where no stage runs there is no ring to end, and nobody is asked.
  const busy = hosts.filter((host) => !host.hasFailed && host.hasFacts && host.facts.stageUnits.length > 0);
  if (busy.length === 0) return [];
  const fleet = (await readFleet(order.state)) === null ? null : await FleetConnection.open(order.state);
  try {
    const found = new Map<string, HostName[]>();
    await Promise.all(
      busy.map(async (host) => {
        const rings = fleet?.isKnown(host.name) === true ? await ringsOn(fleet, host, signal) : [unknownRing];
        for (const ring of rings) found.set(ring, [...(found.get(ring) ?? []), host.name]);
      }),
    );
    return [...found].map(([ring, at]) => ({ ring: ringName(ring), hosts: at }));
  } finally {
    fleet?.close();
  }
}

async function ringsOn(fleet: FleetConnection, host: HostRun, signal: AbortSignal): Promise<readonly string[]> {
  try {
    const options = { deadlineMs: limits.answerMs, signal };
    const status = await fleet.client(host.name).call(['Agent', 'Status'], { ring: '' }, options);
    return runningRings(status);
  } catch (error) {
    if (!(error instanceof P4Error) || error.code === 'CANCELLED') throw error;
    return [unknownRing];
  }
}

/** A ring that is only claimed has no stages: a restart takes nothing from it. */
export const runningRings = ({ rings }: StatusReply): readonly string[] =>
  rings.filter(({ phase }) => phase !== 'claimed').map(({ ring }) => ring);
