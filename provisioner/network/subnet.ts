/** Which network an address is in. */
import { isIP } from 'node:net';
import { canonicalIp } from '../../protocol/ip-address.ts';

/** The network as `192.0.2.0/24` or `2001:db8::/64`; `null` for an address that stands alone. */
export function subnetOf(address: string, prefixLength: number): string | null {
  const version = isIP(address);
  const bits = version === 4 ? 32 : 128;
  if (version === 0 || prefixLength >= bits || prefixLength < 0) return null;
  const host = BigInt(bits - prefixLength);
  const network = (valueOf(address) >> host) << host;
  return `${textOf(network, version)}/${prefixLength}`;
}

function valueOf(address: string): bigint {
  if (isIP(address) === 4) return address.split('.').reduce((value, part) => value * 256n + BigInt(part), 0n);
  const [head = '', tail] = dotless(canonicalIp(address)).split('::');
  const wordsIn = (text: string): readonly string[] => (text === '' ? [] : text.split(':'));
  const [before, after] = [wordsIn(head), wordsIn(tail ?? '')];
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return [...before, ...zeros, ...after].reduce((value, word) => value * 65_536n + BigInt(`0x${word}`), 0n);
}

/** An IPv4 address that was written as an IPv6 one. */
const dotless = (address: string): string => (isIP(address) === 4 ? `::ffff:${wordsOf(address)}` : address);

function wordsOf(address: string): string {
  const value = valueOf(address);
  return `${(value >> 16n).toString(16)}:${(value & 0xffffn).toString(16)}`;
}

function textOf(value: bigint, version: number): string {
  const parts = (count: number, bits: bigint, base: number): readonly string[] =>
    Array.from({ length: count }, (_none, index) =>
      ((value >> (bits * BigInt(count - 1 - index))) & ((1n << bits) - 1n)).toString(base),
    );
  return version === 4 ? parts(4, 8n, 10).join('.') : canonicalIp(parts(8, 16n, 16).join(':'));
}
