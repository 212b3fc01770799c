/** Starting and ending stage processes; how depends on what supervises the host's processes. */
import type { NodeIndex, RingName } from '../../protocol/ids.ts';

export interface StageSpec {
  readonly ring: RingName;
  readonly node: NodeIndex;
  /** The stage's own folder, made if missing: `<runtime folder>/<first 8 digits of the load's id>.<node>.<incarnation>`. */
  readonly folder: string;
  /** Called with each line of the stage's log. */
  readonly log: (line: StageLine) => void;
}

/** A structured line of the stage's own log, or what a library said on its way to abort. */
export type StageLine =
  | { readonly kind: 'record'; readonly record: Readonly<Record<string, unknown>> }
  | { readonly kind: 'text'; readonly text: string };

export interface StageExit {
  /** Exit status, `null` when a signal ended it. */
  readonly status: number | null;
  readonly signal: string | null;
  /** The latest lines that it said, oldest first. */
  readonly lastWords: readonly string[];
}

export interface StageHandle {
  readonly pid: number;
  readonly folder: string;
  /** Aborted as soon as the process has ended: whoever waits for its socket need not wait on. */
  readonly gone: AbortSignal;
  /** Resolves once, when the process has ended and its sockets are removed; never rejects. */
  readonly exited: Promise<StageExit>;
  /**
   * Ends the process: politely, then after `limits.stageStopMs` by force. What it was told on its control socket before
   * has a head start.
   */
  stop(): Promise<StageExit>;
  /** Lets go of a stage that lives on; nothing more is told of it. */
  release(): void;
}

export interface StageLauncher {
  /** Whether stages live on when their agent ends; else they end with it. */
  readonly outlivesAgent: boolean;
  /**
   * Stages of a former agent that live, before the first start; what is left of others is cleared away.
   *
   * @param log called with each line of a stage's log from here on
   */
  former(runtimeFolder: string, log: (folder: string, line: StageLine) => void): Promise<readonly StageHandle[]>;
  /** @throws STAGE_START, STAGE_RUNTIME_FOLDER */
  start(spec: StageSpec): Promise<StageHandle>;
}
