/** For Node's module loader: changes one built file as it is loaded. Production code has no switches for that. */
import { assert } from '../../protocol/assert.ts';
import type { Mutation } from './mutation.ts';

interface Loaded {
  readonly format: string;
  readonly shortCircuit?: boolean;
  readonly source?: string | ArrayBuffer | NodeJS.TypedArray;
}

let mutation: Mutation | null = null;

export function initialize(given: Mutation): void {
  mutation = given;
}

export async function load(
  url: string,
  context: object,
  nextLoad: (url: string, context: object) => Promise<Loaded>,
): Promise<Loaded> {
  const loaded = await nextLoad(url, context);
  if (mutation === null || !url.endsWith(`/dist/${mutation.file}`)) return loaded;
  const { source } = loaded;
  assert(source !== undefined, 'a file of the build has a source');
  const text = typeof source === 'string' ? source : Buffer.from(source as Uint8Array).toString('utf8');
  return { ...loaded, source: mutated(text, mutation) };
}

/** The guard stands there exactly once: a list that has gone stale says so. */
export function mutated(text: string, { name, guard, instead }: Mutation): string {
  const parts = text.split(guard);
  assert(parts.length === 2, `the guard of "${name}" is found ${parts.length - 1} times`);
  return parts.join(instead);
}
