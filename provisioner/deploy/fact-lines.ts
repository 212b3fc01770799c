/** A host's answer of one fact a line, `name=value`, and `end` after the last. */
import { P4Error } from '../../protocol/errors.ts';
import type { HostName } from '../../protocol/ids.ts';

/** The line a whole answer ends with. */
export const factsEnd = 'end';

/** What a script that gathers facts begins with. */
export const factsPreamble = `export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
fact() { printf '%s=%s\\n' "$1" "$2"; }
has() { command -v "$1" >/dev/null 2>&1; }`;

/** The answer's lines by name. */
export class FactLines {
  readonly #host: HostName;
  readonly #values = new Map<string, string[]>();

  /** @throws HOST_FACTS_UNREADABLE */
  constructor(host: HostName, text: string) {
    this.#host = host;
    const lines = text.split('\n').filter((line) => line !== '');
    if (lines.at(-1) !== factsEnd) throw this.#unreadable('an answer that is cut off', lines.at(-1) ?? '');
    for (const line of lines.slice(0, -1)) {
      const [, name, value] = /^([a-z-]+)=(.*)$/.exec(line) ?? [];
      if (name === undefined || value === undefined) throw this.#unreadable('a line that is no fact', line);
      this.#values.set(name, [...(this.#values.get(name) ?? []), value]);
    }
  }

  /** Empty where the host did not say. */
  text(name: string): string {
    return this.#values.get(name)?.[0] ?? '';
  }

  /** The groups of the pattern, which the fact has to match. */
  one(name: string, pattern: RegExp): readonly string[] {
    return this.#groups(name, this.text(name), pattern);
  }

  oneOf<Value extends string>(name: string, values: readonly Value[]): Value {
    const text = this.text(name);
    const value = values.find((known) => known === text);
    if (value === undefined) throw this.#unreadable(`the fact ${name}`, text);
    return value;
  }

  many(name: string, pattern: RegExp): readonly (readonly string[])[] {
    return (this.#values.get(name) ?? []).map((value) => this.#groups(name, value, pattern));
  }

  count(name: string): number {
    return Number(this.one(name, /^(\d{1,15})$/)[0]);
  }

  #groups(name: string, value: string, pattern: RegExp): readonly string[] {
    const groups = pattern.exec(value);
    if (groups === null) throw this.#unreadable(`the fact ${name}`, value);
    return groups.slice(1);
  }

  #unreadable(what: string, found: string): P4Error {
    return new P4Error('HOST_FACTS_UNREADABLE', { host: this.#host, what, found: found.slice(0, 200) });
  }
}
