/**
 * An agent's configuration file (JSON, mode 0600): written by whoever installs the agent, read by it once at start.
 *
 * Paths are absolute. Nothing in it changes while an agent runs.
 */
import type { ErrorCode, ErrorFacts } from './errors.ts';
import type { HostName } from './ids.ts';
import type { NetAddress } from './net-address.ts';

export type AgentConfig = AgentPlace & StageSupervision;

export interface AgentPlace {
  readonly host: HostName;
  /** Where gRPC listens; the first one is the advertised address. */
  readonly listen: readonly { readonly address: string; readonly port: number }[];
  /** Holds the journal. */
  readonly stateFolder: string;
  /** Holds slices, each `<slice id>.gguf`. */
  readonly slicesFolder: string;
  /** Holds one folder of sockets for each stage; short, since a Unix socket's path has at most 107 bytes. */
  readonly runtimeFolder: string;
  readonly pki: {
    readonly authority: string;
    readonly certificate: string;
    readonly key: string;
    /** The authority's list of revoked certificates, where there is one. */
    readonly revoked?: string;
  };
  readonly journalLimitBytes: number;
  /**
   * Where metrics are shown: on loopback, and over mutual TLS on the advertised address. Port 0: any that is free. Absent:
   * nothing is counted and nothing shown.
   */
  readonly metrics?: { readonly port: number };
  /** End when standard input closes: an agent that another program started ends with that program. */
  readonly endsWithInput: boolean;
}

/** How stages start: as children that end with their agent, or as units of systemd that outlive it. */
export type StageSupervision =
  { readonly stages: 'child-processes' } | { readonly stages: 'systemd'; readonly stageUnits: StageUnits };

export interface StageUnits {
  /** Name of the template, without `@.service`; an instance is named as the stage's folder in `runtimeFolder`. */
  readonly template: string;
  /** Why the agent may start units: a rule of polkit lets it, or a unit of root serves what it puts into a folder. */
  readonly privileges: { readonly kind: 'polkit' } | { readonly kind: 'request-folder'; readonly folder: string };
}

/** The one line an agent prints on standard output, as JSON, once it answers on its addresses. */
export interface AgentReady {
  readonly event: 'ready';
  readonly host: HostName;
  readonly pid: number;
  readonly listen: AgentConfig['listen'];
  /** Where it shows its metrics on loopback; `null` where it cannot listen there, or shall not. */
  readonly metrics: NetAddress | null;
}

/** The one line an agent prints instead of `AgentReady`, as JSON, before it ends because it cannot start. */
export interface AgentFailed {
  readonly event: 'failed';
  readonly code: ErrorCode;
  readonly facts: ErrorFacts;
}
