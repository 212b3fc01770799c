/** Times, counted by bucket: one observation is a search among some thirty bounds and three additions. */
export class DurationCounts {
  /** Upper bounds in seconds, ascending. */
  readonly bounds: readonly number[];
  /** How many fell into each bucket, not added up; the last is what lies above all bounds. */
  readonly counts: Float64Array;
  sum = 0;
  count = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  add(seconds: number): void {
    let low = 0;
    let high = this.bounds.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (seconds <= (this.bounds[middle] ?? Infinity)) high = middle;
      else low = middle + 1;
    }
    this.counts[low] = (this.counts[low] ?? 0) + 1;
    this.sum += seconds;
    this.count += 1;
  }
}
