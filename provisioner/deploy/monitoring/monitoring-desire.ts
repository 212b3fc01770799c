/** What a host shall have of the monitoring: gathered from the fleet's addresses, the operator's keys and the checkout. */
import type { HostName } from '../../../protocol/ids.ts';
import { present } from '../../../protocol/assert.ts';
import { isLocalHost, readFleet } from '../../fleet-file.ts';
import { ensureCertificate, standingCertificate } from '../../pki.ts';
import type { Addresses } from '../addresses-phase.ts';
import type { DeployOrder } from '../deploy-order.ts';
import type { HostRun } from '../host-run.ts';
import type { Resource } from '../resource.ts';
import { monitoringResources } from './desired-monitoring.ts';
import { readMonitoringFiles } from './monitoring-files.ts';
import { chosenTargets, type Target } from './targets.ts';

export interface MonitoringChoices {
  readonly addresses: Addresses;
  /** Whether a certificate that is missing is made. */
  readonly isFinal: boolean;
}

export const isMonitoringHost = ({ inventory }: DeployOrder, name: HostName): boolean =>
  inventory.monitoring?.host === name;

export async function monitoringDesire(
  order: DeployOrder,
  host: HostRun,
  { addresses, isFinal }: MonitoringChoices,
): Promise<readonly Resource[]> {
  if (!isMonitoringHost(order, host.name)) {
    const pieces = host.facts.monitoringPieces;
    return pieces.length === 0 ? [] : [{ kind: 'withdrawal', pieces }];
  }
  const holder = { role: 'monitor', host: host.name } as const;
  const now = new Date();
  return monitoringResources({
    facts: host.monitoring,
    port: present(order.inventory.monitoring, 'the inventory names a monitoring host').port,
    files: readMonitoringFiles(),
    targets: await fleetTargets(order, addresses),
    identity: isFinal
      ? (await ensureCertificate(order.state, holder, now)).identity
      : await standingCertificate(order.state, holder, now),
  });
}

/** @returns `null` while the address of a host is still to be measured in this run */
export async function fleetTargets(order: DeployOrder, addresses: Addresses): Promise<readonly Target[] | null> {
  const fleet = (await readFleet(order.state)) ?? [];
  const known = fleet.filter((host) => !isLocalHost(host) && host.name !== order.revoked);
  return chosenTargets({
    hosts: order.inventory.hosts,
    inRun: new Set(order.hosts.map(({ name }) => name)),
    decided: new Map([...addresses].map(([name, { address }]) => [name, address])),
    known: new Map(known.map(({ name, address }) => [name, address])),
  });
}
