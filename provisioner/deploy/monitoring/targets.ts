/** The targets of Prometheus: where each host of the inventory shows its metrics. */
import type { HostName } from '../../../protocol/ids.ts';
import type { InventoryHost } from '../../../protocol/inventory.ts';
import { addressText, type NetAddress } from '../../../protocol/net-address.ts';

export interface Target extends NetAddress {
  readonly host: HostName;
}

export interface TargetChoice {
  /** All hosts of the inventory. */
  readonly hosts: readonly InventoryHost[];
  /** Hosts that this run deploys to. */
  readonly inRun: ReadonlySet<HostName>;
  /** Addresses that this run has decided, or that still hold. */
  readonly decided: ReadonlyMap<HostName, string>;
  /** Addresses of the fleet file. */
  readonly known: ReadonlyMap<HostName, string>;
}

/**
 * Hosts that were never deployed to, or were revoked, are none.
 * @returns `null` while the address of a host is still to be measured in this run
 */
export function chosenTargets({ hosts, inRun, decided, known }: TargetChoice): readonly Target[] | null {
  const found = hosts.map(({ name, variables }) => {
    const address = inRun.has(name) ? decided.get(name) : known.get(name);
    return { host: name, address, port: variables.ports.metrics };
  });
  if (found.some(({ host, address }) => inRun.has(host) && address === undefined)) return null;
  return found.flatMap(({ address, ...target }) => (address === undefined ? [] : [{ ...target, address }]));
}

/** As Prometheus reads them: each target has its host's name as a label. */
export function targetsText(targets: readonly Target[]): string {
  const groups = targets.map(({ host, ...at }) => ({ targets: [addressText(at)], labels: { host } }));
  return `${JSON.stringify(groups, null, 2)}\n`;
}
