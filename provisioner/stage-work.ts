/** What the stages did for one request, as text: made of the settlement (S2) and the times its reader saw. */
import type { SettledStage } from '../protocol/messages.ts';
import { tableLines, type Column } from './text-table.ts';

/** When a reader saw tokens, in milliseconds of one clock. */
export interface TokenTimes {
  readonly submittedMs: number;
  /** `null` when no token came. */
  readonly firstMs: number | null;
  readonly lastMs: number | null;
  readonly tokens: number;
}

/** A few tokens may reach their reader all at once: how far apart they came says nothing of the ring. */
const fewestTimedTokens = 8;

/** Tokens a second after the first one: the ring's own speed, without the prompt's. `null` below eight tokens. */
export function tokensPerSecond({ firstMs, lastMs, tokens }: TokenTimes): number | null {
  if (firstMs === null || lastMs === null || tokens < fewestTimedTokens || lastMs <= firstMs) return null;
  return ((tokens - 1) * 1000) / (lastMs - firstMs);
}

/** Time until the first token, the prompt's prefill included. `null` when none came. */
export const firstTokenMs = ({ submittedMs, firstMs }: TokenTimes): number | null =>
  firstMs === null ? null : firstMs - submittedMs;

/** Compute time per row that the stage ran for the request. A row of a token is one step of the ring. */
export function msPerRow({ prefilled, decoded, recomputed, computeMs }: SettledStage): number | null {
  const rows = prefilled + decoded + recomputed;
  return rows === 0 ? null : computeMs / rows;
}

const columns: readonly Column[] = [
  { title: 'stage', align: 'right' },
  { title: 'host', align: 'left' },
  { title: 'layers', align: 'left' },
  { title: 'rows prefilled', align: 'right' },
  { title: 'decoded', align: 'right' },
  { title: 'ms per token', align: 'right' },
];

/** A table with one line for each stage. */
export const stageWorkLines = (stages: readonly SettledStage[]): readonly string[] =>
  tableLines(
    columns,
    [...stages]
      .sort((one, other) => one.node - other.node)
      .map((stage) => [
        ...[String(stage.node), stage.host, `${stage.firstLayer}-${stage.lastLayer}`],
        ...[String(stage.prefilled), String(stage.decoded), msPerRow(stage)?.toFixed(2) ?? '-'],
      ]),
  );

/** The ring's speed in one line. */
export function speedLine(times: TokenTimes): string {
  const speed = tokensPerSecond(times);
  const first = firstTokenMs(times);
  const parts = [
    ...(speed === null ? [] : [`${speed.toFixed(1)} tokens per second`]),
    ...(first === null ? [] : [`first token after ${first.toFixed(0)} ms`]),
  ];
  return parts.length === 0 ? 'no token' : parts.join(', ');
}
