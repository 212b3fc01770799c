/**
 * What a stage has done since its load, written by the thread that computes and read by the one that answers, at any time.
 *
 * Each value is one aligned float64 that a single thread writes: a reader sees a whole value, at worst the former one.
 */
const names = [
  ...(['decodes', 'prefilledRows', 'decodedRows', 'recomputedRows', 'paddingRows'] as const),
  ...(['computeSeconds', 'kvCellsUsed', 'kvCellsKept'] as const),
] as const;

export type StageCounts = { readonly [Name in (typeof names)[number]]: number };

export class StageCounters {
  readonly buffer: SharedArrayBuffer;
  readonly #values: Float64Array;

  /** @param buffer of the other thread's counters; new ones without it */
  constructor(buffer = new SharedArrayBuffer(names.length * Float64Array.BYTES_PER_ELEMENT)) {
    this.buffer = buffer;
    this.#values = new Float64Array(buffer);
  }

  add(counts: Partial<StageCounts>): void {
    names.forEach((name, index) => {
      this.#values[index] = (this.#values[index] ?? 0) + (counts[name] ?? 0);
    });
  }

  set(name: keyof StageCounts, value: number): void {
    this.#values[names.indexOf(name)] = value;
  }

  read(): StageCounts {
    const value = (name: keyof StageCounts): number => this.#values[names.indexOf(name)] ?? 0;
    return {
      decodes: value('decodes'),
      prefilledRows: value('prefilledRows'),
      decodedRows: value('decodedRows'),
      recomputedRows: value('recomputedRows'),
      paddingRows: value('paddingRows'),
      computeSeconds: value('computeSeconds'),
      kvCellsUsed: value('kvCellsUsed'),
      kvCellsKept: value('kvCellsKept'),
    };
  }
}
