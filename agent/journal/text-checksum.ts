/**
 * CRC32C of a text, for the short lines that each commit writes: a call into native code costs more than the few bytes do.
 */
import { crc32c } from '@node-rs/crc32';

/** Longer texts, and those that are not ASCII, go to the library. */
const shortCharacters = 128;
/** Castagnoli's polynomial, its bits in reverse. */
const polynomial = 0x82f6_3b78;

const table = Int32Array.from({ length: 256 }, (_none, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = (value & 1) === 1 ? (value >>> 1) ^ polynomial : value >>> 1;
  return value;
});

/** @returns the checksum of the text's UTF-8 bytes, 0 to 2^32 - 1 */
export function textChecksum(text: string): number {
  if (text.length > shortCharacters) return crc32c(text);
  let crc = -1;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code > 0x7f) return crc32c(text);
    crc = (table[(crc ^ code) & 0xff] ?? 0) ^ (crc >>> 8);
  }
  return ~crc >>> 0;
}
