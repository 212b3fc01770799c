/** Assertions stay on in production: a broken one is a bug, and the process ends rather than go on wrong. */
import { AssertionError } from 'node:assert';

export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError({ message, stackStartFn: assert });
}

/** Takes a value that must be there; an absent one is a bug. */
export function present<Value>(value: Value | null | undefined, message: string): Value {
  if (value === null || value === undefined) throw new AssertionError({ message, stackStartFn: present });
  return value;
}

/** Marks the end of an exhaustive switch: a new variant that nobody handles does not compile. */
export function unreachable(value: never): never {
  throw new AssertionError({ message: `unreachable variant: ${JSON.stringify(value)}`, stackStartFn: unreachable });
}
