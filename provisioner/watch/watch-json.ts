/**
 * A view of a ring for scripts, one JSON object. Fields are only ever added. What is not known is `null`; times are seconds,
 * sizes bytes, shares 0 to 1; README.md lists all of it.
 */
import type { RingView } from './watch-state.ts';

export function watchJson({
  plan,
  takenAt,
  ring,
  figures,
  decay,
  problems,
  isReady,
}: RingView): Record<string, unknown> {
  const health = ring?.health ?? null;
  return {
    event: 'watch',
    ring: plan.ring,
    takenAt: new Date(takenAt).toISOString(),
    ready: isReady,
    health: health?.word ?? 'not-loaded',
    suspendedSeconds: health === null ? null : health.suspendedMs / 1000,
    loadedAt: figures.loadedAtSeconds === null ? null : new Date(figures.loadedAtSeconds * 1000).toISOString(),
    tokens: {
      generated: figures.tokens,
      perSecond: figures.tokensPerSecond,
      promptPerSecond: figures.promptTokensPerSecond,
    },
    requests: { running: figures.requestsRunning, waiting: figures.requestsWaiting },
    sessions: { open: figures.sessionsOpen, limit: figures.sessionsLimit, waiting: figures.sessionsWaiting },
    kvCells: { used: figures.kvCellsUsed, limit: figures.kvCellsLimit },
    decay:
      decay.kind === 'known'
        ? { ratio: decay.ratio, against: decay.against, level: decay.level }
        : { ratio: null, against: null, level: null },
    stages: figures.stages,
    links: figures.links,
    journals: figures.journals,
    problems,
  };
}
