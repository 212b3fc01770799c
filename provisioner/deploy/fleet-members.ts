/** Hosts that the fleet file has and the inventory has not: nobody deploys to them, and their agents run on. */
import type { HostName } from '../../protocol/ids.ts';
import type { Inventory } from '../../protocol/inventory.ts';
import { isLocalHost, readFleet, type FleetHost } from '../fleet-file.ts';
import type { Deployment } from './deploy-order.ts';

export interface StrayHosts {
  /** Hosts of an earlier inventory. */
  readonly left: readonly HostName[];
  /** Agents that `npm run agents` had in this state folder: a deployed fleet has none. */
  readonly local: readonly HostName[];
}

export function strayHosts(fleet: readonly FleetHost[], { hosts }: Pick<Inventory, 'hosts'>): StrayHosts {
  const named = new Set(hosts.map(({ name }) => name));
  const stray = fleet.filter(({ name }) => !named.has(name));
  return {
    left: stray.filter((host) => !isLocalHost(host)).map(({ name }) => name),
    local: stray.filter(isLocalHost).map(({ name }) => name),
  };
}

/** @param revoked leaves the fleet in this very run */
export async function tellStrayHosts({ order, report }: Deployment, revoked: HostName | null): Promise<void> {
  const { left, local } = strayHosts((await readFleet(order.state)) ?? [], order.inventory);
  for (const host of left.filter((name) => name !== revoked)) {
    report.note(
      `${host} is in fleet.json and not in the inventory: its agent runs on there. To take p4 off it, put it back and run --limit ${host} --remove --yes; where the machine is gone, --revoke ${host}.`,
    );
    report.event({ event: 'stray-host', host });
  }
  if (local.length === 0) return;
  const verb = order.isCheck ? 'would leave' : 'leaves';
  report.note(`${local.join(', ')} ${verb} the fleet: agents of \`npm run agents\` have a state folder of their own.`);
}
