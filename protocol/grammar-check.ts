/**
 * Judges a grammar before llama.cpp gets it, because there a bad one can hang or end the process.
 *
 * - Every rule that is named exists, and one is called `root`.
 * - No rule can come back to itself without a character in between (left recursion). llama.cpp looks for it too, but not
 *   through rules that are empty by way of others, and then never ends.
 * - The ways to go on without a character, and the size after repetitions are written out, are bounded.
 */
import { P4Error } from './errors.ts';
import { limits } from './limits.ts';
import {
  grammarError,
  parseGrammar,
  type GrammarItem,
  type GrammarRules,
  type GrammarSequence,
} from './grammar-syntax.ts';

/** JSON schemas of real tools make some hundred rules. */
const mostRules = 1024;
/** llama.cpp keeps a stack for each way to go on; a JSON grammar has some tens. */
const mostWays = 10_000;
/** Elements (8 bytes each) of all rules with their repetitions written out. */
const mostElements = 500_000;

/** @throws SAMPLER_GRAMMAR with the place and the problem; INVALID_ARGUMENT when the text is too long */
export function checkGrammar(text: string): void {
  const bytes = Buffer.byteLength(text);
  if (bytes > limits.grammarBytes) {
    const expected = `at most ${limits.grammarBytes} bytes`;
    throw new P4Error('INVALID_ARGUMENT', { what: 'grammar', found: `${bytes} bytes`, expected });
  }
  const rules = parseGrammar(text);
  if (!rules.has('root')) throw grammarError(text, 0, 'there is no rule called root');
  if (rules.size > mostRules) throw grammarError(text, 0, `more than ${mostRules} rules`);
  new GrammarJudge(text, rules).judge();
}

class GrammarJudge {
  readonly #text: string;
  readonly #rules: GrammarRules;
  readonly #empty = new Set<string>();
  readonly #ways = new Map<string, number>();
  readonly #open = new Set<string>();
  #elements = 0;

  constructor(text: string, rules: GrammarRules) {
    this.#text = text;
    this.#rules = rules;
  }

  judge(): void {
    for (const rule of this.#rules.values()) this.#measure(rule.alternates);
    this.#findEmptyRules();
    for (const [name, rule] of this.#rules) this.#waysOfRule(name, rule.at);
    for (const rule of this.#rules.values()) this.#boundPlaces(rule.alternates);
  }

  /** Counts elements and finds names without a rule. */
  #measure(alternates: readonly GrammarSequence[]): void {
    for (const sequence of alternates) {
      for (const item of sequence) this.#elements += this.#measureItem(item);
      this.#elements += 1;
    }
    if (this.#elements > mostElements) {
      throw grammarError(this.#text, 0, 'too large when its repetitions are written out');
    }
  }

  #measureItem(item: GrammarItem): number {
    switch (item.kind) {
      case 'text':
        return item.elements;
      case 'reference':
        if (!this.#rules.has(item.name))
          throw grammarError(this.#text, item.at, `there is no rule called ${item.name}`);
        return 1;
      case 'group':
        this.#measure(item.alternates);
        return 1;
      case 'repeat': {
        const copies = item.most === null ? item.least + 1 : Math.max(item.most, 1);
        return copies * (this.#measureItem(item.item) + 3);
      }
    }
  }

  #findEmptyRules(): void {
    for (let before = -1; before !== this.#empty.size;) {
      before = this.#empty.size;
      for (const [name, rule] of this.#rules) {
        if (rule.alternates.some((sequence) => this.#maySequenceBeEmpty(sequence))) this.#empty.add(name);
      }
    }
  }

  #maySequenceBeEmpty(sequence: GrammarSequence): boolean {
    return sequence.every((item) => this.#mayBeEmpty(item));
  }

  #mayBeEmpty(item: GrammarItem): boolean {
    switch (item.kind) {
      case 'text':
        return item.elements === 0;
      case 'reference':
        return this.#empty.has(item.name);
      case 'group':
        return item.alternates.some((sequence) => this.#maySequenceBeEmpty(sequence));
      case 'repeat':
        return item.least === 0 || this.#mayBeEmpty(item.item);
    }
  }

  #waysOfRule(name: string, at: number): number {
    const known = this.#ways.get(name);
    if (known !== undefined) return known;
    if (this.#open.has(name)) throw grammarError(this.#text, at, `the rule ${name} begins with itself`);
    this.#open.add(name);
    const ways = this.#waysOfAlternates(this.#rules.get(name)?.alternates ?? []);
    this.#open.delete(name);
    this.#ways.set(name, ways);
    return ways;
  }

  #waysOfAlternates(alternates: readonly GrammarSequence[]): number {
    let ways = 0;
    for (const sequence of alternates) ways += this.#waysOfSequence(sequence);
    return this.#bounded(ways);
  }

  /** Ways to go on from the start of a sequence: its first items, as far as those before them may be empty. */
  #waysOfSequence(sequence: GrammarSequence): number {
    let ways = 0;
    for (const item of sequence) {
      ways = this.#bounded(ways + this.#mayBeginHere(item));
      if (!this.#mayBeEmpty(item)) return ways;
    }
    return ways + 1;
  }

  /** Bounds the ways to go on from every place of every sequence; those of the rules are known by now. */
  #boundPlaces(alternates: readonly GrammarSequence[]): void {
    for (const sequence of alternates) {
      let ways = 1;
      for (const item of sequence.toReversed()) {
        const own = this.#mayBeginHere(item);
        ways = this.#bounded(this.#mayBeEmpty(item) ? own + ways : own);
        this.#boundPlacesWithin(item);
      }
    }
  }

  #boundPlacesWithin(item: GrammarItem): void {
    if (item.kind === 'group') this.#boundPlaces(item.alternates);
    if (item.kind === 'repeat') this.#boundPlacesWithin(item.item);
  }

  #mayBeginHere(item: GrammarItem): number {
    switch (item.kind) {
      case 'text':
        return 1;
      case 'reference':
        return this.#waysOfRule(item.name, item.at);
      case 'group':
        return this.#waysOfAlternates(item.alternates);
      case 'repeat': {
        const own = this.#mayBeginHere(item.item);
        const copies = this.#mayBeEmpty(item.item) ? Math.max(item.most ?? item.least + 1, 1) : 1;
        return this.#bounded((own + 1) * copies);
      }
    }
  }

  #bounded(ways: number): number {
    if (ways > mostWays) throw grammarError(this.#text, 0, 'too many ways to go on at one place');
    return ways;
  }
}
