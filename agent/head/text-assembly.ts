/**
 * From token bytes to text a reader may have: whole characters only, and no part of a stop string (S1).
 *
 * Pure: a state goes in, a new one comes out. Whatever the cut between tokens, the released texts joined are the
 * decoding of all bytes joined, up to the first stop string.
 */

export interface TextAssembly {
  /** Bytes of a character that is not complete; at most 3. */
  readonly bytes: Uint8Array;
  /** Text that may be the start of a stop string. */
  readonly held: string;
}

export interface Assembled {
  readonly assembly: TextAssembly;
  /** What may go out now. */
  readonly released: string;
  /** Whether a stop string is complete; `released` ends before it. */
  readonly stopped: boolean;
}

export const emptyAssembly: TextAssembly = { bytes: new Uint8Array(0), held: '' };

export function addPiece(assembly: TextAssembly, piece: Uint8Array, stopStrings: readonly string[]): Assembled {
  const bytes = Buffer.concat([assembly.bytes, piece]);
  const whole = bytes.length - incompleteTail(bytes);
  return screen(bytes.subarray(whole), assembly.held + bytes.toString('utf8', 0, whole), stopStrings);
}

/** The text still held when a request ends for another reason than a stop string; a cut character becomes U+FFFD. */
export function remainingText(assembly: TextAssembly): string {
  return assembly.held + Buffer.from(assembly.bytes).toString('utf8');
}

function screen(bytes: Uint8Array, text: string, stopStrings: readonly string[]): Assembled {
  const starts = stopStrings.map((stop) => text.indexOf(stop)).filter((at) => at >= 0);
  if (starts.length > 0) {
    return { assembly: emptyAssembly, released: text.slice(0, Math.min(...starts)), stopped: true };
  }
  const heldLength = Math.max(0, ...stopStrings.map((stop) => overlap(text, stop)));
  const cut = text.length - heldLength;
  return { assembly: { bytes, held: text.slice(cut) }, released: text.slice(0, cut), stopped: false };
}

/** Length of the longest end of `text` that is a start of `stop`. */
function overlap(text: string, stop: string): number {
  for (let length = Math.min(text.length, stop.length - 1); length > 0; length--) {
    if (text.endsWith(stop.slice(0, length))) return length;
  }
  return 0;
}

/** How many bytes at the end are a valid beginning of a UTF-8 character whose rest is missing: 0 to 3. */
function incompleteTail(bytes: Uint8Array): number {
  for (let length = Math.min(3, bytes.length); length > 0; length--) {
    if (isCharacterStart(bytes.subarray(bytes.length - length))) return length;
  }
  return 0;
}

/** Whether these 1 to 3 bytes are a proper prefix of a well-formed character (Unicode Standard, table 3-7). */
function isCharacterStart(bytes: Uint8Array): boolean {
  const lead = bytes[0] ?? 0;
  const needed =
    lead >= 0xc2 && lead <= 0xdf ? 2 : lead >= 0xe0 && lead <= 0xef ? 3 : lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
  if (bytes.length >= needed) return false;
  return bytes.subarray(1).every((byte, index) => {
    const [low, high] = index === 0 ? secondByteRange(lead) : [0x80, 0xbf];
    return byte >= low && byte <= high;
  });
}

function secondByteRange(lead: number): [number, number] {
  if (lead === 0xe0) return [0xa0, 0xbf];
  if (lead === 0xed) return [0x80, 0x9f];
  if (lead === 0xf0) return [0x90, 0xbf];
  if (lead === 0xf4) return [0x80, 0x8f];
  return [0x80, 0xbf];
}
