/** The agent's end of a stage's control socket: questions with their answers, a load with its progress, the last word. */
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

import { unreachable } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { LengthPrefixReader, writeMessage } from '../../protocol/length-prefix.ts';
import { limits } from '../../protocol/limits.ts';
import { encodeStageJson, parseStageMessage } from '../../protocol/stage-control-codec.ts';
import {
  stageProtocolVersion,
  type StageCommand,
  type StageFacts,
  type StageLoad,
  type StageMessage,
  type StageWelcome,
} from '../../protocol/stage-control.ts';

export type StageAnswer = Extract<StageMessage, { readonly id: number }>;
type Question = Extract<StageCommand, { readonly id: number }>;

/** A question without its number; `kind` decides the rest. */
export type QuestionDraft = Question extends infer Each ? (Each extends Question ? Omit<Each, 'id'> : never) : never;

interface Waiting<Value> {
  readonly resolve: (value: Value) => void;
  readonly reject: (error: P4Error) => void;
}

interface WaitingLoad extends Waiting<StageFacts> {
  readonly onProgress: (fraction: number) => void;
}

export class ControlClient {
  readonly #socket: Socket;
  readonly #questions = new Map<number, Waiting<StageAnswer>>();
  readonly #onLost: (error: P4Error) => void;
  #lastId = 0;
  #load: WaitingLoad | null = null;
  #welcome: Waiting<StageWelcome> | null = null;
  #lost: P4Error | null = null;

  /** @param onLost told once, when the stage said that it dies or the socket closed */
  constructor(socket: Socket, onLost: (error: P4Error) => void) {
    this.#socket = socket;
    this.#onLost = onLost;
    const reader = new LengthPrefixReader(limits.controlMessageBytes);
    socket.on('data', (chunk: Buffer) => {
      try {
        for (const message of reader.push(chunk)) this.#hear(parseStageMessage(message));
      } catch (error) {
        if (!(error instanceof P4Error)) throw error;
        this.close(error);
      }
    });
    socket.on('error', (cause) => {
      this.close(new P4Error('STAGE_LOST', { socket: 'control', reason: cause.message }, cause));
    });
    socket.on('close', () => {
      this.close(new P4Error('STAGE_LOST', { socket: 'control', reason: 'closed' }));
    });
  }

  /** @throws STAGE_VERSION, STAGE_START when there is no answer in time, STAGE_LOST */
  async greet(): Promise<StageWelcome> {
    const welcome = await this.#within<StageWelcome>(limits.stageStartMs, 'STAGE_START', (waiting) => {
      this.#welcome = waiting;
      this.#say({ kind: 'hello', protocol: stageProtocolVersion });
    });
    if (welcome.protocol === stageProtocolVersion) return welcome;
    throw new P4Error('STAGE_VERSION', { found: welcome.protocol, expected: stageProtocolVersion });
  }

  /** @throws STAGE_HOLDS_LOAD, the stage's own reason, STAGE_LOST */
  load(load: StageLoad, onProgress: (fraction: number) => void): Promise<StageFacts> {
    if (this.#load !== null) return Promise.reject(new P4Error('STAGE_HOLDS_LOAD', {}));
    return this.#within<StageFacts>(limits.stageLoadMs, 'STAGE_LOST', (waiting) => {
      this.#load = { ...waiting, onProgress };
      this.#say({ kind: 'load', ...load });
    });
  }

  /** @throws what the stage refuses with; INVALID_ARGUMENT when the question is too long; STAGE_LOST */
  ask(draft: QuestionDraft): Promise<StageAnswer> {
    this.#lastId += 1;
    const id = this.#lastId;
    const question: Question = { ...draft, id };
    const bytes = encodeStageJson(question);
    if (bytes.length > limits.controlMessageBytes) {
      const expected = `at most ${limits.controlMessageBytes} bytes`;
      return Promise.reject(
        new P4Error('INVALID_ARGUMENT', { what: 'message to a stage', found: `${bytes.length} bytes`, expected }),
      );
    }
    const withinMs = draft.kind === 'report' ? limits.stageReportMs : limits.stageAnswerMs;
    const answered = this.#within<StageAnswer>(withinMs, 'STAGE_LOST', (waiting) => {
      this.#questions.set(id, waiting);
      writeMessage(this.#socket, bytes);
    });
    return answered.finally(() => this.#questions.delete(id));
  }

  stop(): void {
    if (this.#lost === null) this.#say({ kind: 'stop' });
  }

  /** Ends the connection; everything that waits is answered with `error`. */
  close(error: P4Error): void {
    if (this.#lost !== null) return;
    this.#lost = error;
    this.#socket.destroy();
    for (const waiting of [...this.#questions.values(), this.#load, this.#welcome]) waiting?.reject(error);
    this.#onLost(error);
  }

  #say(command: StageCommand): void {
    writeMessage(this.#socket, encodeStageJson(command));
  }

  async #within<Value>(
    ms: number,
    code: 'STAGE_START' | 'STAGE_LOST',
    begin: (waiting: Waiting<Value>) => void,
  ): Promise<Value> {
    if (this.#lost !== null) throw this.#lost;
    let deadline: NodeJS.Timeout | undefined;
    try {
      return await new Promise<Value>((resolve, reject) => {
        deadline = setTimeout(() => {
          reject(new P4Error(code, { reason: `no answer within ${ms} ms` }));
        }, ms);
        begin({ resolve, reject });
      });
    } finally {
      clearTimeout(deadline);
    }
  }

  #hear(message: StageMessage): void {
    switch (message.kind) {
      case 'welcome':
        this.#welcome?.resolve(message);
        return;
      case 'loading':
        this.#load?.onProgress(message.fraction);
        return;
      case 'loaded':
        this.#load?.resolve(message.facts);
        this.#load = null;
        return;
      case 'load-failed':
        this.#load?.reject(new P4Error(message.code, message.facts));
        this.#load = null;
        return;
      case 'refused':
        this.#questions.get(message.id)?.reject(new P4Error(message.code, message.facts));
        return;
      case 'vocabulary':
      case 'tokens':
      case 'report':
        this.#questions.get(message.id)?.resolve(message);
        return;
      case 'dying':
        this.close(new P4Error(message.code, message.facts));
        return;
      default:
        unreachable(message);
    }
  }
}

/** Longest pause between two attempts to reach a stage that is starting. */
const longestPauseMs = 100;

/**
 * Connects to a socket that a starting process makes at some moment.
 *
 * @param gone aborted when the process has ended; its reason is thrown
 * @throws STAGE_START when nobody listens within `limits.stageStartMs`
 */
export async function connectStarting(path: string, gone: AbortSignal): Promise<Socket> {
  const deadlineMs = performance.now() + limits.stageStartMs;
  for (let pauseMs = 5; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    gone.throwIfAborted();
    const attempt = await connectOnce(path);
    if (attempt.kind === 'connected') return attempt.socket;
    if (performance.now() > deadlineMs) {
      throw new P4Error('STAGE_START', { path, reason: attempt.cause.message }, attempt.cause);
    }
    await delay(pauseMs);
  }
}

export type ConnectAttempt =
  { readonly kind: 'connected'; readonly socket: Socket } | { readonly kind: 'failed'; readonly cause: Error };

export function connectOnce(path: string): Promise<ConnectAttempt> {
  return new Promise((resolve) => {
    const socket = connect({ path, noDelay: true });
    const fail = (cause: Error): void => {
      resolve({ kind: 'failed', cause });
    };
    socket.once('error', fail);
    socket.once('connect', () => {
      socket.off('error', fail);
      resolve({ kind: 'connected', socket });
    });
  });
}
