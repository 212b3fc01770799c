/** What an agent decided, as a trace tells it. */
import type { Input } from '../../agent/inputs.ts';
import type { Step } from '../../agent/step.ts';
import { P4Error } from '../../protocol/errors.ts';

/** A step on one line. */
export function traced(input: Input, { records, effects, state }: Step): string {
  const facts = Object.entries(input).filter(
    ([name]) => !['kind', 'plan', 'memory', 'placements', 'vocabulary'].includes(name),
  );
  const given = facts.map(([name, value]) => `${name}=${brief(value)}`).join(' ');
  const ring = 'ring' in input ? state.rings.get(input.ring) : undefined;
  const phase =
    ring?.kind === 'live' ? `${ring.phase.kind}${ring.suspension === null ? '' : ' (suspended)'}` : ring?.kind;
  const named = [...records, ...effects].map(({ kind, ...rest }) => `\n      ${kind} ${brief(rest)}`).join('');
  return `${input.kind} ${given} -> ${phase ?? 'no ring'}${named}`;
}

const brief = (value: unknown): string => {
  if (value instanceof P4Error) return `${value.code} ${JSON.stringify(value.facts)}`;
  return JSON.stringify(value, (name, inner: unknown) => {
    if (typeof inner === 'bigint') return `${inner}`;
    if (name === 'plan' || name === 'sampling') return undefined;
    return inner instanceof P4Error ? inner.code : inner;
  });
};
