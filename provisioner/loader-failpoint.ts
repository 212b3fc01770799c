/** The loader's failpoints: before and after each of its commands and each change of the generation file. Pure. */
import type { LoaderEffect, LoaderInput } from './loader-step.ts';

/** `before load ant`: it is about to be done, and nothing of it has happened. `null` for what happens in here alone. */
export function pointBefore(effect: LoaderEffect): string | null {
  switch (effect.kind) {
    case 'command':
      return `before ${effect.command} ${effect.host}`;
    case 'keep':
      return `before keep ${effect.phase}`;
    case 'restore':
      return 'before restore';
    case 'abandon':
    case 'finish':
      return null;
  }
}

/**
 * `after load ant`: it has been answered, and nothing has followed from that. A file is durable then.
 * @param kept the latest phase that was to be kept
 */
export function pointAfter(input: LoaderInput, kept: string): string | null {
  switch (input.kind) {
    case 'done':
    case 'failed':
      return `after ${input.command} ${input.host}`;
    case 'kept':
      return `after keep ${kept}`;
    case 'begin':
    case 'keep-failed':
    case 'cancel':
      return null;
  }
}
