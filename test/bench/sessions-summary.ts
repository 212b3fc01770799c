/** Several sessions of one ring together: what they draw against one alone. Pure. */
import { present } from '../../protocol/assert.ts';
import { tableLines } from '../../provisioner/text-table.ts';
import type { TogetherRun } from './ring-arm.ts';
import { pairedRatios, spreadOf, spreadText, type Spread } from './statistics.ts';
import { stageLoadCells, stageLoadColumns, stageLoads, type StageLoad } from './steady-state.ts';
import { atLeast, atMost, beside, type Verdict } from './verdict.ts';

export interface SessionsMeasured {
  readonly sessions: number;
  /** By round. */
  readonly runs: readonly TogetherRun[];
}

export interface SessionsFigures {
  readonly sessions: number;
  readonly tokensPerSecond: Spread;
  /** To one session, within a round. */
  readonly ratio: Spread;
  readonly agentCpuMs: Spread;
  /** In ring order. */
  readonly stages: readonly StageLoad[];
}

/** Least ratio to one session, by number of sessions. */
const targets: ReadonlyMap<number, number> = new Map([
  [2, 1.7],
  [4, 2.0],
  [8, 2.4],
]);

/** Most CPU of the head's agent for a token with as many sessions, in milliseconds. */
const agentCpuTarget = { sessions: 8, ms: 0.5 };

/** @param measured the first is one session, which the others are compared with */
export function summarizeSessions(measured: readonly SessionsMeasured[]): readonly SessionsFigures[] {
  const one = present(measured[0], 'one session is measured').runs.map(({ tokensPerSecond }) => tokensPerSecond);
  return measured.map(({ sessions, runs }) => {
    const speeds = runs.map(({ tokensPerSecond }) => tokensPerSecond);
    return {
      sessions,
      tokensPerSecond: spreadOf(speeds),
      ratio: spreadOf(pairedRatios(speeds, one)),
      agentCpuMs: spreadOf(runs.map(({ agentCpuMs }) => agentCpuMs)),
      stages: stageLoads(runs.map(({ stages }) => stages)),
    };
  });
}

export function sessionsVerdicts(figures: readonly SessionsFigures[]): readonly Verdict[] {
  const ratios = figures.slice(1).map(({ sessions, ratio: found }) => {
    const judged = { figure: `decode, ${sessions} sessions / 1 session, total tokens/s`, found };
    const target = targets.get(sessions);
    return target === undefined ? beside(judged) : atLeast(target, judged);
  });
  const cpu = figures
    .filter(({ sessions }) => sessions === agentCpuTarget.sessions)
    .map(({ sessions, agentCpuMs: found }) =>
      atMost(agentCpuTarget.ms, { figure: `agent CPU per token, ${sessions} sessions`, found, unit: 'ms' }),
    );
  return [...ratios, ...cpu];
}

export const sessionsLines = (figures: readonly SessionsFigures[]): readonly string[] => [
  ...tableLines(
    [
      { title: 'sessions together', align: 'right' },
      { title: 'total tokens/s', align: 'right' },
      { title: '/ 1 session', align: 'right' },
      { title: 'agent CPU, ms per token', align: 'right' },
      ...stageLoadColumns,
    ],
    figures.map(({ sessions, tokensPerSecond, ratio, agentCpuMs, stages }) => [
      String(sessions),
      spreadText(tokensPerSecond, 1),
      spreadText(ratio, 2),
      spreadText(agentCpuMs, 2),
      ...stageLoadCells(stages),
    ]),
  ),
  'Speed and agent: from the first token of the session that begins last to the last one of the session that ends first.',
  'Stages: from the first request to the last receipt.',
];
