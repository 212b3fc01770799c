/** The tail's samplers: one for each request that goes on (X3). Logits come here and go no further. */
import { present } from '../protocol/assert.ts';
import { P4Error, type ErrorCode } from '../protocol/errors.ts';
import type { BeginItem, FailedWhy } from '../protocol/hop-items.ts';
import type { RequestId, TokenId } from '../protocol/ids.ts';
import type { Sampling } from '../protocol/sampling.ts';
import type { Sampler } from './sampler.ts';

export type RequestSampler = Pick<Sampler, 'acceptPrompt' | 'acceptEmitted' | 'sample' | 'close'>;

/** @throws a code of `whyOfCode` when the options or the grammar cannot be used */
export type OpenSampler = (sampling: Sampling) => RequestSampler;

/** What a request is answered when its sampler cannot go on; every other failure is the stage's own. */
const whyOfCode: Readonly<Partial<Record<ErrorCode, FailedWhy>>> = {
  SAMPLER_GRAMMAR: 'grammar-invalid',
  TOKENIZER_ABSENT: 'grammar-invalid',
  INVALID_ARGUMENT: 'sampling-invalid',
  SAMPLING_INVALID: 'sampling-invalid',
  TOKEN_OUT_OF_RANGE: 'sampling-invalid',
};

export type Draw =
  { readonly kind: 'token'; readonly token: TokenId } | { readonly kind: 'failed'; readonly why: FailedWhy };

export class TailSampling {
  readonly #open: OpenSampler;
  readonly #samplers = new Map<RequestId, RequestSampler>();

  constructor(open: OpenSampler) {
    this.#open = open;
  }

  /**
   * Makes the request's sampler what it was when the last of `drawn` was drawn: the next draw is the same (X3).
   *
   * @returns why the request cannot be sampled, `null` when it can. A grammar that does not allow what was drawn by it is
   * as invalid as one that cannot be read.
   */
  begin({ request, sampling, history, drawn }: BeginItem): FailedWhy | null {
    return orWhy((): null => {
      const sampler = this.#open(sampling);
      this.#samplers.set(request, sampler);
      sampler.acceptPrompt(history);
      sampler.acceptEmitted(drawn);
      return null;
    });
  }

  /** Takes note of tokens of the prompt whose rows ran. */
  acceptPrompt(request: RequestId, tokens: Uint32Array): void {
    this.#sampler(request).acceptPrompt(tokens);
  }

  /** Draws the token with index `step` of a completion, and takes note of it. */
  draw(request: RequestId, step: number, logits: Float32Array): Draw {
    const outcome = orWhy(() => this.#sampler(request).sample(logits, step));
    if (typeof outcome === 'string') return { kind: 'failed', why: outcome };
    return outcome.kind === 'token' ? outcome : { kind: 'failed', why: 'grammar-dead-end' };
  }

  end(request: RequestId): void {
    this.#samplers.get(request)?.close();
    this.#samplers.delete(request);
  }

  close(): void {
    for (const request of [...this.#samplers.keys()]) this.end(request);
  }

  #sampler(request: RequestId): RequestSampler {
    return present(this.#samplers.get(request), 'a request that runs has its sampler');
  }
}

function orWhy<Result>(work: () => Result): Result | FailedWhy {
  try {
    return work();
  } catch (error) {
    const why = error instanceof P4Error ? whyOfCode[error.code] : undefined;
    if (why === undefined) throw error;
    return why;
  }
}
