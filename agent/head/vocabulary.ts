/** What each token of a ring's model is in bytes, and which end a generation; told by the head stage at its load. */
import type { TokenId } from '../../protocol/ids.ts';
import type { VocabularyTable } from '../../protocol/stage-control.ts';

export interface Vocabulary {
  readonly size: number;
  /** The token's bytes; none for control tokens. */
  piece(token: TokenId): Uint8Array;
  endsGeneration(token: TokenId): boolean;
}

export function vocabularyFrom(table: VocabularyTable): Vocabulary {
  const bytes = Buffer.from(table.pieces, 'base64');
  const lengths = Buffer.from(table.lengths, 'base64');
  const size = lengths.length / 2;
  const starts = new Uint32Array(size + 1);
  for (let token = 0; token < size; token++) starts[token + 1] = (starts[token] ?? 0) + lengths.readUInt16LE(token * 2);
  const ends = new Set<number>(table.ends);
  return {
    size,
    piece: (token) => bytes.subarray(starts[token] ?? 0, starts[token + 1] ?? 0),
    endsGeneration: (token) => ends.has(token),
  };
}
