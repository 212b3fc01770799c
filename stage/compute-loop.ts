/**
 * When the stage decodes: as soon as frames wait and the agent takes answers, after everything that has arrived was read.
 * So frames that come together are decoded together, and a lone one waits for nothing: not even for the next turn of the
 * event loop, which takes a tenth of a millisecond on caches that the decode before has emptied.
 */
import { decodeFrame, encodeFrame } from '../protocol/hop-frame.ts';
import { limits } from '../protocol/limits.ts';
import type { FrameServer } from './frame-server.ts';
import type { StageCore } from './stage-core.ts';

export class ComputeLoop {
  readonly #core: StageCore;
  readonly #fail: (error: unknown) => void;
  #frames: FrameServer | null = null;
  #state: 'idle' | 'scheduled' | 'ended' = 'idle';

  /** @param fail told once, when a step failed: nothing runs after it */
  constructor(core: StageCore, fail: (error: unknown) => void) {
    this.#core = core;
    this.#fail = fail;
  }

  /** Where answers go. */
  connect(frames: FrameServer): void {
    this.#frames = frames;
  }

  /** An agent begins anew. */
  restart(): void {
    this.#core.reset();
  }

  /**
   * Takes a frame; `schedule` or `runNow` follows.
   * @throws FRAME_INVALID, GENERATION_MISMATCH: nothing has changed then
   */
  take(bytes: Uint8Array): void {
    this.#core.accept(decodeFrame(bytes));
    if (this.#core.waitingFrames >= limits.stageFrames) this.#frames?.pause();
  }

  /** Decodes in this turn of the event loop: all that has arrived was read. */
  runNow(): void {
    if (this.#state === 'ended') return;
    this.#state = 'scheduled';
    this.#run();
  }

  /** Decodes in the next turn, when what else has arrived is read. */
  schedule(): void {
    if (this.#state !== 'idle' || this.#core.waitingFrames === 0 || this.#frames?.canSend !== true) return;
    this.#state = 'scheduled';
    setImmediate(() => {
      this.#run();
    });
  }

  end(): void {
    this.#state = 'ended';
  }

  #run(): void {
    if (this.#state !== 'scheduled') return;
    this.#state = 'idle';
    // The agent may have left, or begun anew, since this run was scheduled.
    if (this.#core.waitingFrames === 0 || this.#frames?.canSend !== true) return;
    try {
      const content = this.#core.step();
      this.#frames.send(encodeFrame(content));
    } catch (error) {
      this.end();
      this.#fail(error);
      return;
    }
    if (this.#core.waitingFrames < limits.stageFrames) this.#frames.resume();
    this.schedule();
  }
}
