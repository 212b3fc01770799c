/** Which rings run on which hosts: asked of their agents, before anything is decided that would end one. */
import { P4Error } from '../../protocol/errors.ts';
import { ringName, type HostName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { StatusReply } from '../../protocol/messages.ts';
import type { TlsIdentity } from '../../protocol/tls-identity.ts';
import { readFleet, type FleetHost } from '../fleet-file.ts';
import type { LoadedRing } from '../network/kept-choice.ts';
import { ensureCertificate } from '../pki.ts';
import { isBareClaim } from '../ring-health.ts';
import { agentAddressOf, withAgent } from './agent-access.ts';
import type { Deployment } from './deploy-order.ts';
import type { HostRun } from './host-run.ts';

/** Where stages run and no agent says of which ring, they count as a ring of this name. */
const unknownRing = 'unknown';

/** @param busy hosts on which stages run: where none does there is no ring to end, and nobody is asked */
export async function loadedRings(
  { order, signal }: Deployment,
  busy: readonly HostRun[],
): Promise<readonly LoadedRing[]> {
  if (busy.length === 0) return [];
  const fleet = await readFleet(order.state);
  const operator =
    fleet === null ? null : (await ensureCertificate(order.state, { role: 'operator' }, new Date())).identity;
  const found = new Map<string, HostName[]>();
  await Promise.all(
    busy.map(async (host) => {
      const entry = fleet?.find(({ name }) => name === host.name);
      const isKnown = entry !== undefined && operator !== null;
      const rings = isKnown ? await ringsTold({ host, entry, operator }, signal) : [unknownRing];
      for (const ring of rings) found.set(ring, [...(found.get(ring) ?? []), host.name]);
    }),
  );
  return [...found].map(([ring, at]) => ({ ring: ringName(ring), hosts: at }));
}

interface KnownAgent {
  readonly host: HostRun;
  readonly entry: FleetHost;
  readonly operator: TlsIdentity;
}

async function ringsTold(agent: KnownAgent, signal: AbortSignal): Promise<readonly string[]> {
  const { host, entry, operator } = agent;
  const at = { address: agentAddressOf(host, entry), port: entry.port };
  try {
    const options = { deadlineMs: limits.answerMs, signal };
    const call = { host, at, operator };
    return runningRings(await withAgent(call, (client) => client.call(['Agent', 'Status'], { ring: '' }, options)));
  } catch (error) {
    if (!(error instanceof P4Error) || error.code === 'CANCELLED') throw error;
    return [unknownRing];
  }
}

/** A ring that is only claimed has no stages: a restart takes nothing from it. */
export const runningRings = ({ rings }: StatusReply): readonly string[] =>
  rings.filter(({ phase }) => !isBareClaim(phase)).map(({ ring }) => ring);
