/** A stage's log: one JSON object a line on standard error. Never a generation (G4), never a prompt. */
import type { ErrorFacts } from '../protocol/errors.ts';
import type { NodeIndex, RingName } from '../protocol/ids.ts';

export interface LogPlace {
  readonly ring: RingName;
  readonly node: NodeIndex;
}

export class StageLog {
  #place: LogPlace | null = null;

  constructor() {
    // A stage may outlive whoever reads its log; then nobody misses the lines.
    process.stderr.on('error', () => undefined);
  }

  /** What the stage is from here on. */
  place({ ring, node }: LogPlace): void {
    // Whatever else the caller holds (a load has its generation) stays out of the lines.
    this.#place = { ring, node };
  }

  write(event: string, facts: ErrorFacts = {}): void {
    const line = { at: new Date().toISOString(), event, pid: process.pid, ...this.#place, ...facts };
    process.stderr.write(`${JSON.stringify(line)}\n`);
  }
}
