/**
 * Reads GBNF as llama.cpp's parser does (`src/llama-grammar.cpp` of v0.5.0), into a tree that `grammar-check.ts` judges.
 *
 * Refused here although llama.cpp reads it: rules about token ids (`<think>`, `!<[5]>`), which can end its process when a
 * token spans characters and such a rule; a repetition whose maximum is below its minimum, which it expands for ever.
 */
import { P4Error } from './errors.ts';

export type GrammarItem =
  /** A literal or a character class: `elements` of llama.cpp's rule, 0 for an empty one. */
  | { readonly kind: 'text'; readonly elements: number }
  | { readonly kind: 'reference'; readonly name: string; readonly at: number }
  | { readonly kind: 'group'; readonly alternates: readonly GrammarSequence[] }
  /** `most` is `null` for any number. */
  | { readonly kind: 'repeat'; readonly item: GrammarItem; readonly least: number; readonly most: number | null };

export type GrammarSequence = readonly GrammarItem[];

export interface GrammarRule {
  readonly alternates: readonly GrammarSequence[];
  readonly at: number;
}

export type GrammarRules = ReadonlyMap<string, GrammarRule>;

/** llama.cpp refuses more. */
const mostRepetitions = 2000;
const mostNesting = 64;
const escapeDigits: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };
const plainEscapes = 'trn\\"[]-';
const wordPattern = /[A-Za-z0-9-]+/y;
const numberPattern = /[0-9]+/y;
const hexPattern = /^[0-9a-fA-F]+$/;

/** @throws SAMPLER_GRAMMAR with line, column and what is expected there */
export function parseGrammar(text: string): GrammarRules {
  return new GrammarParser(text).rules();
}

/** @param at index into the text */
export function grammarError(text: string, at: number, problem: string): P4Error {
  const before = text.slice(0, at);
  const line = before.split('\n').length;
  return new P4Error('SAMPLER_GRAMMAR', { line, column: at - before.lastIndexOf('\n'), problem });
}

class GrammarParser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  rules(): GrammarRules {
    const rules = new Map<string, GrammarRule>();
    const nul = this.#text.indexOf('\0');
    if (nul >= 0) throw grammarError(this.#text, nul, 'a NUL character');
    this.#skipSpace(true);
    while (this.#at < this.#text.length) {
      const at = this.#at;
      const name = this.#name();
      this.#skipSpace(false);
      this.#expect('::=');
      this.#skipSpace(true);
      // A later rule of the same name takes the place of an earlier one, as in llama.cpp.
      rules.set(name, { alternates: this.#alternates(0), at });
      if (this.#at < this.#text.length && !this.#take('\r\n') && !this.#take('\n') && !this.#take('\r')) {
        throw this.#error('expected a newline or the end of the rule');
      }
      this.#skipSpace(true);
    }
    return rules;
  }

  #alternates(depth: number): GrammarSequence[] {
    if (depth > mostNesting) throw this.#error(`more than ${mostNesting} groups within each other`);
    const alternates = [this.#sequence(depth)];
    while (this.#take('|')) {
      this.#skipSpace(true);
      alternates.push(this.#sequence(depth));
    }
    return alternates;
  }

  #sequence(depth: number): GrammarSequence {
    const items: GrammarItem[] = [];
    for (;;) {
      const item = this.#item(depth);
      if (item === null) return items;
      this.#skipSpace(depth > 0);
      items.push(this.#repeated(item, depth));
    }
  }

  #item(depth: number): GrammarItem | null {
    const at = this.#at;
    if (this.#take('"')) return this.#literal();
    if (this.#take('[')) return this.#characterClass();
    if (this.#take('.')) return { kind: 'text', elements: 1 };
    if (this.#take('(')) {
      this.#skipSpace(true);
      const alternates = this.#alternates(depth + 1);
      this.#expect(')');
      return { kind: 'group', alternates };
    }
    const next = this.#text[at] ?? '';
    if (next === '<' || next === '!') throw this.#error('rules about token ids are not supported');
    if (next !== '' && '*+?{'.includes(next)) throw this.#error(`expected something to repeat before ${next}`);
    const word = this.#match(wordPattern);
    return word === null ? null : { kind: 'reference', name: word, at };
  }

  #literal(): GrammarItem {
    let elements = 0;
    while (!this.#take('"')) {
      this.#character();
      elements += 1;
    }
    return { kind: 'text', elements };
  }

  #characterClass(): GrammarItem {
    this.#take('^');
    let elements = 0;
    while (!this.#take(']')) {
      this.#character();
      elements += 1;
      if (this.#text[this.#at] === '-' && this.#text[this.#at + 1] !== ']') {
        this.#at += 1;
        this.#character();
        elements += 1;
      }
    }
    return { kind: 'text', elements };
  }

  #character(): void {
    const character = this.#text.codePointAt(this.#at);
    if (character === undefined) throw this.#error('expected a character, a quote or a bracket before the end');
    if (character !== 0x5c) {
      this.#at += character > 0xffff ? 2 : 1;
      return;
    }
    const escape = this.#text[this.#at + 1] ?? '';
    const digits = escapeDigits[escape] ?? 0;
    const number = this.#text.slice(this.#at + 2, this.#at + 2 + digits);
    const isKnown = digits > 0 ? number.length === digits && hexPattern.test(number) : plainEscapes.includes(escape);
    if (escape === '' || !isKnown) throw this.#error('an unknown escape');
    this.#at += 2 + digits;
  }

  #repeated(item: GrammarItem, depth: number): GrammarItem {
    const at = this.#at;
    const range = this.#repetition(depth);
    if (range === null) return item;
    if (item.kind === 'text' && item.elements === 0) throw grammarError(this.#text, at, 'nothing is repeated here');
    return this.#repeated({ kind: 'repeat', item, ...range }, depth);
  }

  #repetition(depth: number): { readonly least: number; readonly most: number | null } | null {
    const isNested = depth > 0;
    if (this.#take('*')) return this.#after(isNested, { least: 0, most: null });
    if (this.#take('+')) return this.#after(isNested, { least: 1, most: null });
    if (this.#take('?')) return this.#after(isNested, { least: 0, most: 1 });
    if (!this.#take('{')) return null;
    this.#skipSpace(isNested);
    const least = this.#count() ?? this.#refuse('expected a number');
    this.#skipSpace(isNested);
    let most: number | null = least;
    if (this.#take(',')) {
      this.#skipSpace(isNested);
      most = this.#count();
      this.#skipSpace(isNested);
    }
    this.#expect('}');
    if (most !== null && most < least) throw this.#error('the most repetitions are fewer than the least');
    return this.#after(isNested, { least, most });
  }

  #after<Value>(isNested: boolean, value: Value): Value {
    this.#skipSpace(isNested);
    return value;
  }

  #count(): number | null {
    const digits = this.#match(numberPattern);
    if (digits === null) return null;
    if (Number(digits) > mostRepetitions) throw this.#error(`more than ${mostRepetitions} repetitions`);
    return Number(digits);
  }

  #name(): string {
    return this.#match(wordPattern) ?? this.#refuse('expected the name of a rule');
  }

  /** Spaces and comments; newlines too where a rule goes on after them. */
  #skipSpace(isNewlineSpace: boolean): void {
    const spaces = isNewlineSpace ? /(?:[ \t\r\n]|#[^\r\n]*)*/y : /(?:[ \t]|#[^\r\n]*)*/y;
    this.#match(spaces);
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? null;
    if (found !== null) this.#at += found.length;
    return found;
  }

  #take(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #expect(text: string): void {
    if (!this.#take(text)) throw this.#error(`expected ${text}`);
  }

  #refuse(problem: string): never {
    throw this.#error(problem);
  }

  #error(problem: string): P4Error {
    return grammarError(this.#text, this.#at, problem);
  }
}
