/**
 * Notices when an agent's advertised address is no longer one of its host's (A3): a lease that was not renewed, a virtual
 * address that moved, an interface that is gone. It says so once for each change; nothing else happens by itself.
 */
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { canonicalIp } from '../protocol/ip-address.ts';
import { limits } from '../protocol/limits.ts';
import type { Log } from './log.ts';

/** The addresses of this host, without zones. */
export type OwnAddresses = () => readonly string[];

export const interfaceAddresses: OwnAddresses = () =>
  Object.values(networkInterfaces()).flatMap((addresses) => (addresses ?? []).map(({ address }) => address));

/** Whether an address can be looked for among those of interfaces: a name or "all addresses" cannot. */
const isPlain = (address: string): boolean => isIP(address) !== 0 && !['0.0.0.0', '::'].includes(canonicalIp(address));

export class AddressWatch {
  readonly #advertised: string;
  readonly #own: OwnAddresses;
  readonly #log: Log;
  readonly #timer: NodeJS.Timeout | null;
  #isMissing = false;

  /** Looks every `limits.addressCheckMs`, until `stop`. */
  constructor(advertised: string, log: Log, own: OwnAddresses = interfaceAddresses) {
    this.#advertised = advertised;
    this.#own = own;
    this.#log = log;
    this.#timer = isPlain(advertised) ? setInterval(this.look.bind(this), limits.addressCheckMs).unref() : null;
  }

  /** The advertised address where it is not this host's at the latest look, else empty. */
  get missing(): string {
    return this.#isMissing ? this.#advertised : '';
  }

  /** Looks now. */
  look(): void {
    const plain = canonicalIp(this.#advertised.split('%')[0] ?? '');
    const isMissing = !this.#own().some((address) => canonicalIp(address) === plain);
    if (isMissing === this.#isMissing) return;
    this.#isMissing = isMissing;
    this.#log({ event: isMissing ? 'address-missing' : 'address-back', address: this.#advertised });
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }
}
