/** An invariant (ARCHITECTURE.md) that a simulated fleet broke. */
export class Violation extends Error {
  /** The number of the rule, or a word for one that has none. */
  readonly rule: string;

  constructor(rule: string, found: string) {
    super(`${rule}: ${found}`);
    this.rule = rule;
  }
}
