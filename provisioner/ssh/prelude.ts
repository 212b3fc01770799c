/**
 * How a script gets to a host's shell, and how its output is told from everything else that is printed there.
 *
 * The command line that ssh hands to the user's login shell is short and the same for every script: it starts `sh` with a
 * prelude that says it is there, reads the script from standard input up to a line that is its end, and runs it. So a
 * script is of any length, needs no quoting for whatever the login shell is, stands in no process list, and never runs
 * when it arrived in part. What follows that line is the script's own standard input: `read` takes byte by byte from a
 * pipe, as POSIX demands, so nothing of it is lost.
 *
 * Everything before the prelude's word on either stream is the login shell's or sudo's and not the script's. sudo gets its
 * password only when it asks with a prompt that carries the same unguessed word: where it does not ask, or asks twice,
 * nothing that was meant for one reader reaches another.
 */
import { assert } from '../../protocol/assert.ts';
import { limits } from '../../protocol/limits.ts';
import { shellQuoted } from './shell-quoting.ts';

/**
 * `direct`: as the user that logged in. `sudo`: root without a password, refused where it would need one. `sudo-asking`:
 * root, with a prompt for the password where it is needed.
 */
export type Elevation = 'direct' | 'sudo' | 'sudo-asking';

// No backslash before a quote, no quote, no line end and no exclamation mark: all login shells take it alike.
const prelude = [
  'PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin LC_ALL=C P4_COMMAND=$0',
  'export PATH LC_ALL P4_COMMAND',
  'umask 022',
  'printf "%s %s\\n" "$0" "$$" >&2',
  'printf "%s\\n" "$0"',
  'p4_script=$(while IFS= read -r line; do if [ "$line" = "$0" ]; then exit 0; fi; printf "%s\\n" "$line"; done; exit 1) || exit 97',
  'eval "$p4_script"',
].join('; ');

/** @param word unguessed, letters, digits and dashes */
export function shellCommand(word: string, elevation: Elevation): string {
  assert(/^[a-z0-9-]+$/.test(word), 'the word needs no quoting');
  const shell = `sh -c ${shellQuoted(prelude)} ${word}`;
  switch (elevation) {
    case 'direct':
      return `exec ${shell}`;
    case 'sudo':
      return `exec sudo -n -H -- ${shell}`;
    case 'sudo-asking':
      return `exec sudo -S -H -p ${promptOf(word)} -- ${shell}`;
  }
}

/** What is sent for the prelude to run. */
export function scriptText(word: string, script: string): string {
  assert(!script.includes('\0') && !script.split('\n').includes(word), 'a script is text without its end mark');
  return `${script}\n${word}\n`;
}

const promptOf = (word: string): string => `${word}-password:`;

/** What has come so far. */
export interface Preamble {
  /** How often sudo has asked for the password. */
  readonly prompts: number;
  /** The process of the script's shell, once it is there. */
  readonly pid: number | null;
}

/** Reads standard error up to the prelude's word. */
export class PreambleReader {
  readonly #word: string;
  #said = '';
  #pid: number | null = null;

  constructor(word: string) {
    this.#word = word;
  }

  /** Gives what already is the script's. */
  take(chunk: Buffer): Buffer {
    if (this.#pid !== null) return chunk;
    const before = this.#said.length;
    this.#said += chunk.toString('latin1');
    const found = new RegExp(`${this.#word} (\\d+)\\n`).exec(this.#said);
    if (found === null) return Buffer.alloc(0);
    this.#pid = Number(found[1]);
    const end = found.index + found[0].length;
    this.#said = this.#said.slice(0, found.index);
    return chunk.subarray(Math.max(0, end - before));
  }

  get preamble(): Preamble {
    return { prompts: this.#said.split(promptOf(this.#word)).length - 1, pid: this.#pid };
  }

  /** What was said before the script, for people: sudo's reasons. */
  get words(): string {
    const text = Buffer.from(this.#said, 'latin1').toString('utf8').replaceAll(promptOf(this.#word), '');
    return text.trim().slice(-1000);
  }

  get isTooLong(): boolean {
    return this.#said.length > limits.sshPreambleBytes;
  }
}

/** Leaves out of standard output what comes before the prelude's word. */
export class OutputReader {
  readonly #mark: Buffer;
  #held: Buffer | null = Buffer.alloc(0);

  constructor(word: string) {
    this.#mark = Buffer.from(`${word}\n`);
  }

  /** Gives what is the script's. */
  take(chunk: Buffer): Buffer {
    if (this.#held === null) return chunk;
    const held = Buffer.concat([this.#held, chunk]);
    const at = held.indexOf(this.#mark);
    this.#held = at < 0 ? held : null;
    return at < 0 ? Buffer.alloc(0) : held.subarray(at + this.#mark.length);
  }

  get isTooLong(): boolean {
    return this.#held !== null && this.#held.length > limits.sshPreambleBytes;
  }
}

/**
 * Ends the process group of a script's shell: politely, then not. The shell is known by its command line; what it has
 * replaced itself with, by its environment.
 * @param seconds time to go by itself
 */
export const endingScript = (word: string, pid: number, seconds: number): string => `
is_there() { case "$(cat /proc/${pid}/cmdline /proc/${pid}/environ 2>/dev/null | tr '\\000' ' ')" in *${word}*) return 0 ;; esac; return 1; }
is_there || exit 0
read -r stat </proc/${pid}/stat || exit 0
set -- \${stat##*) }
group=$3
kill -s TERM -- "-$group" 2>/dev/null
left=${seconds * 10}
while kill -s 0 -- "-$group" 2>/dev/null; do
  [ "$left" -gt 0 ] || { kill -s KILL -- "-$group"; exit 0; }
  left=$((left - 1))
  sleep 0.1
done
`;
