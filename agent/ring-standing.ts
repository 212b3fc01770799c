/** How a ring stands on this host, for those who only want to know whether it serves. */
import type { HostName } from '../protocol/ids.ts';
import type { StageAddress } from './stages.ts';
import { isHead, type LiveRing, type RingState } from './state.ts';

/** Whether a token can go round the ring, as far as this host can tell: the head's agent has seen one come home. */
export function isUpHere(ring: RingState, host: HostName): boolean {
  if (ring.kind === 'claimed' || ring.suspension !== null) return false;
  return ring.phase.kind === 'ready' || (ring.phase.kind === 'linked' && !isHead(ring, host));
}

/** Whether one should be able to, and cannot: a ring that is loaded for the first time, or taken down, is not missed. */
export function isMissed(ring: RingState): boolean {
  return ring.kind === 'claimed' || (ring.suspension !== null && ring.phase.kind !== 'ending');
}

/** Whether a stage of this host does not answer: no token gets through it. */
export const hasSilentStage = ({ load, nodes }: LiveRing, silentMs: (of: StageAddress) => number): boolean =>
  [...nodes.keys()].some((node) => silentMs({ load, node }) > 0);
