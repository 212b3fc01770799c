/**
 * What deploy and the probe program on a host say to each other: JSON lines, orders on standard input, answers on
 * standard output. `probe-codec.ts` checks what comes in.
 *
 * The program listens at the addresses of its host, connects to those of others, and measures; it decides nothing. Who
 * connects to it must know the fleet's secret of this run, which both sides prove without showing it.
 */
import type { HostName } from './ids.ts';

/** The first order; the others follow its answer. */
export interface ProbeBegin {
  readonly kind: 'begin';
  readonly host: HostName;
  /** Of this run of deploy: 64 hexadecimal digits. */
  readonly secret: string;
  /**
   * Where to listen at each address if it is free, else at any port. The same on every host, so that an address which
   * leads to another machine of the fleet is answered there, and found out.
   */
  readonly port: number;
}

/** Whether the target answers, who that is, how long a round trip takes, and whether a large frame passes. */
export interface ProbeReach {
  readonly kind: 'reach';
  readonly id: number;
  readonly target: ProbeTarget;
}

/** How many bytes a second pass each way. */
export interface ProbeBurst {
  readonly kind: 'burst';
  readonly id: number;
  readonly target: ProbeTarget;
}

export type ProbeOrder = ProbeBegin | ProbeReach | ProbeBurst;

export interface ProbeTarget {
  /** An IP address; a link-local IPv6 one with its zone on the host that connects: `fe80::1%eth0`. */
  readonly address: string;
  readonly port: number;
}

export type ProbeAnswer =
  | { readonly kind: 'began'; readonly machineId: string; readonly addresses: readonly HostAddress[] }
  | { readonly kind: 'reached'; readonly id: number; readonly outcome: ReachOutcome }
  | { readonly kind: 'measured'; readonly id: number; readonly outcome: BurstOutcome }
  /** The program ends: it was told something that is not of this protocol. */
  | { readonly kind: 'failed'; readonly why: string };

/** `host`: valid on the machine alone; `link`: on one network segment alone. */
export type AddressScope = 'global' | 'link' | 'host';

/** What the kernel says against keeping an address, and `dynamic`: it was given by DHCP or a router. */
export const addressFlags = ['deprecated', 'temporary', 'tentative', 'secondary', 'dynamic'] as const;
export type AddressFlag = (typeof addressFlags)[number];

export interface HostAddress {
  /** Without a zone. */
  readonly address: string;
  readonly prefixLength: number;
  readonly interface: string;
  readonly scope: AddressScope;
  readonly flags: readonly AddressFlag[];
  /** Whether the link carries frames. */
  readonly isUp: boolean;
  /** In bytes; 0 where it is not known. */
  readonly mtu: number;
  /** What the driver says, in Mb/s; 0 where it says nothing. */
  readonly linkMbps: number;
  readonly listener: { readonly kind: 'port'; readonly port: number } | { readonly kind: 'none'; readonly why: string };
}

/** The program that answered: the host it was told to be, on the machine it found. */
export interface ProbeIdentity {
  readonly host: HostName;
  readonly machineId: string;
}

export type ReachOutcome =
  | {
      readonly kind: 'reached';
      readonly by: ProbeIdentity;
      /** The address that the target saw the connection come from, without a zone. */
      readonly seenAs: string;
      readonly roundTripMs: number;
    }
  /** Connected, but the large frame did not come back. */
  | { readonly kind: 'frame-lost'; readonly by: ProbeIdentity }
  | { readonly kind: 'unreachable'; readonly why: UnreachableReason };

/**
 * `refused`: nobody listens; `timed-out`: nothing came back; `no-route`: the network says so; `stranger`: something
 * answers that does not know the secret; `closed`: the connection broke off; `failed`: anything else.
 */
export const unreachableReasons = ['refused', 'timed-out', 'no-route', 'stranger', 'closed', 'failed'] as const;
export type UnreachableReason = (typeof unreachableReasons)[number];

/** In bytes a second: `up` from the host that connects, `down` to it. */
export type BurstOutcome =
  | { readonly kind: 'measured'; readonly upBytesPerSecond: number; readonly downBytesPerSecond: number }
  | { readonly kind: 'unmeasured'; readonly why: UnreachableReason };
