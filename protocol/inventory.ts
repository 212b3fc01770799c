/**
 * An inventory: the machines an operator has, how to reach them, and what holds for each.
 *
 * `inventory-document.ts` makes one from YAML; nothing else does. What was written for the fleet and for groups has
 * been handed down to the hosts.
 */
import type { HostName } from './ids.ts';

export interface Inventory {
  /** In the order of the file; at least one. */
  readonly hosts: readonly InventoryHost[];
  /** The host that Prometheus runs on, `null` for none. */
  readonly monitoring: { readonly host: HostName; readonly port: number } | null;
}

export interface InventoryHost {
  readonly name: HostName;
  /** Group names, in the order of the file. */
  readonly groups: readonly string[];
  readonly connection: Connection;
  readonly variables: HostVariables;
}

/** How ssh reaches a host. */
export interface Connection extends SshTarget {
  readonly become: Become;
  /** The hop before the last, `null` for a direct connection. */
  readonly jump: Jump | null;
}

export interface SshTarget {
  /** DNS name or IP address. */
  readonly address: string;
  readonly port: number;
  /** `null`: whatever the operator's ssh configuration says. */
  readonly user: string | null;
  readonly key: SshKey;
}

/** `agent`: the operator's ssh agent. `file`: a private key, its path absolute, from `~`, or from the inventory's folder. */
export type SshKey = { readonly kind: 'agent' } | { readonly kind: 'file'; readonly path: string };

/** How the user becomes root; `none`: it is root already. */
export type Become = { readonly kind: 'none' } | { readonly kind: 'sudo'; readonly password: SudoPassword };
export type SudoPassword =
  { readonly kind: 'none' } | { readonly kind: 'ask' } | { readonly kind: 'file'; readonly path: string };

/** `host`: another host of the inventory, reached as that one says. `machine`: one that is no host of the fleet. */
export type Jump =
  { readonly kind: 'host'; readonly host: HostName } | { readonly kind: 'machine'; readonly target: SshTarget };

export interface HostVariables {
  /** Where the host is to be reached by the others; `measured`: deploy finds the fastest that all can reach (A1). */
  readonly advertise: Advertise;
  /** The GPUs that stages may see. */
  readonly gpus: { readonly kind: 'all' } | { readonly kind: 'these'; readonly indexes: readonly number[] };
  /** The CPUs that agent and stages may use, as ranges in rising order; `null` for all. */
  readonly cpus: readonly CpuRange[] | null;
  /** Absolute path of the folder that holds journal and slices. */
  readonly stateFolder: string;
  readonly ports: { readonly agent: number; readonly metrics: number; readonly bridge: number };
}

export type Advertise =
  | { readonly kind: 'measured' }
  | { readonly kind: 'address'; readonly address: string }
  | { readonly kind: 'interface'; readonly interface: string };

/** CPUs `first` to `last`, both included. */
export interface CpuRange {
  readonly first: number;
  readonly last: number;
}

/** The ranges as `AllowedCPUs=` wants them: `0-3,8`. */
export const cpusText = (ranges: readonly CpuRange[]): string =>
  ranges.map(({ first, last }) => (first === last ? String(first) : `${first}-${last}`)).join(',');
