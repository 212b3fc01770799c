/**
 * Where a node's frames go: to the next node of this agent by a function call (E2), over a link to another agent, or
 * back to the head's decisions.
 *
 * Every edge has a window (E4): what it was given and the far side has not finished counts against it.
 */
import { decodeFrame, decodeHeader, type Frame } from '../../protocol/hop-frame.ts';
import type { LoadId } from '../../protocol/ids.ts';
import type { Link } from '../links/link.ts';
import type { HopTrail } from '../records.ts';

export type FrameBytes = Uint8Array<ArrayBuffer>;

/** What came all the way round. */
export type HomeFrame = Pick<Frame, 'items' | 'slowest'>;

export interface Edge {
  /** Frames given to the edge that its far side has not finished. */
  readonly unfinished: number;
  send(frame: FrameBytes): void;
  close(): void;
}

/** Takes frames in and says when each is finished: the next node. */
export interface FrameSink {
  accept(frame: FrameBytes, finished: () => void): void;
}

export class LocalEdge implements Edge {
  unfinished = 0;
  readonly #next: FrameSink;
  readonly #moved: () => void;

  /** `moved` is called whenever the window has room again. */
  constructor(next: FrameSink, moved: () => void) {
    this.#next = next;
    this.#moved = moved;
  }

  send(frame: FrameBytes): void {
    this.unfinished++;
    this.#next.accept(frame, () => {
      this.unfinished--;
      this.#moved();
    });
  }

  close(): void {
    this.unfinished = 0;
  }
}

export class RemoteEdge implements Edge {
  unfinished = 0;
  readonly link: Link;
  readonly #load: LoadId;
  readonly #trail: (hop: HopTrail) => void;
  #number = 0n;

  constructor(link: Link, load: LoadId, trail: (hop: HopTrail) => void) {
    this.link = link;
    this.#load = load;
    this.#trail = trail;
  }

  send(frame: FrameBytes): void {
    this.unfinished++;
    this.#number++;
    const { rows } = decodeHeader(frame);
    const bytes = frame.length;
    const crc32c = this.link.send(frame);
    const { source: from, destination: to } = this.link.edge;
    this.#trail({ load: this.#load, from, to, frame: this.#number, rows, bytes, crc32c });
  }

  acknowledged(count: number): void {
    this.unfinished -= count;
  }

  close(): void {
    this.link.close();
  }
}

/** From the tail to the head's decisions on the same agent: finished as soon as it is told. */
export class ReturnEdge implements Edge {
  readonly unfinished = 0;
  readonly #returned: (home: HomeFrame) => void;

  constructor(returned: (home: HomeFrame) => void) {
    this.#returned = returned;
  }

  send(frame: FrameBytes): void {
    this.#returned(decodeFrame(frame));
  }

  close(): void {
    // Nothing is held.
  }
}
