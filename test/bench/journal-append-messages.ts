/** What the benchmark says to a process that holds a journal and appends to it, and what comes back. */

export type AppendOrder = { readonly kind: 'append'; readonly count: number } | { readonly kind: 'close' };

export type AppendAnswer =
  /** Durable records. */
  | { readonly kind: 'opened'; readonly records: number }
  /**
   * Milliseconds from the first append until the last was durable, and CPU milliseconds of all threads meanwhile;
   * `records`: all that are durable then.
   */
  | ({ readonly kind: 'appended'; readonly records: number } & AppendTimes);

export interface AppendTimes {
  readonly ms: number;
  readonly cpuMs: number;
}
