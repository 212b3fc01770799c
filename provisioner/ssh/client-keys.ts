/**
 * The keys that log in: from files and from the ssh agent.
 *
 * A key is offered by its public part; only when a host accepts it is its passphrase asked for, once for each key. An agent
 * that holds the key signs instead.
 */
import ssh2, { type ParsedKey, type SignCallback, type SigningRequestOptions } from 'ssh2';

import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { fingerprint } from './known-hosts.ts';
import { readPrivateKey, unlock, unusable, type PrivateKeyFile } from './private-key-file.ts';
import type { KeyChoice } from './route.ts';
import type { SecretPrompt } from './secret-prompt.ts';

export type HashName = 'sha1' | 'sha256' | 'sha512';

export interface OfferedKey {
  readonly publicKey: ParsedKey;
  /** For people: fingerprint and where it is from. */
  readonly says: string;
  readonly sign: (data: Buffer, hash: HashName | undefined, signal: AbortSignal) => Promise<Buffer>;
}

export interface Offer {
  /** In the order of offering. */
  readonly keys: readonly OfferedKey[];
  /** Why there are not more, for people. */
  readonly remarks: readonly string[];
}

export class ClientKeys {
  readonly #prompt: SecretPrompt;
  /** By path. */
  readonly #unlocked = new Map<string, Promise<ParsedKey>>();

  constructor(prompt: SecretPrompt) {
    this.#prompt = prompt;
  }

  /**
   * The order is ssh's own: what is both in a file and in the agent, the rest of the agent, the rest of the files.
   * @throws SSH_KEY_UNUSABLE, SECRET_NOT_GIVEN, CANCELLED
   */
  async offer(choice: KeyChoice, signal: AbortSignal): Promise<Offer> {
    const agent = await agentKeys(choice.agentSocket);
    const files = await Promise.all(choice.files.map((path) => this.#fileKey(path, choice, signal)));
    const fromFiles = files.filter((key) => key !== null);
    const isIn = (keys: readonly OfferedKey[], key: OfferedKey): boolean =>
      keys.some((other) => isSameKey(other.publicKey, key.publicKey));
    const inBoth = agent.keys.filter((key) => isIn(fromFiles, key));
    const agentOnly = choice.isOnlyFiles ? [] : agent.keys.filter((key) => !isIn(fromFiles, key));
    const fileOnly = fromFiles.filter((key) => !isIn(agent.keys, key));
    return { keys: [...inBoth, ...agentOnly, ...fileOnly], remarks: agent.remarks };
  }

  async #fileKey(path: string, choice: KeyChoice, signal: AbortSignal): Promise<OfferedKey | null> {
    const file = await readPrivateKey(path);
    if (file === null) {
      if (choice.isRequired) throw unusable(path, 'there is no such file');
      return null;
    }
    const publicKey = file.publicKey ?? (await this.#key(file, signal));
    return {
      publicKey,
      says: `${fingerprint(publicKey.getPublicSSH())} from ${path}`,
      sign: async (data, hash, until) => signed(await this.#key(file, until), data, hash),
    };
  }

  #key(file: PrivateKeyFile, signal: AbortSignal): Promise<ParsedKey> {
    const { lock, path } = file;
    if (lock.kind === 'open') return Promise.resolve(lock.key);
    const former = this.#unlocked.get(path);
    if (former !== undefined) return former;
    const asked = this.#unlock(path, lock.text, signal);
    this.#unlocked.set(path, asked);
    return asked;
  }

  async #unlock(path: string, text: string, signal: AbortSignal): Promise<ParsedKey> {
    for (let attempt = 1; attempt <= limits.secretTries; attempt++) {
      const again = attempt === 1 ? '' : ' (the last one is wrong)';
      const result = unlock(text, await this.#prompt.ask(`Passphrase of the key ${path}${again}`, signal));
      if (result.kind === 'unlocked') return result.key;
    }
    throw unusable(path, 'its passphrase was wrong each time');
  }
}

/** What ssh2 takes keys from: it asks for a list, then for a signature with the key that the host accepts. */
export class KeyRing extends ssh2.BaseAgent<ParsedKey> {
  readonly #keys: readonly OfferedKey[];
  readonly #signal: AbortSignal;
  readonly #whileSigning: (signing: Promise<unknown>) => void;

  /** @param whileSigning gets what may wait for a person to type a passphrase */
  constructor(keys: readonly OfferedKey[], signal: AbortSignal, whileSigning: (signing: Promise<unknown>) => void) {
    super();
    this.#keys = keys;
    this.#signal = signal;
    this.#whileSigning = whileSigning;
  }

  override getIdentities(done: (error?: Error | null, keys?: ParsedKey[]) => void): void {
    done(
      null,
      this.#keys.map(({ publicKey }) => publicKey),
    );
  }

  override sign(
    publicKey: ParsedKey,
    data: Buffer,
    ...[options, callback]: [options: SigningRequestOptions | SignCallback, callback?: SignCallback]
  ): void {
    const hash = typeof options === 'function' ? undefined : options.hash;
    const done = present(typeof options === 'function' ? options : callback, 'somebody waits for the signature');
    const key = this.#keys.find((offered) => isSameKey(offered.publicKey, publicKey));
    const signing =
      key === undefined ? Promise.reject(new Error('a key that was not offered')) : key.sign(data, hash, this.#signal);
    this.#whileSigning(signing);
    signing.then(
      (signature) => {
        done(null, signature);
      },
      (error: unknown) => {
        done(error instanceof Error ? error : new Error(String(error)));
      },
    );
  }
}

/** Whether an error is the answer of a person, or their absence, and not the fault of a key. */
export const isAboutSecret = (error: unknown): error is P4Error =>
  error instanceof P4Error && ['SSH_KEY_UNUSABLE', 'SECRET_NOT_GIVEN', 'CANCELLED'].includes(error.code);

async function agentKeys(socket: string | null): Promise<Offer> {
  if (socket === null) return { keys: [], remarks: ['no ssh agent'] };
  const agent = new ssh2.OpenSSHAgent(socket);
  const found = await new Promise<readonly ParsedKey[] | null>((resolve) => {
    agent.getIdentities((error, keys) => {
      resolve(error === undefined || error === null ? (keys ?? []).filter(isParsed) : null);
    });
  });
  if (found === null) return { keys: [], remarks: [`no ssh agent answers at ${socket}`] };
  const keys = found.map((publicKey) => ({
    publicKey,
    says: `${fingerprint(publicKey.getPublicSSH())} from the ssh agent`,
    sign: (data: Buffer, hash: HashName | undefined) => agentSigned(agent, publicKey, { data, hash }),
  }));
  return { keys, remarks: keys.length === 0 ? ['the ssh agent holds no key'] : [] };
}

function agentSigned(
  agent: ssh2.OpenSSHAgent,
  key: ParsedKey,
  { data, hash }: { readonly data: Buffer; readonly hash: HashName | undefined },
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    agent.sign(key, data, hash === undefined ? {} : { hash }, (error, signature) => {
      if (signature === undefined) reject(error ?? new Error('the ssh agent gives no signature'));
      else resolve(signature);
    });
  });
}

function signed(key: ParsedKey, data: Buffer, hash: HashName | undefined): Buffer {
  const signature: unknown = key.sign(data, hash);
  if (Buffer.isBuffer(signature)) return signature;
  throw signature instanceof Error ? signature : new Error('the key gives no signature');
}

const isParsed = (value: unknown): value is ParsedKey =>
  typeof value === 'object' && value !== null && 'getPublicSSH' in value;

const isSameKey = (one: ParsedKey, other: ParsedKey): boolean => one.getPublicSSH().equals(other.getPublicSSH());
