/** For Node's module loader: changes built files as they are loaded. Production code has no switches for that. */
import { assert } from '../../protocol/assert.ts';
import type { Mutation } from './mutation.ts';

interface Loaded {
  readonly format: string;
  readonly shortCircuit?: boolean;
  readonly source?: string | ArrayBuffer | NodeJS.TypedArray;
}

let mutations: readonly Mutation[] = [];

export function initialize(given: readonly Mutation[]): void {
  mutations = given;
}

export async function load(
  url: string,
  context: object,
  nextLoad: (url: string, context: object) => Promise<Loaded>,
): Promise<Loaded> {
  const loaded = await nextLoad(url, context);
  const wanted = mutations.filter(({ file }) => url.endsWith(`/dist/${file}`));
  if (wanted.length === 0) return loaded;
  const { source } = loaded;
  assert(source !== undefined, 'a file of the build has a source');
  const text = typeof source === 'string' ? source : Buffer.from(source as Uint8Array).toString('utf8');
  return { ...loaded, source: wanted.reduce(mutated, text) };
}

/** The guard stands there exactly once: a list that has gone stale says so. */
export function mutated(text: string, { name, guard, instead }: Mutation): string {
  const parts = text.split(guard);
  assert(parts.length === 2, `the guard of "${name}" is found ${parts.length - 1} times`);
  return parts.join(instead);
}
