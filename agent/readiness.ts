/** Whether this agent does what it shall: /readyz, and the metric of the same meaning. */
import type { P4Error } from '../protocol/errors.ts';
import type { LoadId, NodeIndex, RingName } from '../protocol/ids.ts';
import { isMissed, isUpHere } from './ring-standing.ts';
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
  /** Whether a stage of this host does not answer. */
  readonly isSilent: (of: { load: LoadId; node: NodeIndex }) => boolean;
}

export function readinessOf({ rings, host }: AgentState, { journalFailure, isSilent }: ReadinessSources): Readiness {
  const all = [...rings.values()].map((ring): RingReadiness => {
    const { ring: name, load } = ring;
    const hasSilent = ring.kind === 'live' && [...ring.nodes.keys()].some((node) => isSilent({ load, node }));
    if (isUpHere(ring, host)) {
      return hasSilent
        ? { ring: name, state: 'degraded', code: 'STAGE_SILENT' }
        : { ring: name, state: 'ready', code: '' };
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
