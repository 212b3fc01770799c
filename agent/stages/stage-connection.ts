/**
 * An agent's connection with one stage process: both of its sockets.
 *
 * `onLost` is told once: when the stage dies, closes a socket or contradicts the protocol, but not after `close`.
 */
import { join } from 'node:path';

import { assert } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { TokenId } from '../../protocol/ids.ts';
import {
  controlSocketName,
  dataSocketName,
  stageProtocolVersion,
  type DataHello,
  type StageFacts,
  type StageLoad,
  type StageReport,
  type StageWelcome,
  type VocabularyTable,
} from '../../protocol/stage-control.ts';
import { connectStarting, ControlClient } from './control-client.ts';
import { FrameClient } from './frame-client.ts';

export interface StageConnectionOptions {
  /** The stage's own folder. */
  readonly folder: string;
  /** Aborted when the stage's process has ended. */
  readonly gone: AbortSignal;
  readonly onLost: (error: P4Error) => void;
}

export interface TokenizeOptions {
  readonly addSpecial: boolean;
  readonly parseSpecial: boolean;
}

export class StageConnection {
  readonly welcome: StageWelcome;
  readonly #folder: string;
  readonly #control: ControlClient;
  readonly #lose: (error: P4Error) => void;
  #data: FrameClient | null = null;

  private constructor(parts: {
    readonly welcome: StageWelcome;
    readonly folder: string;
    readonly control: ControlClient;
    readonly lose: (error: P4Error) => void;
  }) {
    this.welcome = parts.welcome;
    this.#folder = parts.folder;
    this.#control = parts.control;
    this.#lose = parts.lose;
  }

  /**
   * Connects to a stage that runs or is starting.
   *
   * @throws STAGE_START when it does not answer in time, STAGE_VERSION, STAGE_LOST, the reason of `gone`
   */
  static async open({ folder, gone, onLost }: StageConnectionOptions): Promise<StageConnection> {
    const socket = await connectStarting(join(folder, controlSocketName), gone);
    let connection: StageConnection | null = null;
    let isLost = false;
    const lose = (error: P4Error): void => {
      // Before it is open, the failure is the caller's exception; after, the first one counts.
      if (connection === null || isLost) return;
      isLost = true;
      connection.#end(error);
      if (error !== closedByUs) onLost(error);
    };
    const control = new ControlClient(socket, lose);
    try {
      const welcome = await control.greet();
      connection = new StageConnection({ welcome, folder, control, lose });
      return connection;
    } catch (error) {
      control.close(closedByUs);
      throw error;
    }
  }

  /**
   * Loads a slice; then the stage takes frames.
   *
   * @param onProgress told fractions from 0 to 1
   * @throws STAGE_HOLDS_LOAD, SLICE_MISMATCH, what the model's and the engine's files throw, STAGE_LOST
   */
  load(load: StageLoad, onProgress: (fraction: number) => void): Promise<StageFacts> {
    return this.#control.load(load, onProgress);
  }

  /**
   * Opens the data socket anew; the stage begins without leases. Another connection that was open to it is closed, and
   * nothing that the stage sent on it is told any more.
   *
   * @param onFrame told each frame of the stage, in order
   * @throws GENERATION_MISMATCH, STAGE_OF_ANOTHER_NODE, STAGE_VERSION, STAGE_LOST
   */
  async attach(hello: Omit<DataHello, 'protocol'>, onFrame: (frame: Uint8Array<ArrayBuffer>) => void): Promise<void> {
    this.#data?.close();
    this.#data = null;
    const { ring, node, generation } = hello;
    this.#data = await FrameClient.open(
      join(this.#folder, dataSocketName),
      { protocol: stageProtocolVersion, ring, node, generation },
      { frame: onFrame, lost: this.#lose },
    );
  }

  /** Takes the frame's bytes; the caller does not touch them again. */
  sendFrame(frame: Uint8Array): void {
    assert(this.#data !== null, 'the data socket is open');
    this.#data.send(frame);
  }

  /** @throws TOKENIZER_ABSENT, INVALID_ARGUMENT for a text too long, PROMPT_TOO_LONG, STAGE_EMPTY, STAGE_LOST */
  async tokenize(text: string, { addSpecial, parseSpecial }: TokenizeOptions): Promise<readonly TokenId[]> {
    const answer = await this.#control.ask({ kind: 'tokenize', text, addSpecial, parseSpecial });
    if (answer.kind !== 'tokens') throw unexpected('tokens', answer.kind);
    return answer.tokens;
  }

  /** @throws TOKENIZER_ABSENT, STAGE_EMPTY, STAGE_LOST */
  async vocabulary(): Promise<VocabularyTable> {
    const answer = await this.#control.ask({ kind: 'vocabulary' });
    if (answer.kind !== 'vocabulary') throw unexpected('vocabulary', answer.kind);
    return answer;
  }

  /** @throws STAGE_EMPTY, STAGE_LOST */
  async report(): Promise<StageReport> {
    const answer = await this.#control.ask({ kind: 'report' });
    if (answer.kind !== 'report') throw unexpected('report', answer.kind);
    return answer;
  }

  /** Tells the stage to end; `onLost` is not told of it when `close` follows. */
  stop(): void {
    this.#control.stop();
  }

  /** Closes both sockets; the stage lives on. */
  close(): void {
    this.#lose(closedByUs);
  }

  #end(error: P4Error): void {
    this.#data?.close();
    this.#control.close(error);
  }
}

const closedByUs = new P4Error('STAGE_LOST', { reason: 'closed by its agent' });

const unexpected = (expected: string, found: string): P4Error =>
  new P4Error('STAGE_PROTOCOL', { what: 'answer', found, expected });
