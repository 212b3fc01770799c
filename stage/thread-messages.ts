/** What a stage's two threads say to each other: `main.ts` answers on the control socket, `compute-thread.ts` computes. */
import type { ErrorCode, ErrorFacts } from '../protocol/errors.ts';
import type { StageFacts, StageLoad, VocabularyTable } from '../protocol/stage-control.ts';

/** To the thread that computes. A `ticket` comes back in the answer. */
export type ThreadOrder =
  | {
      readonly kind: 'load';
      readonly load: StageLoad;
      readonly dataSocketPath: string;
      /** Of `StageCounters`. */
      readonly counters: SharedArrayBuffer;
    }
  | { readonly kind: 'vocabulary'; readonly ticket: number }
  | {
      readonly kind: 'tokenize';
      readonly ticket: number;
      readonly text: string;
      readonly addSpecial: boolean;
      readonly parseSpecial: boolean;
    }
  | { readonly kind: 'stop' };

/** From the thread that computes. */
export type ThreadMessage =
  | { readonly kind: 'loading'; readonly fraction: number }
  | { readonly kind: 'loaded'; readonly facts: StageFacts }
  | { readonly kind: 'load-failed'; readonly code: ErrorCode; readonly facts: ErrorFacts }
  | { readonly kind: 'vocabulary'; readonly ticket: number; readonly table: VocabularyTable }
  | { readonly kind: 'tokens'; readonly ticket: number; readonly tokens: Int32Array }
  | { readonly kind: 'refused'; readonly ticket: number; readonly code: ErrorCode; readonly facts: ErrorFacts }
  | { readonly kind: 'log'; readonly event: string; readonly facts: ErrorFacts }
  | { readonly kind: 'dying'; readonly code: ErrorCode; readonly facts: ErrorFacts }
  | { readonly kind: 'stopped' };
