/**
 * Which host keys are trusted: those of the operator's known_hosts files and of the state folder's own, to which the
 * accepted ones are added. The operator's files are never written.
 */
import { dirname } from 'node:path';

import { P4Error } from '../../protocol/errors.ts';
import { makeOwnerFolder, ownerFileMode, readIfThere, writeDurably } from '../durable-file.ts';
import { whileLocked } from '../state-lock.ts';
import {
  entriesOf,
  fingerprint,
  hostKey,
  knownHostsLine,
  knownTypes,
  parseKnownHosts,
  verdictOf,
  type HostKey,
  type HostKeyVerdict,
  type KnownHostsEntry,
} from './known-hosts.ts';
import type { Hop } from './route.ts';

/** What the command line says of host keys. */
export interface KeyAcceptance {
  /** The right keys of hosts, by their labels; they count also where another key is known. */
  readonly fingerprints: readonly { readonly host: string; readonly fingerprint: string }[];
  /** Whether any key is taken of a host that none is known of. */
  readonly isNewAccepted: boolean;
}

export class HostTrust {
  readonly #ownFile: string;
  readonly #acceptance: KeyAcceptance;
  /** One change of the own file at a time. */
  #writing: Promise<unknown> = Promise.resolve();

  /** @param ownFile absolute path; it and its folder need not be there */
  constructor(ownFile: string, acceptance: KeyAcceptance) {
    this.#ownFile = ownFile;
    this.#acceptance = acceptance;
  }

  /** Types of keys that are known of a machine; it is asked for one of these first. */
  async knownTypes(hop: Hop): Promise<readonly string[]> {
    return knownTypes(await this.#entries(hop), hop.knownAs);
  }

  /**
   * Returns when the key is trusted; one that is accepted is written down before.
   * @param blob the public key as the machine showed it
   * @throws HOST_KEY_UNKNOWN, HOST_KEY_NOT_ACCEPTED, HOST_KEY_CHANGED, HOST_KEY_REVOKED, STATE_UNREADABLE, STATE_UNWRITABLE, STATE_BUSY
   */
  async verify(hop: Hop, blob: Buffer): Promise<void> {
    const shown = hostKey(blob);
    const verdict = verdictOf(await this.#entries(hop), hop.knownAs, shown);
    if (verdict.kind === 'known') return;
    const refusal = keyRefusal({ hop, shown, verdict, acceptance: this.#acceptance });
    if (refusal !== null) throw refusal;
    const mine = this.#writing.then(() => this.#remember(hop.knownAs, shown));
    this.#writing = mine.catch(() => undefined);
    await mine;
  }

  async #entries(hop: Hop): Promise<readonly KnownHostsEntry[]> {
    const paths = [...new Set([this.#ownFile, ...hop.knownHostsFiles])];
    const texts = await Promise.all(paths.map(async (path) => parseKnownHosts((await readIfThere(path)) ?? '', path)));
    return texts.flat();
  }

  async #remember(name: string, key: HostKey): Promise<void> {
    await makeOwnerFolder(dirname(this.#ownFile));
    await whileLocked(this.#ownFile, async () => {
      const text = (await readIfThere(this.#ownFile)) ?? '';
      await writeDurably({ path: this.#ownFile, text: withKey(text, name, key), mode: ownerFileMode });
    });
  }
}

/** A file's text with the key as the only one of its type for the name. Marks of revoked keys stay. */
export function withKey(text: string, name: string, key: HostKey): string {
  const kept = text
    .split('\n')
    .filter((line) => line !== '')
    .filter((line) => {
      const former = entriesOf(parseKnownHosts(line, ''), name);
      return !former.some((entry) => entry.mark === 'none' && entry.key.type === key.type);
    });
  return [...kept, knownHostsLine(name, key), ''].join('\n');
}

/** A key that is not known, and what the command line says. */
export interface PresentedKey {
  readonly hop: Pick<Hop, 'label' | 'knownAs'>;
  readonly shown: HostKey;
  readonly verdict: Exclude<HostKeyVerdict, { readonly kind: 'known' }>;
  readonly acceptance: KeyAcceptance;
}

/** `null` where the key is accepted. A host whose key was named has that one, whatever is said of new hosts. */
export function keyRefusal({ hop, shown, verdict, acceptance }: PresentedKey): P4Error | null {
  const print = fingerprint(shown.blob);
  const named = acceptance.fingerprints.filter(({ host }) => host === hop.label).map((each) => each.fingerprint);
  const facts = { host: hop.label, address: hop.knownAs, type: shown.type };
  const accept = `--accept-host-key ${hop.label}=${print}`;
  if (verdict.kind === 'revoked')
    return new P4Error('HOST_KEY_REVOKED', { ...facts, fingerprint: print, mark: verdict.by.place });
  if (named.includes(print)) return null;
  const known =
    verdict.kind === 'changed'
      ? verdict.known.map(({ key, place }) => `${fingerprint(key.blob)} ${key.type} in ${place}`)
      : [];
  if (named.length > 0) {
    const before = known.length > 0 ? { known } : {};
    return new P4Error('HOST_KEY_NOT_ACCEPTED', { ...facts, shown: print, accepted: named, ...before, accept });
  }
  if (verdict.kind === 'changed') return new P4Error('HOST_KEY_CHANGED', { ...facts, new: print, known, accept });
  return acceptance.isNewAccepted ? null : new P4Error('HOST_KEY_UNKNOWN', { ...facts, fingerprint: print, accept });
}
