/** What a deployment is asked to do, and what all of its phases work with. */
import type { HostName } from '../../protocol/ids.ts';
import type { Inventory, InventoryHost } from '../../protocol/inventory.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { KeyAcceptance } from '../ssh/host-trust.ts';
import type { SecretPrompt } from '../ssh/secret-prompt.ts';
import type { StateFolder } from '../state-folder.ts';
import type { HostLockOwner } from './host-lock.ts';
import type { HostRun } from './host-run.ts';
import type { PhaseName } from './phase.ts';
import type { Report } from './report.ts';

export interface DeployOrder {
  readonly inventory: Inventory;
  /** Absolute path of its file. */
  readonly inventoryFile: string;
  readonly state: StateFolder;
  /** The hosts to deploy to. */
  readonly hosts: readonly InventoryHost[];
  /** The host that leaves the fleet in this run, `null` for none. */
  readonly revoked: HostName | null;
  readonly phases: ReadonlySet<PhaseName>;
  /** Hosts at once. */
  readonly forks: number;
  readonly isCheck: boolean;
  readonly restartsRings: boolean;
  readonly forcesUnlock: boolean;
  /** Measure the networks although every host has its address. */
  readonly measuresAnew: boolean;
  readonly acceptance: KeyAcceptance;
  readonly prompt: SecretPrompt;
}

/** A deployment under way. */
export interface Deployment {
  readonly order: DeployOrder;
  readonly hosts: readonly HostRun[];
  readonly report: Report;
  readonly owner: HostLockOwner;
  readonly signal: AbortSignal;
}

/** Whether no host has failed: nothing is switched on any before. */
export const isReady = ({ hosts }: Pick<Deployment, 'hosts'>): boolean => hosts.every(({ hasFailed }) => !hasFailed);

/** Whether the next phase comes: a check looks on at the hosts that are left. */
export const goesOn = ({ order, hosts }: Deployment): boolean => order.isCheck || isReady({ hosts });

/**
 * The hosts that `--limit` names: by their names, or by their groups'.
 * @throws INVALID_ARGUMENT
 */
export function limitedHosts(inventory: Inventory, option: string | undefined): readonly InventoryHost[] {
  if (option === undefined) return inventory.hosts;
  const words = option.split(',').map((word) => word.trim());
  const hosts: readonly string[] = inventory.hosts.map(({ name }) => name);
  const groups = [...new Set(inventory.hosts.flatMap((host) => host.groups))];
  const unknown = words.find((word) => !hosts.includes(word) && !groups.includes(word));
  if (unknown !== undefined) {
    const known = { hosts, groups: groups.length === 0 ? 'none' : groups };
    throw new P4Error('INVALID_ARGUMENT', { option: '--limit', found: unknown, ...known });
  }
  return inventory.hosts.filter(({ name, groups }) => [name as string, ...groups].some((word) => words.includes(word)));
}
