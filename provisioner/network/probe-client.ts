/** The operator's side of one probe program: orders out, answers in, each within its time. */
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { P4Error } from '../../protocol/errors.ts';
import type { HostName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { parseProbeAnswer, probeLine } from '../../protocol/probe-codec.ts';
import type {
  BurstOutcome,
  HostAddress,
  ProbeAnswer,
  ProbeOrder,
  ProbeTarget,
  ReachOutcome,
} from '../../protocol/probe-messages.ts';

/** A probe program that runs: on a host over ssh, or on the operator's machine. */
export interface ProbeProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly exited: Promise<{ readonly status: number | null; readonly stderr: string }>;
  /** Ends it, if its closed input has not. */
  end(): void;
}

export interface ProbeBeginning {
  readonly host: HostName;
  readonly process: ProbeProcess;
  readonly secret: string;
  readonly port: number;
  readonly signal: AbortSignal;
}

interface Waiting {
  readonly take: (answer: ProbeAnswer) => void;
  readonly fail: (error: Error) => void;
}

/** The answer to `begin` has no number. */
const beginId = 0;
const reachMs = limits.probeAnswerMs * (3 + limits.probePings) + limits.probeFrameMs + limits.answerMs;
const burstMs = 2 * (5 * limits.probeAnswerMs + limits.probeBurstMs) + limits.answerMs;

export class ProbeClient {
  readonly host: HostName;
  machineId = '';
  addresses: readonly HostAddress[] = [];
  readonly #process: ProbeProcess;
  /** Resolves when the program, or the way to it, is gone. */
  readonly #gone: Promise<void>;
  readonly #waiting = new Map<number, Waiting>();
  #nextId = beginId + 1;
  #fault: Error | null = null;

  private constructor({ host, process, signal }: ProbeBeginning) {
    this.host = host;
    this.#process = process;
    // The program may be gone when something is written to it; its end tells more.
    process.stdin.on('error', () => undefined);
    createInterface({ input: process.stdout }).on('line', (line) => {
      this.#take(line);
    });
    this.#gone = process.exited.then(
      ({ status, stderr }) => {
        this.#fail(new P4Error('PROBE_FAILED', { host, exit: status ?? 'unknown', said: lastLines(stderr) }));
      },
      (error: unknown) => {
        this.#fail(error instanceof Error ? error : new P4Error('PROBE_FAILED', { host }, error));
      },
    );
    const abort = (): void => {
      this.#fail(signal.reason instanceof Error ? signal.reason : new P4Error('CANCELLED', {}));
    };
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
  }

  /** @throws PROBE_FAILED, PROBE_PROTOCOL; the signal's reason */
  static async begin(order: ProbeBeginning): Promise<ProbeClient> {
    const client = new ProbeClient(order);
    const { host, secret, port } = order;
    try {
      const answer = await client.#ask({ kind: 'begin', host, secret, port }, beginId, limits.probeBeginMs);
      if (answer.kind !== 'began') throw client.#wrong(answer.kind);
      client.machineId = answer.machineId;
      client.addresses = answer.addresses;
      return client;
    } catch (error) {
      await client.end();
      throw error;
    }
  }

  /** @throws as `begin` */
  async reach(target: ProbeTarget): Promise<ReachOutcome> {
    const id = this.#nextId++;
    const answer = await this.#ask({ kind: 'reach', id, target }, id, reachMs);
    if (answer.kind !== 'reached') throw this.#wrong(answer.kind);
    return answer.outcome;
  }

  /** @throws as `begin` */
  async burst(target: ProbeTarget): Promise<BurstOutcome> {
    const id = this.#nextId++;
    const answer = await this.#ask({ kind: 'burst', id, target }, id, burstMs);
    if (answer.kind !== 'measured') throw this.#wrong(answer.kind);
    return answer.outcome;
  }

  /** Ends the program and waits until it is gone. */
  async end(): Promise<void> {
    this.#process.stdin.end();
    this.#process.stdout.resume();
    const force = setTimeout(() => {
      this.#process.end();
    }, limits.probeAnswerMs);
    await this.#gone;
    clearTimeout(force);
  }

  #ask(order: ProbeOrder, id: number, withinMs: number): Promise<ProbeAnswer> {
    const fault = this.#fault;
    if (fault !== null) return Promise.reject(fault);
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        this.#fail(new P4Error('PROBE_FAILED', { host: this.host, order: order.kind, waitedMs: withinMs }));
      }, withinMs);
      const ended = (): void => {
        clearTimeout(late);
        this.#waiting.delete(id);
      };
      this.#waiting.set(id, {
        take: (answer) => {
          ended();
          resolve(answer);
        },
        fail: (error) => {
          ended();
          reject(error);
        },
      });
      this.#process.stdin.write(probeLine(order));
    });
  }

  #take(line: string): void {
    try {
      const answer = parseProbeAnswer(line.slice(0, limits.probeLineBytes));
      if (answer.kind === 'failed') throw new P4Error('PROBE_FAILED', { host: this.host, said: answer.why });
      this.#waiting.get('id' in answer ? answer.id : beginId)?.take(answer);
    } catch (error) {
      if (!(error instanceof P4Error)) throw error;
      this.#fail(error.code === 'PROBE_PROTOCOL' ? this.#wrong('a line that is no answer') : error);
    }
  }

  /** Nothing more is to be had from this program: everybody who waits is told, and who asks later. */
  #fail(error: Error): void {
    this.#fault ??= error;
    for (const { fail } of [...this.#waiting.values()]) fail(this.#fault);
  }

  #wrong(found: string): P4Error {
    return new P4Error('PROBE_PROTOCOL', { host: this.host, found });
  }
}

const lastLines = (text: string): readonly string[] =>
  text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(-12)
    .map((line) => line.slice(0, 300));
