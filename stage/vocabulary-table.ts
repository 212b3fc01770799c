/** The vocabulary in the form in which an agent gets it. */
import { tokenId, type TokenId } from '../protocol/ids.ts';
import type { VocabularyTable } from '../protocol/stage-control.ts';
import { pieceFlags, type TokenPieces, type Vocabulary } from './vocabulary.ts';

/** @throws TOKENIZER_ABSENT */
export function vocabularyTable(vocabulary: Pick<Vocabulary, 'size' | 'pieces'>): VocabularyTable {
  const pieces = vocabulary.pieces();
  const kept: Uint8Array[] = [];
  const lengths = Buffer.alloc(vocabulary.size * 2);
  const ends: TokenId[] = [];
  for (let token = 0; token < vocabulary.size; token++) {
    const piece = textOf(pieces, token);
    kept.push(piece);
    lengths.writeUInt16LE(piece.length, token * 2);
    if (hasFlag(pieces, token, pieceFlags.endOfGeneration)) ends.push(tokenId(token));
  }
  return { pieces: Buffer.concat(kept).toString('base64'), lengths: lengths.toString('base64'), ends };
}

/** A control token has a name as its piece, which is not text. */
const textOf = (pieces: TokenPieces, token: number): Uint8Array =>
  hasFlag(pieces, token, pieceFlags.control)
    ? new Uint8Array(0)
    : pieces.bytes.subarray(pieces.offsets[token] ?? 0, pieces.offsets[token + 1] ?? 0);

const hasFlag = ({ flags }: TokenPieces, token: number, flag: number): boolean => ((flags[token] ?? 0) & flag) !== 0;
