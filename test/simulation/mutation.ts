/** A guard, and how it is taken away in the built files. */
export interface Mutation {
  readonly name: string;
  /** In `dist/`. */
  readonly file: string;
  /** Stands in it exactly once. */
  readonly guard: string;
  readonly instead: string;
}
