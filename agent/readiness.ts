/** Whether this agent does what it shall: /readyz, and the metric of the same meaning. */
import type { P4Error } from '../protocol/errors.ts';
import type { RingName } from '../protocol/ids.ts';
import { hasSilentStage, isMissed, isUpHere } from './ring-standing.ts';
import type { StageAddress } from './stages.ts';
import type { AgentState } from './state.ts';

export interface RingReadiness {
  readonly ring: RingName;
  /** `coming`: loaded for the first time, or taken down; nobody misses it. */
  readonly state: 'ready' | 'coming' | 'degraded';
  /** Code of what was lost; empty where nothing was. */
  readonly code: string;
}

export interface Readiness {
  readonly isReady: boolean;
  readonly rings: readonly RingReadiness[];
  /** Code of why the journal cannot be written, `null` while it can. */
  readonly journal: string | null;
}

export interface ReadinessSources {
  /** Why the journal cannot be written; `null` while it can. */
  readonly journalFailure: P4Error | null;
  /** For how long a stage of this host has not answered; 0 while it does. */
  readonly stageSilentMs: (of: StageAddress) => number;
}

export function readinessOf(
  { rings, host }: AgentState,
  { journalFailure, stageSilentMs }: ReadinessSources,
): Readiness {
  const all = [...rings.values()].map((ring): RingReadiness => {
    const { ring: name } = ring;
    if (isUpHere(ring, host)) {
      const isSilent = ring.kind === 'live' && hasSilentStage(ring, stageSilentMs);
      return { ring: name, ...(isSilent ? { state: 'degraded', code: 'STAGE_SILENT' } : { state: 'ready', code: '' }) };
    }
    if (!isMissed(ring)) return { ring: name, state: 'coming', code: '' };
    const code = ring.kind === 'claimed' ? 'RING_EMPTY' : (ring.suspension?.error.code ?? '');
    return { ring: name, state: 'degraded', code };
  });
  return {
    isReady: journalFailure === null && all.every(({ state }) => state !== 'degraded'),
    rings: all,
    journal: journalFailure?.code ?? null,
  };
}
