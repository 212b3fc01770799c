/** What the stages of this host told of themselves last. */
import type { LoadId, NodeIndex } from '../../protocol/ids.ts';
import type { StageFacts, StageReport } from '../../protocol/stage-control.ts';

export interface StageFigures {
  readonly load: LoadId;
  readonly node: NodeIndex;
  /** Share of its weights that are loaded, 0 to 1. */
  readonly loaded: number;
  /** `null` while it loads. */
  readonly facts: StageFacts | null;
  /** The latest answer, and when it came, on a clock that only goes forward. */
  readonly report: { readonly values: StageReport; readonly atMs: number } | null;
}

export interface FigureSource {
  /** Asks every stage that is not being asked; resolves when those have answered, or will not. */
  ask(): Promise<void>;
  figures(): readonly StageFigures[];
}
