/** Reads the fields of a JSON object that another process sent; a missing or wrong one is STAGE_PROTOCOL. */
import { P4Error } from './errors.ts';
import { isRecord } from './plain-value.ts';

export class JsonFields {
  readonly #what: string;
  readonly #fields: Readonly<Record<string, unknown>>;

  /** @param what the message's name, for the error */
  constructor(what: string, value: unknown) {
    if (!isRecord(value)) throw new P4Error('STAGE_PROTOCOL', { what, found: typeof value, expected: 'an object' });
    this.#what = what;
    this.#fields = value;
  }

  static parse(what: string, bytes: Uint8Array): JsonFields {
    try {
      return new JsonFields(
        what,
        JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')),
      );
    } catch (cause) {
      if (cause instanceof P4Error) throw cause;
      throw new P4Error('STAGE_PROTOCOL', { what, found: 'text that is not JSON', expected: 'JSON' }, cause);
    }
  }

  get(name: string): unknown {
    return this.#fields[name];
  }

  text(name: string): string {
    const value = this.get(name);
    return typeof value === 'string' ? value : this.refuse(name, 'text');
  }

  boolean(name: string): boolean {
    const value = this.get(name);
    return typeof value === 'boolean' ? value : this.refuse(name, 'true or false');
  }

  /** A finite number from 0. */
  amount(name: string): number {
    const value = this.get(name);
    return typeof value === 'number' && Number.isFinite(value) && value >= 0
      ? value
      : this.refuse(name, 'a number from 0');
  }

  count(name: string): number {
    const value = this.amount(name);
    return Number.isSafeInteger(value) ? value : this.refuse(name, 'an integer from 0');
  }

  oneOf<Value extends string>(name: string, values: readonly Value[]): Value {
    const value = this.get(name);
    return values.find((candidate) => candidate === value) ?? this.refuse(name, values.join(', '));
  }

  object(name: string): JsonFields {
    return new JsonFields(`${this.#what}.${name}`, this.get(name));
  }

  list<Item>(name: string, item: (value: unknown) => Item): Item[] {
    const value = this.get(name);
    return Array.isArray(value) ? value.map(item) : this.refuse(name, 'a list');
  }

  refuse(name: string, expected: string): never {
    throw new P4Error('STAGE_PROTOCOL', { what: `${this.#what}.${name}`, found: typeof this.get(name), expected });
  }
}
