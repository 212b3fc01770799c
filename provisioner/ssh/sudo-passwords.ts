/**
 * sudo's passwords: from files that nobody else may read, or asked for. One that is asked for serves every host where the
 * user has the same name; where a host refuses what others took, its own is asked for.
 */
import { readFile, stat } from 'node:fs/promises';

import { P4Error } from '../../protocol/errors.ts';
import type { SudoPassword } from '../../protocol/inventory.ts';
import { limits } from '../../protocol/limits.ts';
import { systemCode } from '../../protocol/tls-identity.ts';
import type { SecretPrompt } from './secret-prompt.ts';

/** Who wants to be root where. */
export interface SudoUser {
  /** The host's name in the inventory. */
  readonly host: string;
  readonly user: string;
}

export class SudoPasswords {
  readonly #prompt: SecretPrompt;
  /** By user name. */
  readonly #shared = new Map<string, Promise<string>>();
  /** By host and user name. */
  readonly #own = new Map<string, Promise<string>>();
  /** Those that a host has taken. */
  readonly #taken = new Set<string>();

  constructor(prompt: SecretPrompt) {
    this.#prompt = prompt;
  }

  /**
   * The password to give first; `null` where the inventory has none.
   * @param source its path is absolute
   * @throws SECRET_FILE_UNUSABLE, SECRET_NOT_GIVEN, CANCELLED
   */
  async first(source: SudoPassword, who: SudoUser, signal: AbortSignal): Promise<string | null> {
    switch (source.kind) {
      case 'none':
        return null;
      case 'file':
        return passwordOf(source.path);
      case 'ask':
        return this.#own.get(keyOf(who)) ?? this.#sharedOf(who.user, signal);
    }
  }

  /**
   * The password to give after one was refused; `null` where there is no other.
   * @throws SECRET_NOT_GIVEN, CANCELLED
   */
  async afterRefusal(
    source: SudoPassword,
    who: SudoUser,
    { refused, signal }: { readonly refused: string; readonly signal: AbortSignal },
  ): Promise<string | null> {
    if (source.kind !== 'ask') return null;
    const key = keyOf(who);
    const own = this.#own.get(key);
    if (own !== undefined && (await own) !== refused) return own;
    const asked = this.#sharedOf(who.user, signal);
    const shared = await asked;
    if (own === undefined && shared !== refused) return shared;
    const isRightElsewhere = this.#taken.has(takenKey(who.user, shared));
    if (own === undefined && !isRightElsewhere) {
      // Another host that was refused as well may have had it asked for already.
      if (this.#shared.get(who.user) === asked) this.#shared.delete(who.user);
      return this.#sharedOf(who.user, signal, ' (the last one is wrong)');
    }
    return this.#asked(this.#own, key, { question: `sudo password of ${who.user} on ${who.host}`, signal });
  }

  /** Takes note that a host took the password. */
  noteTaken({ user }: SudoUser, password: string): void {
    this.#taken.add(takenKey(user, password));
  }

  #sharedOf(user: string, signal: AbortSignal, remark = ''): Promise<string> {
    return (
      this.#shared.get(user) ??
      this.#asked(this.#shared, user, { question: `sudo password of ${user}${remark}`, signal })
    );
  }

  #asked(
    kept: Map<string, Promise<string>>,
    key: string,
    { question, signal }: { readonly question: string; readonly signal: AbortSignal },
  ): Promise<string> {
    const asked = this.#prompt.ask(question, signal);
    kept.set(key, asked);
    // What was not answered may be asked again.
    asked.catch(() => {
      if (kept.get(key) === asked) kept.delete(key);
    });
    return asked;
  }
}

/** The one line of a password file. */
async function passwordOf(path: string): Promise<string> {
  const unusable = (why: string): P4Error => new P4Error('SECRET_FILE_UNUSABLE', { path, why });
  try {
    const { mode, size } = await stat(path);
    if ((mode & 0o077) !== 0) throw unusable('others may read it');
    if (size > limits.secretBytes) throw unusable('it is too long for a password');
    const password = (await readFile(path, 'utf8')).replace(/\r?\n$/, '');
    if (password === '' || /[\r\n\0]/.test(password)) throw unusable('it is not one line');
    return password;
  } catch (error) {
    throw error instanceof P4Error ? error : unusable(`it cannot be read (${systemCode(error)})`);
  }
}

const keyOf = ({ host, user }: SudoUser): string => JSON.stringify([host, user]);
const takenKey = (user: string, password: string): string => JSON.stringify([user, password]);
