/** Entries of a `tar` archive as POSIX has them (ustar): a block that says what comes, and the content in whole blocks. */
import { assert } from '../../protocol/assert.ts';

export const tarBlockBytes = 512;

export type TarEntry =
  | { readonly kind: 'file'; readonly path: string; readonly bytes: number }
  /** `target` is what the link is made to, from where the archive is unpacked. */
  | { readonly kind: 'hard-link'; readonly path: string; readonly target: string };

/** Bytes that fill the last block of a content. */
export const paddingOf = (bytes: number): number => (tarBlockBytes - (bytes % tarBlockBytes)) % tarBlockBytes;

/** What an archive ends with. */
export const tarEnd = Buffer.alloc(2 * tarBlockBytes);

/** Of what tar does not warn about. */
const plausibleTimeSeconds = 1_000_000_000;
const nameBytes = 100;
const prefixBytes = 155;

/** `null` where a name is too long for the format, or not plain ASCII. */
export function tarHeader(entry: TarEntry): Buffer | null {
  const names = splitPath(entry.path);
  const target = entry.kind === 'hard-link' ? entry.target : '';
  if (names === null || target.length > nameBytes || !isPlain(target)) return null;
  const bytes = entry.kind === 'file' ? entry.bytes : 0;
  assert(bytes < 8 ** 11, 'the size has room in its field');
  const header = Buffer.alloc(tarBlockBytes);
  const put = (text: string, at: number): void => void header.write(text, at, 'latin1');
  put(names.name, 0);
  put('0000644\0', 100);
  put('0000000\0', 108);
  put('0000000\0', 116);
  put(`${bytes.toString(8).padStart(11, '0')}\0`, 124);
  put(`${plausibleTimeSeconds.toString(8).padStart(11, '0')}\0`, 136);
  put(entry.kind === 'file' ? '0' : '1', 156);
  put(target, 157);
  put('ustar\0' + '00', 257);
  put(names.prefix, 345);
  // The sum counts its own field as spaces.
  put(' '.repeat(8), 148);
  const sum = header.reduce((total, byte) => total + byte, 0);
  put(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}

/** A long path goes into two fields, cut at a slash. */
function splitPath(path: string): { readonly prefix: string; readonly name: string } | null {
  if (path === '' || !isPlain(path)) return null;
  if (path.length <= nameBytes) return { prefix: '', name: path };
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
    const [prefix, name] = [path.slice(0, at), path.slice(at + 1)];
    if (prefix.length <= prefixBytes && name !== '' && name.length <= nameBytes) return { prefix, name };
  }
  return null;
}

const isPlain = (text: string): boolean => /^[\x20-\x7e]*$/.test(text);
