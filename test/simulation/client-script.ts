/** What a simulated client of OUTER is to do, what is to happen to it, and what it has read. */
import type { Submission } from '../../agent/inputs.ts';
import type { FinishReason } from '../../protocol/finish.ts';
import type { LoadId, RequestId, TokenId } from '../../protocol/ids.ts';

export interface ClientScript {
  readonly startMs: number;
  readonly prompts: readonly Submission[];
  /** On whose behalf its sessions are opened; `null` for nobody's, who shares nothing. */
  readonly owner: string | null;
  /** Whether each prompt has a session of its own, and whether it then begins with all that was said before. */
  readonly renews: 'never' | 'anew' | 'with-history';
  /** Once in so many tokens: its connection breaks, or it cancels; 0 is never. */
  readonly disconnectOneIn: number;
  readonly cancelOneIn: number;
  /** Goes away for good in the middle: its lease runs out. */
  readonly abandons: boolean;
}

/** What a client has read of one request. */
export interface Reading {
  readonly load: LoadId;
  readonly request: RequestId;
  readonly tokens: TokenId[];
  end: FinishReason | null;
}
