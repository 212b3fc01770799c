/** The model's tokens: text to ids, ids to bytes. Middle slices have none. */
import { P4Error } from '../protocol/errors.ts';
import { tokenId, type TokenId } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import type { LlamaLibrary } from './llama-library.ts';
import { vocabularyTypeNone, type Pointer } from './llama-structs.ts';
import { guardTokenizer } from './tokenizer-guard.ts';

export interface Vocabulary {
  /** Token ids are 0 to `size` - 1. */
  readonly size: number;
  readonly hasTokenizer: boolean;
  readonly beginningOfSequence: TokenId | null;
  readonly endOfSequence: TokenId | null;
  readonly endOfTurn: TokenId | null;
  /** For llama.cpp's own functions. */
  readonly native: { readonly library: LlamaLibrary; readonly vocabulary: Pointer };
  /**
   * @throws TOKENIZER_ABSENT; INVALID_ARGUMENT for a text of more than `limits.promptBytes` bytes of UTF-8
   */
  tokenize(text: string, options: TokenizeOptions): Int32Array;
  isEndOfGeneration(token: number): boolean;
  /** @throws TOKENIZER_ABSENT */
  pieces(): TokenPieces;
}

export interface TokenizeOptions {
  /** Adds what the model wants around a text (its BOS, for most). */
  readonly addSpecial: boolean;
  /** Reads the names of control tokens in the text as those tokens. Never for text from a stranger. */
  readonly parseSpecial: boolean;
}

/** Every token's bytes. A character of UTF-8 may span tokens. */
export interface TokenPieces {
  /** All pieces one after another. */
  readonly bytes: Uint8Array;
  /** Token t is bytes `offsets[t]` to `offsets[t + 1]`; `size` + 1 entries. */
  readonly offsets: Uint32Array;
  /** `pieceFlags`, one for each token. */
  readonly flags: Uint8Array;
}

/** Control tokens have a name as their piece, which is not text. */
export const pieceFlags = { control: 1, endOfGeneration: 2 } as const;

export function openVocabulary(library: LlamaLibrary, model: Pointer): Vocabulary {
  const { call } = library;
  const vocabulary = call.modelVocabulary(model);
  const tokenizer = {
    model: metadataText(library, model, 'tokenizer.ggml.model'),
    splitter: metadataText(library, model, 'tokenizer.ggml.pre'),
  };
  const size = call.vocabularySize(vocabulary);
  const hasTokenizer = call.vocabularyType(vocabulary) !== vocabularyTypeNone;
  const special = (token: number): TokenId | null => (hasTokenizer && token >= 0 ? tokenId(token) : null);
  const native = { library, vocabulary };
  return {
    size,
    hasTokenizer,
    beginningOfSequence: special(call.beginningOfSequence(vocabulary)),
    endOfSequence: special(call.endOfSequence(vocabulary)),
    endOfTurn: special(call.endOfTurn(vocabulary)),
    native,
    tokenize: (text, options) => {
      requireTokenizer(hasTokenizer);
      requireSize(text);
      guardTokenizer(text, tokenizer);
      return tokenize({ ...native, size }, text, options);
    },
    isEndOfGeneration: (token) => hasTokenizer && call.tokenIsEndOfGeneration(vocabulary, token),
    pieces: () => {
      requireTokenizer(hasTokenizer);
      return pieces({ ...native, size });
    },
  };
}

interface NativeVocabulary {
  readonly library: LlamaLibrary;
  readonly vocabulary: Pointer;
  readonly size: number;
}

function requireTokenizer(hasTokenizer: boolean): void {
  // Without one llama.cpp asserts, which ends the process.
  if (!hasTokenizer) throw new P4Error('TOKENIZER_ABSENT', {});
}

function tokenize({ library, vocabulary }: NativeVocabulary, text: string, options: TokenizeOptions): Int32Array {
  // A lone surrogate becomes U+FFFD here, so llama.cpp only ever sees well-formed UTF-8.
  const utf8 = Buffer.from(text, 'utf8');
  const run = (room: Int32Array): number =>
    library.call.tokenize(vocabulary, utf8, utf8.length, room, room.length, options.addSpecial, options.parseSpecial);
  const guess = new Int32Array(utf8.length + 8);
  const count = run(guess);
  if (count >= 0) return guess.slice(0, count);
  const exact = new Int32Array(-count);
  return exact.subarray(0, run(exact));
}

function requireSize(text: string): void {
  const bytes = Buffer.byteLength(text);
  if (bytes <= limits.promptBytes) return;
  const expected = `at most ${limits.promptBytes}`;
  throw new P4Error('INVALID_ARGUMENT', { what: 'text', found: `${bytes} bytes`, expected });
}

/** '' where the file does not say. */
function metadataText(library: LlamaLibrary, model: Pointer, key: string): string {
  const room = new Uint8Array(256);
  const length = library.call.modelMetadataText(model, key, room, room.length);
  return Buffer.from(room.subarray(0, Math.max(0, Math.min(length, room.length - 1)))).toString();
}

const roomForOnePiece = 1024;

function pieces({ library, vocabulary, size }: NativeVocabulary): TokenPieces {
  const { call } = library;
  const parts: Uint8Array[] = [];
  const offsets = new Uint32Array(size + 1);
  const flags = new Uint8Array(size);
  let room = new Uint8Array(roomForOnePiece);
  let total = 0;
  for (let token = 0; token < size; token += 1) {
    let length = call.tokenPiece(vocabulary, token, room, room.length, 0, true);
    if (length < 0) {
      room = new Uint8Array(-length);
      length = call.tokenPiece(vocabulary, token, room, room.length, 0, true);
    }
    parts.push(room.slice(0, length));
    total += length;
    offsets[token + 1] = total;
    flags[token] =
      (call.tokenIsControl(vocabulary, token) ? pieceFlags.control : 0) |
      (call.tokenIsEndOfGeneration(vocabulary, token) ? pieceFlags.endOfGeneration : 0);
  }
  return { bytes: new Uint8Array(Buffer.concat(parts, total)), offsets, flags };
}
