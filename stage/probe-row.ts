/** Proves that a slice computes, with rows that belong to nobody, in the sequence that no session has (A3). */
import { P4Error } from '../protocol/errors.ts';
import { hiddenLength, isFiniteHidden } from '../protocol/hidden-state.ts';
import type { DecodeInput, Engine } from './engine.ts';

/** Two rows stay in one shape class, so that no padding is needed beside them. */
const rows = 2;
const positions = [0, 1];

/** @throws STAGE_DECODE when the slice computes nothing or no numbers */
export function probeEngine(
  engine: Pick<Engine, 'width' | 'takesTokens' | 'reservedSequence' | 'decode' | 'removeSequence'>,
): void {
  const input: DecodeInput = engine.takesTokens
    ? { kind: 'tokens', tokens: [0, 0] }
    : { kind: 'hidden', parts: [new Float32Array(rows * engine.width).fill(1)] };
  const sequences = [engine.reservedSequence, engine.reservedSequence];
  const outcome = engine.decode({ rows, input, positions, sequences, outputs: [1, 1] });
  // Sessions fill the cache: then they prove that the slice computes.
  if (outcome.kind === 'kv-cache-full') return;
  engine.removeSequence(engine.reservedSequence);
  const values = outcome.kind === 'hidden' ? outcome.hidden : (outcome.rows.at(-1)?.logits ?? new Float32Array(0));
  const isSound = hiddenLength(values) > 0 && isFiniteHidden(values);
  if (!isSound) throw new P4Error('STAGE_DECODE', { what: 'the probe came out without numbers' });
}
