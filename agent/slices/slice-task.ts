/** What a worker thread does for the agent about slices: the parts that hash or copy gigabytes, off the token path. */
import type { ErrorCode, ErrorFacts } from '../../protocol/errors.ts';
import type { SliceId } from '../../protocol/ids.ts';
import type { LayerRange } from '../../protocol/plan.ts';
import type { ModelDescription, SliceReceived } from '../../protocol/slice-messages.ts';

export type SliceTask =
  /** Whether a file has its hash, and is the slice that it should be. */
  | { readonly kind: 'verify'; readonly path: string; readonly sliceId: SliceId; readonly sha256: string }
  | {
      readonly kind: 'describe';
      readonly path: string;
      readonly slices: readonly LayerRange[];
      readonly hashCachePath: string;
    }
  | {
      readonly kind: 'cut';
      readonly path: string;
      readonly layers: LayerRange;
      readonly sliceId: SliceId;
      readonly folder: string;
      readonly hashCachePath: string;
    };

export interface TaskResults {
  readonly verify: null;
  readonly describe: ModelDescription;
  readonly cut: SliceReceived;
}

export type TaskKind = SliceTask['kind'];
export type TaskResult = {
  readonly [Kind in TaskKind]: { readonly kind: Kind; readonly value: TaskResults[Kind] };
}[TaskKind];

/** From the thread. */
export type TaskNews =
  | { readonly kind: 'progress'; readonly doneBytes: number; readonly totalBytes: number }
  | { readonly kind: 'done'; readonly result: TaskResult }
  | { readonly kind: 'failed'; readonly code: ErrorCode; readonly facts: ErrorFacts };

/** To the thread: end early. */
export const stopWord = 'stop';
