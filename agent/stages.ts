/** The stage processes of this agent: starts, loads, asks and ends them, and tells `step` what became of each. */
import { join } from 'node:path';
import type { AgentConfig } from '../protocol/agent-config.ts';
import { present } from '../protocol/assert.ts';
import { P4Error } from '../protocol/errors.ts';
import type { LoadId, NodeIndex, TokenId } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import type { StageFacts, StageLoad, StageReport } from '../protocol/stage-control.ts';
import type { Effect, StartStage } from './effects.ts';
import { vocabularyFrom, type Vocabulary } from './head/vocabulary.ts';
import type { Input } from './inputs.ts';
import type { LoadWatch } from './load-watch.ts';
import type { Log } from './log.ts';
import type { FigureSource, StageFigures } from './metrics/stage-figures.ts';
import type { Rings } from './rings.ts';
import { StageConnection, type TokenizeOptions } from './stages/stage-connection.ts';
import type { StageExit, StageHandle, StageLauncher } from './stages/stage-launcher.ts';
import type { AgentState } from './state.ts';

export interface StagesOptions {
  readonly config: Pick<AgentConfig, 'runtimeFolder' | 'slicesFolder'>;
  readonly launcher: StageLauncher;
  readonly rings: Rings;
  readonly watch: LoadWatch;
  readonly state: () => AgentState;
  readonly dispatch: (input: Input) => void;
  readonly log: Log;
}

export interface StageAddress {
  readonly load: LoadId;
  readonly node: NodeIndex;
}

/** One start of a stage; `stopping` from the moment that its end is wanted. */
interface Running {
  readonly start: StartStage;
  handle: StageHandle | null;
  connection: StageConnection | null;
  /** What its load told of it. */
  facts: StageFacts | null;
  /** Of the head, once it was asked. */
  vocabulary: Vocabulary | null;
  stopping: boolean;
  /** Questions in a row that it did not answer. */
  silent: number;
  /** Share of its weights that are loaded. */
  loaded: number;
  /** Its latest figures. */
  report: StageFigures['report'];
  /** A question for figures that is on its way. */
  asking: Promise<void> | null;
}

/** A stage of a former agent that lives and holds what it is to hold. */
export interface FormerStage {
  readonly start: StartStage;
  readonly handle: StageHandle;
  readonly facts: StageFacts;
}

export class Stages implements FigureSource {
  readonly #options: StagesOptions;
  /** By incarnation. */
  readonly #running = new Map<number, Running>();
  /** Starts that were taken back before they came: a start waits for its record, a stop does not. */
  readonly #unwanted = new Set<number>();
  readonly #heartbeat: NodeJS.Timeout;

  constructor(options: StagesOptions) {
    this.#options = options;
    this.#heartbeat = setInterval(() => {
      for (const running of this.#running.values()) void this.#listen(running);
    }, limits.stageHeartbeatMs).unref();
  }

  start(effect: StartStage): void {
    if (this.#unwanted.delete(effect.incarnation)) {
      const { ring, load, node } = effect.order;
      this.#options.dispatch({ kind: 'stage-stopped', ring, load, node, incarnation: effect.incarnation });
      return;
    }
    const running = newRunning(effect);
    this.#running.set(effect.incarnation, running);
    this.#bringUp(running).catch((error: unknown) => {
      this.#lost(running, error);
    });
  }

  /** Takes up a stage of a former agent; it is attached when `step` wants it (R2). */
  adopt({ start, handle, facts }: FormerStage): void {
    const running = { ...newRunning(start), handle, facts };
    this.#running.set(start.incarnation, running);
    this.#watchExit(running);
  }

  /** Empties a stage that lives by a new connection, and tells `step` when it takes frames again. */
  attach({ incarnation }: Extract<Effect, { kind: 'attach-stage' }>): void {
    const running = this.#running.get(incarnation);
    if (running === undefined || running.stopping) return;
    this.#connect(running)
      .then(() => this.#attach(running))
      .catch((error: unknown) => {
        this.#lost(running, error);
      });
  }

  stop({ incarnation }: Extract<Effect, { kind: 'stop-stage' }>): void {
    const running = this.#running.get(incarnation);
    if (running === undefined) {
      this.#unwanted.add(incarnation);
      return;
    }
    running.stopping = true;
    void this.#end(running);
  }

  /** The agent ends: its stages end with it, and are gone when this resolves, or live on without it. */
  async leave(): Promise<void> {
    clearInterval(this.#heartbeat);
    const { outlivesAgent } = this.#options.launcher;
    const all = [...this.#running.values()];
    for (const running of all) running.stopping = true;
    if (!outlivesAgent) await Promise.all(all.map((running) => this.#end(running)));
    else for (const running of all) this.#release(running);
  }

  /** @throws STAGE_LOST, TOKENIZER_ABSENT and what else the stage refuses a text with */
  tokenize(of: StageAddress, { text, ...options }: { text: string } & TokenizeOptions): Promise<readonly TokenId[]> {
    return this.#connectionOf(of).tokenize(text, options);
  }

  /** How long the stage has not answered, in milliseconds; 0 for one that does, or that missed one question alone. */
  silentMs(of: StageAddress): number {
    const silent = this.#standing(of)?.silent ?? 0;
    return silent >= limits.stageSilencesTold ? silent * limits.stageHeartbeatMs : 0;
  }

  /** `null` when the stage does not answer. */
  async report(of: StageAddress): Promise<StageReport | null> {
    try {
      return await this.#connectionOf(of).report();
    } catch (error) {
      if (error instanceof P4Error) return null;
      throw error;
    }
  }

  async ask(): Promise<void> {
    await Promise.all([...this.#running.values()].map((running) => this.#ask(running)));
  }

  figures(): readonly StageFigures[] {
    return [...this.#running.values()]
      .filter(({ stopping }) => !stopping)
      .map(({ start, facts, loaded, report }) => {
        const { load, node } = start.order;
        return { load, node, facts, loaded: facts === null ? loaded : 1, report };
      });
  }

  /** One question at a time: a stage that hangs is asked once. */
  #ask(running: Running): Promise<void> {
    if (running.asking !== null) return running.asking;
    const { connection, facts, stopping } = running;
    if (connection === null || facts === null || stopping) return Promise.resolve();
    running.asking = this.#answered(running, connection).finally(() => {
      running.asking = null;
    });
    return running.asking;
  }

  async #answered(running: Running, connection: StageConnection): Promise<void> {
    try {
      running.report = { values: await connection.report(), atMs: performance.now() };
    } catch (error) {
      if (!(error instanceof P4Error)) throw error;
    }
  }

  async #bringUp(running: Running): Promise<void> {
    const { launcher, watch, config } = this.#options;
    const { order, incarnation } = running.start;
    const { ring, load, node } = order;
    const tell = (phase: string, fraction: number): void => {
      running.loaded = fraction;
      watch.tell(load, { node, phase, fraction, pid: running.handle?.pid ?? 0 });
    };
    tell('starting', 0);
    const folder = join(config.runtimeFolder, `${load.slice(0, 8)}.${node}.${incarnation}`);
    const handle = await launcher.start({
      ring,
      node,
      folder,
      log: (line) => {
        this.#relay(running, line);
      },
    });
    running.handle = handle;
    if (running.stopping) return this.#end(running);
    const connection = await this.#connect(running);
    this.#watchExit(running);
    running.facts = await connection.load(this.#loadOf(running.start), (fraction) => {
      tell('loading', fraction);
    });
    await this.#attach(running);
    tell('loaded', 1);
  }

  /** The connection with a stage that runs, opened if it is not. */
  async #connect(running: Running): Promise<StageConnection> {
    if (running.connection !== null) return running.connection;
    const { folder, gone } = present(running.handle, 'a stage runs before it is connected');
    const onLost = (error: P4Error): void => {
      this.#disconnected(running, error);
    };
    running.connection = await StageConnection.open({ folder, gone, onLost });
    return running.connection;
  }

  #watchExit(running: Running): void {
    void present(running.handle, 'a stage runs before it ends').exited.then((exit) => {
      this.#lost(running, exitError(exit));
    });
  }

  async #attach(running: Running): Promise<void> {
    const { ring, load, node, stage } = running.start.order;
    const connection = present(running.connection, 'a stage is connected before it is attached');
    await connection.attach({ ring, node, generation: stage.generation }, (frame) => {
      this.#options.rings.output(load, node, frame);
    });
    if (node === 0) {
      const facts = present(running.facts, 'a stage has loaded before it is attached');
      running.vocabulary ??= await readVocabulary(connection, facts);
    }
    this.#enter(running);
  }

  /** The stage is up: frames may come its way, and `step` is told. */
  #enter(running: Running): void {
    const { rings, state, dispatch } = this.#options;
    const { order, incarnation } = running.start;
    const { ring, load, node } = order;
    const live = state().rings.get(ring);
    if (running.stopping || live?.kind !== 'live' || live.load !== load) return;
    const connection = present(running.connection, 'a stage is connected before it is entered');
    rings.routesOf(live).addStage(node, (frame) => {
      connection.sendFrame(frame);
    });
    const pid = present(running.handle, 'a stage runs before it is entered').pid;
    const { vocabulary } = running;
    const { keepsPrefixes } = present(running.facts, 'a stage has loaded before it is entered');
    const atMs = performance.now();
    dispatch({ kind: 'stage-loaded', ring, load, node, incarnation, pid, vocabulary, keepsPrefixes, atMs });
  }

  /** A stage answers whatever it computes. One that does not, for long, will not come back: it is ended as if it had died. */
  async #listen(running: Running): Promise<void> {
    if (running.connection === null || running.facts === null || running.stopping) return;
    try {
      await running.connection.report();
      running.silent = 0;
    } catch (error) {
      if (!(error instanceof P4Error)) throw error;
      running.silent += 1;
      if (running.silent < limits.stageSilences) return;
      this.#lost(running, new P4Error('STAGE_LOST', { reason: 'it does not answer', silences: running.silent }));
    }
  }

  #loadOf({ order }: StartStage): StageLoad {
    return { ...order.stage, slicePath: join(this.#options.config.slicesFolder, `${order.stage.sliceId}.gguf`) };
  }

  /** A socket closed. Most often the process has ended, and how it did says more: that news comes in a moment. */
  #disconnected(running: Running, error: P4Error): void {
    const tell = (): void => {
      this.#lost(running, error);
    };
    if (error.code === 'STAGE_LOST') setTimeout(tell, limits.stageExitMs);
    else tell();
  }

  /** News of a stage's end by itself; its process is ended too if it still runs. Only the first news counts. */
  #lost(running: Running, error: unknown): void {
    const { order, incarnation } = running.start;
    if (!(error instanceof P4Error)) throw error;
    if (running.stopping) return;
    running.stopping = true;
    const { ring, load, node } = order;
    const host = this.#options.state().host;
    this.#options.log({ event: 'stage-lost', ring, node, code: error.code });
    const named = new P4Error(error.code, { ...error.facts, ring, node, host }, error);
    void this.#end(running);
    this.#options.dispatch({
      kind: 'stage-lost',
      ring,
      load,
      node,
      incarnation,
      error: named,
      atMs: performance.now(),
    });
  }

  /** Ends the process, if there is one, and says so once. */
  async #end(running: Running): Promise<void> {
    const { order, incarnation } = running.start;
    running.connection?.stop();
    running.connection?.close();
    await running.handle?.stop();
    if (!this.#running.delete(incarnation)) return;
    const { ring, load, node } = order;
    this.#options.log({ event: 'stage-stopped', ring, node });
    this.#options.dispatch({ kind: 'stage-stopped', ring, load, node, incarnation });
  }

  #release({ start: { order }, connection, handle }: Running): void {
    connection?.close();
    handle?.release();
    this.#options.log({ event: 'stage-left', ring: order.ring, node: order.node });
  }

  #connectionOf(of: StageAddress): StageConnection {
    const connection = this.#standing(of)?.connection ?? null;
    if (connection !== null) return connection;
    throw new P4Error('STAGE_LOST', { node: of.node, host: this.#options.state().host });
  }

  /** The start of the stage that has loaded and is to stay; one that loads still holds nothing that it could be asked for. */
  #standing({ load, node }: StageAddress): Running | undefined {
    return [...this.#running.values()].find(
      ({ start: { order }, facts, stopping }) =>
        order.load === load && order.node === node && facts !== null && !stopping,
    );
  }

  #relay(running: Running, line: Parameters<Parameters<StageLauncher['start']>[0]['log']>[0]): void {
    const { ring, node } = running.start.order;
    const said = line.kind === 'text' ? line.text : JSON.stringify(line.record);
    this.#options.log({ event: 'stage-said', ring, node, said });
  }
}

const newRunning = (start: StartStage): Running => ({
  start,
  handle: null,
  connection: null,
  facts: null,
  vocabulary: null,
  stopping: false,
  silent: 0,
  loaded: 0,
  report: null,
  asking: null,
});

/** What a library said on its way to abort is worth telling; the stage's own log is in the agent's. */
function exitError({ status, signal, lastWords }: StageExit): P4Error {
  const said = lastWords.filter((line) => !line.startsWith('{'));
  return new P4Error('STAGE_LOST', {
    exit: signal ?? `status ${String(status)}`,
    ...(said.length === 0 ? {} : { lastWords: said }),
  });
}

/** A model without a tokenizer still has token ids: they have no text. */
async function readVocabulary(connection: StageConnection, facts: StageFacts): Promise<Vocabulary> {
  if (facts.hasTokenizer) return vocabularyFrom(await connection.vocabulary());
  return { size: facts.vocabularySize, piece: () => new Uint8Array(0), endsGeneration: () => false };
}
