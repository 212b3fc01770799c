/**
 * The way of frames through one node: from upstream to its stage, and from the stage to the next edge.
 *
 * The hot path: no copy, no decision, O(1) for each frame. A stage gets a frame only while it has few and while the
 * edge behind it has room for what comes out, so a slow node slows the one before it and memory does not grow (E4).
 */
import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { decodeHeader, requireWire } from '../../protocol/hop-frame.ts';
import type { Generation, NodeIndex } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { WireType } from '../../protocol/plan.ts';
import type { Edge, FrameBytes, FrameSink } from './edge.ts';

interface Entry {
  readonly frame: FrameBytes;
  readonly finished: () => void;
}

export interface NodeRouteOptions {
  readonly node: NodeIndex;
  readonly generation: Generation;
  readonly wire: WireType;
  readonly sendToStage: (frame: FrameBytes) => void;
}

export class NodeRoute implements FrameSink {
  readonly #options: NodeRouteOptions;
  #edge: Edge | null = null;
  readonly #waiting: Entry[] = [];
  /** Called for frames that the stage has and has not finished, oldest first. */
  readonly #running: (() => void)[] = [];

  constructor(options: NodeRouteOptions) {
    this.#options = options;
  }

  leadTo(edge: Edge): void {
    this.#edge = edge;
    this.feed();
  }

  get edge(): Edge | null {
    return this.#edge;
  }

  /** @throws LINK_WINDOW_EXCEEDED when upstream does not keep to its window */
  accept(frame: FrameBytes, finished: () => void): void {
    // A decode that had to be split puts out a frame more than it took in: the bound leaves room for that.
    if (this.#waiting.length >= 2 * limits.linkWindowFrames) {
      throw new P4Error('LINK_WINDOW_EXCEEDED', { node: this.#options.node });
    }
    this.#waiting.push({ frame, finished });
    this.feed();
  }

  /** Gives the stage what it may have; called again whenever the edge behind it has moved. */
  feed(): void {
    while (this.#waiting.length > 0 && this.#mayFeed()) {
      const { frame, finished } = present(this.#waiting.shift(), 'a frame waits');
      this.#running.push(finished);
      this.#options.sendToStage(frame);
    }
  }

  /**
   * Takes what the stage put out and sends it on.
   * @throws GENERATION_MISMATCH or FRAME_INVALID when the stage is not the one this route belongs to
   */
  output(frame: FrameBytes): void {
    const header = decodeHeader(frame);
    const { generation, source, completes } = header;
    const { node } = this.#options;
    const edge = this.#edge;
    if (generation !== this.#options.generation) throw new P4Error('GENERATION_MISMATCH', { node });
    // A stage computes only when its node leads somewhere.
    if (source !== node || completes > this.#running.length || edge === null)
      throw new P4Error('FRAME_INVALID', { field: 'source', node });
    requireWire(header, this.#options.wire);
    edge.send(frame);
    for (const finished of this.#running.splice(0, completes)) finished();
    this.feed();
  }

  close(): void {
    this.#waiting.length = 0;
    this.#running.length = 0;
    this.#edge?.close();
    this.#edge = null;
  }

  #mayFeed(): boolean {
    const edge = this.#edge;
    if (edge === null) return false;
    const ahead = this.#running.length;
    return ahead < limits.nodeFrames && ahead + edge.unfinished < limits.linkWindowFrames;
  }
}
