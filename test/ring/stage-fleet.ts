/** For tests: real stage processes over slices of the stories model, and their agent's end of every socket. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ChildLauncher } from '../../agent/stages/child-launcher.ts';
import { StageConnection } from '../../agent/stages/stage-connection.ts';
import type { StageHandle, StageLine } from '../../agent/stages/stage-launcher.ts';
import { openModel } from '../../model/model-file.ts';
import { hashModel } from '../../model/model-hash.ts';
import { cutSlice } from '../../model/slice-cutter.ts';
import { planSlice } from '../../model/slice-plan.ts';
import { present } from '../../protocol/assert.ts';
import type { P4Error } from '../../protocol/errors.ts';
import { decodeFrame, encodeFrame, type Frame } from '../../protocol/hop-frame.ts';
import { nodeIndex, ringName } from '../../protocol/ids.ts';
import type { StageFacts, StageLoad } from '../../protocol/stage-control.ts';
import { testGeneration } from '../../stage/core-fixture.ts';
import { storiesPath } from '../../stage/engine-fixture.ts';

/** Longest wait for a frame; a decode of the stories model takes milliseconds. */
const frameMs = 20_000;

export interface StageFleet {
  readonly folder: string;
  readonly stages: readonly FleetStage[];
  /** Sends a frame through every stage in turn; what the tail answers. */
  round(frame: Frame): Promise<Frame>;
  stop(): Promise<void>;
}

/** @param cuts the first layer of each stage but the first */
export async function startFleet(cuts: readonly number[], change: Partial<StageLoad> = {}): Promise<StageFleet> {
  const folder = mkdtempSync(join(tmpdir(), 'p4-fleet-'));
  const stages: FleetStage[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(stages.map((stage) => stage.stop()));
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    for (const load of await planLoads(folder, cuts))
      stages.push(await FleetStage.start(folder, { ...load, ...change }));
    for (const stage of stages) await stage.load();
  } catch (error) {
    await stop();
    throw error;
  }
  const round = async (frame: Frame): Promise<Frame> => {
    let bytes: Uint8Array<ArrayBuffer> = encodeFrame(frame);
    for (const stage of stages) bytes = await stage.answer(bytes);
    return decodeFrame(bytes);
  };
  return { folder, stages, stop, round };
}

/** One stage process. */
export class FleetStage {
  readonly handle: StageHandle;
  readonly lines: readonly StageLine[];
  readonly order: StageLoad;
  readonly losses: P4Error[] = [];
  readonly #frames: Uint8Array<ArrayBuffer>[] = [];
  #connection: StageConnection | null = null;
  #wake: () => void = () => undefined;

  private constructor(handle: StageHandle, lines: readonly StageLine[], order: StageLoad) {
    this.handle = handle;
    this.lines = lines;
    this.order = order;
  }

  static async start(parent: string, order: StageLoad, own?: string): Promise<FleetStage> {
    const { ring, node } = order;
    const folder = own ?? join(parent, `${ring}.${node}`);
    const lines: StageLine[] = [];
    const log = (line: StageLine): void => {
      lines.push(line);
    };
    const handle = await new ChildLauncher().start({ ring, node, folder, log });
    const stage = new FleetStage(handle, lines, order);
    try {
      await stage.connect();
    } catch (error) {
      await handle.stop();
      throw error;
    }
    return stage;
  }

  get connection(): StageConnection {
    return present(this.#connection, 'the stage is connected');
  }

  /** Connects as an agent does that has just started. */
  async connect(): Promise<StageConnection> {
    this.#connection = await StageConnection.open({
      folder: this.handle.folder,
      gone: this.handle.gone,
      onLost: (error) => {
        this.losses.push(error);
        this.#wake();
      },
    });
    return this.#connection;
  }

  async load(): Promise<StageFacts> {
    const facts = await this.connection.load(this.order, () => undefined);
    await this.attach();
    return facts;
  }

  attach(change: Partial<StageLoad> = {}): Promise<void> {
    const connection = this.connection;
    return connection.attach({ ...this.order, ...change }, (frame) => {
      if (connection !== this.#connection) return;
      this.#frames.push(frame);
      this.#wake();
    });
  }

  /** New connections, as after a loss elsewhere in the ring: the stage begins anew and keeps its weights. */
  async reattach(): Promise<void> {
    await this.connect();
    this.#frames.length = 0;
    await this.attach();
    // The former ones are closed by the stage.
    await this.awaitLoss();
    this.losses.length = 0;
  }

  /** Sends frames and waits until all are finished; what came of them. */
  async run(frames: readonly Uint8Array[]): Promise<Uint8Array<ArrayBuffer>[]> {
    for (const frame of frames) this.connection.sendFrame(frame);
    const found: Uint8Array<ArrayBuffer>[] = [];
    let finished = 0;
    while (finished < frames.length) {
      const frame = await this.nextFrame();
      finished += decodeFrame(frame).completes;
      found.push(frame);
    }
    return found;
  }

  async answer(frame: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
    this.connection.sendFrame(frame);
    return await this.nextFrame();
  }

  /** The next frame that the stage has answered. */
  async nextFrame(): Promise<Uint8Array<ArrayBuffer>> {
    await this.until(() => this.#frames.length > 0 || this.losses.length > 0);
    const frame = this.#frames.shift();
    if (frame === undefined) throw present(this.losses[0], 'no frame only when the stage is lost');
    return frame;
  }

  async awaitLoss(): Promise<P4Error> {
    await this.until(() => this.losses.length > 0);
    return present(this.losses[0], 'the stage is lost');
  }

  async stop(): Promise<void> {
    this.#connection?.close();
    await this.handle.stop();
  }

  /** Waits for something that a frame or a loss brings. */
  async until(isTrue: () => boolean): Promise<void> {
    const endsAtMs = performance.now() + frameMs;
    while (!isTrue()) {
      const leftMs = endsAtMs - performance.now();
      if (leftMs <= 0) throw new Error(`nothing came within ${String(frameMs)} ms`);
      await new Promise<void>((resolve) => {
        const deadline = setTimeout(resolve, leftMs);
        this.#wake = () => {
          clearTimeout(deadline);
          resolve();
        };
      });
    }
  }
}

async function planLoads(folder: string, cuts: readonly number[]): Promise<StageLoad[]> {
  const model = await openModel(storiesPath);
  const hash = await hashModel(model);
  const firsts = [0, ...cuts];
  const loads = firsts.map(async (first, index): Promise<StageLoad> => {
    const layers = { first, last: (firsts[index + 1] ?? model.layers) - 1 };
    const slice = await cutSlice({ model, plan: planSlice(model, hash, layers), folder: join(folder, 'slices') });
    return {
      ring: ringName('test'),
      node: nodeIndex(index),
      stages: firsts.length,
      generation: testGeneration.toString(),
      slicePath: slice.path,
      sliceId: slice.id,
      layers,
      modelLayers: model.layers,
      contextTokens: 192,
      sessions: 4,
      keptPrefixes: 2,
      kv: { keys: 'f16', values: 'f16' },
      decode: 'fast',
      wire: 'f32',
      device: { kind: 'cpu' },
      threads: 1,
    };
  });
  return await Promise.all(loads);
}
