/**
 * A stage that is a unit of systemd, seen from its agent: by the files that the unit writes into the stage's folder, which
 * needs no right to ask systemd, and no bus.
 */
import { closeSync, openSync, readFileSync, readSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';

import { P4Error } from '../../protocol/errors.ts';
import type { NodeIndex, RingName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { FolderWatch } from './folder-watch.ts';
import { exitFileName, logFileName, pidFileName, removeStageFolder } from './stage-folder.ts';
import type { StageExit, StageHandle, StageSpec } from './stage-launcher.ts';
import type { StageOrders } from './stage-orders.ts';
import { StageWords } from './stage-words.ts';
import { endFacts, isInUnit, pidOf, unitEndOf, type UnitEnd } from './unit-files.ts';

/** What a unit is: of a former agent's, the node is not known yet. */
type UnitSpec = Pick<StageSpec, 'folder' | 'log'> & Partial<Pick<StageSpec, 'ring' | 'node'>>;

interface UnitParts {
  readonly spec: UnitSpec;
  readonly instance: string;
  readonly orders: StageOrders;
  /** It runs already, and what it has said so far was heard. */
  readonly isFormer?: boolean;
}

export class StageUnit implements StageHandle {
  readonly folder: string;
  readonly gone: AbortSignal;
  readonly exited: Promise<StageExit>;
  readonly #spec: UnitSpec;
  readonly #orders: StageOrders;
  readonly #instance: string;
  readonly #watch: FolderWatch;
  readonly #words: StageWords;
  readonly #gone = new AbortController();
  readonly #started = new Awaited<null>();
  readonly #exited = new Awaited<StageExit>();
  #logBytes = 0;
  #pid = 0;
  #isOver = false;

  /** Before the unit is ordered to start: nothing of it is missed. @throws STAGE_RUNTIME_FOLDER */
  constructor(parts: UnitParts) {
    this.#spec = parts.spec;
    this.#orders = parts.orders;
    this.#instance = parts.instance;
    this.folder = parts.spec.folder;
    this.gone = this.#gone.signal;
    this.exited = this.#exited.promise;
    this.#words = new StageWords(parts.spec.log);
    if (parts.isFormer === true) this.#logBytes = sizeOf(join(this.folder, logFileName));
    // An end before the start is also told by `started`; whoever waits for neither is no bug.
    this.#started.promise.catch(() => undefined);
    this.#watch = new FolderWatch(this.folder, () => {
      this.#look();
    });
  }

  get pid(): number {
    return this.#pid;
  }

  /**
   * Resolves when the unit has a process.
   * @throws STAGE_START when it ended before, or has none within `limits.stageStartMs`
   */
  async started(): Promise<void> {
    const late = setTimeout(() => {
      this.#started.reject(this.#startError({ reason: `no process within ${limits.stageStartMs} ms` }));
    }, limits.stageStartMs);
    this.#look();
    try {
      await this.#started.promise;
    } finally {
      clearTimeout(late);
    }
  }

  async stop(): Promise<StageExit> {
    if (this.#isOver) return this.exited;
    const force = setTimeout(() => {
      this.#force();
    }, limits.stageStopMs);
    try {
      await this.#orders.stop(this.#instance);
    } catch (error) {
      if (!(error instanceof P4Error)) throw error;
      // The agent may signal what runs as its own user, whatever its rights with systemd.
      this.#signal('SIGTERM');
    }
    const exit = await this.exited;
    clearTimeout(force);
    return exit;
  }

  release(): void {
    this.#isOver = true;
    this.#watch.close();
  }

  get #node(): { readonly ring?: RingName; readonly node?: NodeIndex } {
    const { ring, node } = this.#spec;
    return { ...(ring === undefined ? {} : { ring }), ...(node === undefined ? {} : { node }) };
  }

  #look(): void {
    if (this.#isOver) return;
    this.#relay();
    if (this.#pid === 0) this.#pid = pidOf(read(join(this.folder, pidFileName))) ?? 0;
    const end = unitEndOf(read(join(this.folder, exitFileName)));
    if (end !== null) this.#end(end);
    else if (this.#pid !== 0) this.#started.resolve(null);
  }

  #end(end: UnitEnd): void {
    this.release();
    this.#relay();
    this.#words.end();
    removeStageFolder(this.folder);
    const lastWords = this.#words.last;
    this.#started.reject(this.#startError({ ...endFacts(end), ...(lastWords.length === 0 ? {} : { lastWords }) }));
    this.#gone.abort(new P4Error('STAGE_LOST', { ...this.#node, ...endFacts(end) }));
    this.#exited.resolve({ status: end.status, signal: end.signal, lastWords });
  }

  /** The file is written behind its end, wherever that is: emptied, it begins anew. */
  #relay(): void {
    const path = join(this.folder, logFileName);
    const text = readFrom(path, this.#logBytes);
    if (text.length === 0) return;
    this.#logBytes += text.length;
    this.#words.hear(text.toString('utf8'));
    if (this.#logBytes < limits.stageLogBytes) return;
    truncateSync(path);
    this.#logBytes = 0;
  }

  /** Neither the stage nor systemd ended it in time. */
  #force(): void {
    if (this.#isOver) return;
    this.#signal('SIGKILL');
    setTimeout(() => {
      // Not even systemd tells of its end: then nobody will.
      if (!this.#isOver) this.#end({ result: 'unknown', status: null, signal: 'SIGKILL' });
    }, limits.stageExitMs).unref();
  }

  #signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    signalUnit(this.#pid, this.#orders.unit(this.#instance), signal);
  }

  #startError(facts: Readonly<Record<string, string | readonly string[]>>): P4Error {
    return new P4Error('STAGE_START', { ...this.#node, unit: this.#orders.unit(this.#instance), ...facts });
  }
}

/** A promise that is settled from outside, once. */
class Awaited<Value> {
  resolve: (value: Value) => void = () => undefined;
  reject: (error: P4Error) => void = () => undefined;
  readonly promise = new Promise<Value>((resolve, reject) => {
    this.resolve = resolve;
    this.reject = reject;
  });
}

/** Signals a process if it is the unit's: numbers are used again. @returns whether it was there */
export function signalUnit(pid: number, unit: string, signal: 'SIGTERM' | 'SIGKILL'): boolean {
  if (pid === 0 || !isInUnit(read(`/proc/${pid}/cgroup`), unit)) return false;
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    // It has just ended.
    return false;
  }
}

/** A file's text; nothing where there is none. */
export function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** At most as much as one look needs; the rest comes with the next change. */
const readBytes = 64 * 1024;

function readFrom(path: string, position: number): Buffer {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch {
    return Buffer.alloc(0);
  }
  try {
    const buffer = Buffer.alloc(readBytes);
    return buffer.subarray(0, readSync(file, buffer, 0, readBytes, position));
  } finally {
    closeSync(file);
  }
}
