/** What the operator's ssh configuration says of a host: the part of ssh_config(5) that reaching it needs. */
import { readdir } from 'node:fs/promises';
import { homedir, userInfo } from 'node:os';
import { basename, dirname, isAbsolute, join } from 'node:path';
import process from 'node:process';

import SSHConfig from 'ssh-config';

import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { readIfThere } from '../durable-file.ts';

/** Who runs the command, and where. */
export interface Operator {
  /** Absolute path. */
  readonly home: string;
  readonly user: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Whoever runs this process. */
export const presentOperator = (): Operator => ({
  home: homedir(),
  user: userInfo().username,
  environment: process.env,
});

/** Only what is said; `null` and empty lists where nothing is. Paths are absolute. */
export interface ConfiguredHost {
  readonly hostName: string;
  readonly port: number | null;
  readonly user: string | null;
  readonly identityFiles: readonly string[];
  readonly isIdentitiesOnly: boolean;
  readonly agent: AgentChoice;
  /** As in `user@gate:2222,second`; `null` also for `none`. */
  readonly proxyJump: string | null;
  readonly userKnownHostsFiles: readonly string[];
  readonly globalKnownHostsFiles: readonly string[];
  readonly hostKeyAlias: string | null;
}

/** `default`: the one of `SSH_AUTH_SOCK`. */
export type AgentChoice = { readonly kind: 'default' | 'none' } | { readonly kind: 'socket'; readonly path: string };

export class OperatorConfig {
  readonly #config: SSHConfig;
  readonly #operator: Operator;

  constructor(text: string, operator: Operator) {
    this.#config = SSHConfig.parse(text);
    this.#operator = operator;
  }

  /**
   * Reads `~/.ssh/config` and the system's, which fills in what the first leaves open.
   * @throws STATE_UNREADABLE, SSH_CONFIG_UNUSABLE
   */
  static async read(operator: Operator): Promise<OperatorConfig> {
    const user = await includedText(join(operator.home, '.ssh/config'), {
      folder: join(operator.home, '.ssh'),
      operator,
    });
    const system = await includedText('/etc/ssh/ssh_config', { folder: '/etc/ssh', operator });
    // What stands behind the last block of the first file must not become part of that block.
    return new OperatorConfig(`${user}\nHost *\n${system}`, operator);
  }

  /**
   * @param alias the address as the inventory, or another host's ProxyJump, writes it
   * @throws SSH_CONFIG_UNUSABLE
   */
  of(alias: string): ConfiguredHost {
    const said = this.#config.compute(alias, { ignoreCase: true });
    const one = (name: string): string | null => firstWord(said[name]);
    const hostName = (one('hostname') ?? alias).replaceAll('%h', alias).replaceAll('%%', '%');
    if (isSet(one('proxycommand')) && !isSet(one('proxyjump'))) {
      throw new P4Error('SSH_CONFIG_UNUSABLE', { host: alias, what: 'ProxyCommand', instead: 'ProxyJump' });
    }
    const user = one('user');
    const tokens = this.#tokens({ alias, hostName, user: user ?? this.#operator.user });
    const paths = (name: string): readonly string[] => allWords(said[name]).filter(isSet).map(tokens);
    return {
      hostName,
      port: portOf(one('port'), alias),
      user,
      identityFiles: paths('identityfile'),
      isIdentitiesOnly: one('identitiesonly')?.toLowerCase() === 'yes',
      agent: this.#agentOf(one('identityagent'), tokens),
      proxyJump: isSet(one('proxyjump')) ? one('proxyjump') : null,
      userKnownHostsFiles: paths('userknownhostsfile'),
      globalKnownHostsFiles: paths('globalknownhostsfile'),
      hostKeyAlias: one('hostkeyalias'),
    };
  }

  #agentOf(text: string | null, tokens: (path: string) => string): AgentChoice {
    if (text === null || text === 'SSH_AUTH_SOCK') return { kind: 'default' };
    if (!isSet(text)) return { kind: 'none' };
    const variable = /^\$(\w+)$/.exec(text)?.[1];
    const path = variable === undefined ? tokens(text) : this.#operator.environment[variable];
    return path === undefined ? { kind: 'none' } : { kind: 'socket', path };
  }

  /** Puts in what `~`, `%…` and `${…}` stand for in a path. */
  #tokens(host: {
    readonly alias: string;
    readonly hostName: string;
    readonly user: string;
  }): (path: string) => string {
    const { home, user, environment } = this.#operator;
    const values: Readonly<Record<string, string>> = {
      '%': '%',
      d: home,
      h: host.hostName,
      n: host.alias,
      r: host.user,
      u: user,
    };
    return (path) => {
      const text = path
        .replace(/%(.)/g, (whole, letter: string) => values[letter] ?? whole)
        .replace(/\$\{(\w+)\}/g, (_whole, name: string) => environment[name] ?? '');
      return absolutePath(text, { home, folder: home });
    };
  }
}

/** A path as people write it: absolute, from `~`, or from a folder. */
export function absolutePath(path: string, from: { readonly home: string; readonly folder: string }): string {
  if (path === '~' || path.startsWith('~/')) return join(from.home, path.slice(1));
  return isAbsolute(path) ? path : join(from.folder, path);
}

interface Inclusion {
  /** Where relative paths start from. */
  readonly folder: string;
  readonly operator: Operator;
  readonly depth?: number;
}

/** A configuration's text with the files it includes in their places; the `Include` lines are what the parser leaves out. */
async function includedText(path: string, inclusion: Inclusion): Promise<string> {
  const { folder, operator, depth = 0 } = inclusion;
  if (depth > limits.sshConfigDepth) throw new P4Error('SSH_CONFIG_UNUSABLE', { path, what: 'Include, in a circle' });
  const text = await readIfThere(path);
  if (text === null) return '';
  const lines = await Promise.all(
    text.split(/\r?\n/).map(async (line) => {
      const patterns = /^\s*include(?:\s+|\s*=\s*)(.+)$/i.exec(line)?.[1];
      if (patterns === undefined) return line;
      const written = patterns
        .trim()
        .split(/\s+/)
        .map((word) => word.replace(/^"(.*)"$/, '$1'));
      const files = await Promise.all(
        written.map((pattern) => matchingFiles(absolutePath(pattern, { home: operator.home, folder }))),
      );
      const texts = await Promise.all(
        files.flat().map((file) => includedText(file, { ...inclusion, depth: depth + 1 })),
      );
      return texts.join('\n');
    }),
  );
  return lines.join('\n');
}

/** Wildcards stand in the last part of a path only. */
async function matchingFiles(path: string): Promise<readonly string[]> {
  const pattern = basename(path);
  if (!/[*?]/.test(pattern)) return [path];
  const shape = new RegExp(
    `^${pattern
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replaceAll('*', '.*')
      .replaceAll('?', '.')}$`,
  );
  const names = await readdir(dirname(path)).catch(() => []);
  return names
    .filter((name) => shape.test(name) && !name.startsWith('.'))
    .sort()
    .map((name) => join(dirname(path), name));
}

const isSet = (word: string | null): word is string => word !== null && word.toLowerCase() !== 'none';

const allWords = (value: string | readonly string[] | undefined): readonly string[] =>
  value === undefined ? [] : typeof value === 'string' ? [value] : value;

const firstWord = (value: string | readonly string[] | undefined): string | null => allWords(value)[0] ?? null;

function portOf(text: string | null, alias: string): number | null {
  if (text === null) return null;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : NaN;
  if (port >= 1 && port <= 65_535) return port;
  throw new P4Error('SSH_CONFIG_UNUSABLE', { host: alias, what: `Port ${text}` });
}
