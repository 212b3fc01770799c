/** IP addresses and DNS names as texts. */
import { isIP } from 'node:net';

const dnsLabel = '[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?';
const dnsPattern = new RegExp(`^(?=.{1,253}$)${dnsLabel}(\\.${dnsLabel})*\\.?$`);
const digitsAndDots = /^[0-9.]+$/;

/** IPv4 or IPv6, without a zone (`%eth0`). */
export const isIpAddress = (text: string): boolean => isIP(text) !== 0 && !text.includes('%');

/** A link-local IPv6 address with the interface it is valid on: `fe80::1%eth0`. */
export const isZonedIpv6 = (text: string): boolean => isIP(text) === 6 && text.includes('%');

/** A name that DNS could know; a row of digits and dots is a mistyped address, and none. */
export const isDnsName = (text: string): boolean => dnsPattern.test(text) && !digitsAndDots.test(text);

/** One spelling for one address: `::0:1` is `::1`, and an IPv4 address inside IPv6 is that IPv4 address. */
export function canonicalIp(address: string): string {
  if (isIP(address) !== 6 || address.includes('%')) return address.toLowerCase();
  const spelled = new URL(`http://[${address}]/`).hostname.slice(1, -1);
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(spelled) ?? [];
  if (high === undefined || low === undefined) return spelled;
  const words = [parseInt(high, 16), parseInt(low, 16)];
  return words.flatMap((word) => [word >> 8, word & 0xff]).join('.');
}

/** Whether only the machine itself can reach the address. */
export function isLoopback(address: string): boolean {
  const canonical = canonicalIp(address);
  return canonical === '::1' || canonical.startsWith('127.') || canonical === 'localhost';
}
