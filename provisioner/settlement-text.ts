/** A settlement (S2) as text and as usage. Values in, lines out. */
import type { SettledStage } from '../protocol/messages.ts';
import { tableLines, type Column } from './text-table.ts';

export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly totalTokens: number;
  readonly reusedTokens: number;
}

/**
 * S2: prompt = prefilled + reused, completion = emitted. A request that ended before a stage ran anything has no receipt:
 * its prompt counts as 0.
 */
export function usageOf(of: { readonly emitted: number; readonly stages: readonly SettledStage[] }): Usage {
  const [head] = of.stages;
  const promptTokens = (head?.prefilled ?? 0) + (head?.reused ?? 0);
  const { emitted: completionTokens } = of;
  const reusedTokens = head?.reused ?? 0;
  return { promptTokens, completionTokens, totalTokens: promptTokens + completionTokens, reusedTokens };
}

const left = (title: string): Column => ({ title, align: 'left' });
const right = (title: string): Column => ({ title, align: 'right' });

const columns: readonly Column[] = [
  ...[right('stage'), left('host'), left('layers'), right('prefilled'), right('decoded'), right('reused')],
  ...[right('recomputed'), right('padding'), right('ms')],
];

/** A table of rows that each stage ran, in ring order; one line where none gave a receipt. */
export const receiptLines = (stages: readonly SettledStage[]): readonly string[] =>
  stages.length === 0
    ? ['No stage ran anything for it.']
    : tableLines(
        columns,
        [...stages]
          .sort((one, other) => one.node - other.node)
          .map((stage) => [
            ...[String(stage.node), stage.host, `${stage.firstLayer}-${stage.lastLayer}`, String(stage.prefilled)],
            ...[String(stage.decoded), String(stage.reused), String(stage.recomputed), String(stage.padding)],
            stage.computeMs.toFixed(1),
          ]),
      );
