/**
 * Whether a ring serves, from what each of its agents says: ready means that a token can go all the way round, which the
 * head's agent alone knows. Pure.
 */
import type { RingStatus } from '../protocol/messages.ts';

/** What one host's agent says of the ring. */
export type RingPart = RingStatus & { readonly host: string };

export interface RingHealth {
  readonly word: 'ready' | 'degraded' | 'changing';
  /** How long it has been suspended, as far as its agents say; 0 where none does. */
  readonly suspendedMs: number;
  /** Hosts of the ring that do not answer. */
  readonly silent: readonly string[];
  /** Hosts of the ring that answer and hold nothing of it, not even its name. */
  readonly bare: readonly string[];
}

/** What is known of a ring's hosts besides what they say. */
export interface RingHosts {
  /** Where it was loaded; empty where that is not known here. */
  readonly loadedOn: readonly string[];
  /** Hosts that were asked and did not answer. */
  readonly silent: readonly string[];
}

/** Whether a host that says this phase holds the ring's name and nothing else of it. */
export const isBareClaim = (phase: string): boolean => phase === 'claimed' || phase === 'unreadable';

export function ringHealth(parts: readonly RingPart[], { loadedOn, silent }: RingHosts): RingHealth {
  const absent = loadedOn.filter((host) => silent.includes(host));
  const bare = loadedOn.filter((host) => !silent.includes(host) && !parts.some((part) => part.host === host));
  const suspendedMs = Math.max(0, ...parts.map((part) => Number(part.suspendedMs)));
  return { word: wordOf(parts, { absent, bare }), suspendedMs, silent: absent, bare };
}

function wordOf(
  parts: readonly RingPart[],
  { absent, bare }: { readonly absent: readonly string[]; readonly bare: readonly string[] },
): RingHealth['word'] {
  const phases = parts.map(({ phase }) => phase);
  if (phases.includes('ending')) return 'changing';
  if (absent.length > 0 || phases.includes('suspended') || phases.includes('silent') || phases.some(isBareClaim))
    return 'degraded';
  // A load tells one agent after another.
  const isLoading = phases.some((phase) => phase !== 'ready' && phase !== 'linked');
  if (bare.length > 0) return isLoading ? 'changing' : 'degraded';
  const headIsReady = parts.some(({ head, phase }) => head !== null && phase === 'ready');
  return headIsReady && !isLoading ? 'ready' : 'changing';
}

/** `Ring tale: ` and this. */
export function healthText(parts: readonly RingPart[], health: RingHealth): string {
  if (health.word === 'ready') return `ready on ${parts.map(({ host }) => host).join(', ')}`;
  const phases = [
    ...parts.map(({ host, phase }) => `${phase} on ${host}`),
    ...health.bare.map((host) => `nothing on ${host}`),
    ...health.silent.map((host) => `no answer from ${host}`),
  ].join(', ');
  if (health.word === 'changing') return phases;
  return health.suspendedMs === 0
    ? `degraded: ${phases}`
    : `degraded for ${durationText(health.suspendedMs)}: ${phases}`;
}

/** As people read it: `12 s`, `3 min 5 s`, `2 h 4 min`. */
export function durationText(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
