/** What the benchmark says to the process that runs the uncut model, and what comes back. */
import type { ErrorCode, ErrorFacts } from '../../protocol/errors.ts';
import type { DecodeOrder, DecodeRun, PrefillRun } from './arm.ts';

export interface UncutModel {
  readonly path: string;
  readonly layers: number;
  readonly contextTokens: number;
  readonly threads: number;
}

export type UncutOrder =
  | { readonly kind: 'open'; readonly model: UncutModel }
  | { readonly kind: 'decode'; readonly order: DecodeOrder }
  | { readonly kind: 'prefill'; readonly prompt: readonly number[] };

export type UncutAnswer =
  /** `echoPort`: where the process sends back whatever comes. */
  | { readonly kind: 'open'; readonly echoPort: number }
  | { readonly kind: 'decode'; readonly run: DecodeRun }
  | { readonly kind: 'prefill'; readonly run: PrefillRun }
  | { readonly kind: 'failed'; readonly code: ErrorCode; readonly facts: ErrorFacts };
