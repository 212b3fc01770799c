/** The stages of one agent process, as `agent/stages.ts` has them: started, attached, ended, and told of. */
import type { Effect, StartStage } from '../../agent/effects.ts';
import type { Vocabulary } from '../../agent/head/vocabulary.ts';
import type { Input } from '../../agent/inputs.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { Frame } from '../../protocol/hop-frame.ts';
import type { LoadId, NodeIndex } from '../../protocol/ids.ts';
import { assert } from '../../protocol/assert.ts';
import { limits } from '../../protocol/limits.ts';
import type { SeededRandom } from './seeded-random.ts';
import { endToken, vocabularySize } from './toy-model.ts';
import type { StageSink, ToyStage } from './toy-stage.ts';

export interface StagesOutside {
  readonly random: SeededRandom;
  readonly nowMs: () => number;
  /** Starts a process on this host. */
  readonly spawn: (start: StartStage) => ToyStage;
  readonly dispatch: (input: Input) => void;
  readonly doublesOneIn: number;
  readonly hear: (news: () => void) => void;
  readonly after: (ms: number, run: () => void) => void;
  /** Whether the load is live here; then the stage's frames get a way. */
  readonly enter: (load: LoadId, node: NodeIndex, send: (frame: Frame) => void) => boolean;
  readonly output: (load: LoadId, node: NodeIndex, frame: Frame) => void;
}

interface Running {
  readonly stage: ToyStage;
  sink: StageSink | null;
  isStopping: boolean;
}

/** Every token is a letter and a bit; three bytes make one character now and then. */
export const toyVocabulary: Vocabulary = {
  size: vocabularySize,
  piece: (token) =>
    token === endToken ? new Uint8Array(0) : Buffer.from(String.fromCodePoint(0x60 + (token % 26) + 1)),
  endsGeneration: (token) => token === endToken,
};

export class StagesModel {
  readonly #outside: StagesOutside;
  /** By number of the start, as production has them: none is used twice. */
  readonly #running = new Map<number, Running>();
  /** Starts wait for the journal, stops do not: those that were stopped before they began. */
  readonly #stoppedEarly = new Set<number>();

  constructor(outside: StagesOutside) {
    this.#outside = outside;
  }

  start(effect: StartStage): void {
    const { spawn, hear, dispatch } = this.#outside;
    if (this.#stoppedEarly.delete(effect.incarnation)) {
      const { ring, load, node } = effect.order;
      dispatch({ kind: 'stage-stopped', ring, load, node, incarnation: effect.incarnation });
      return;
    }
    const running = this.#watched(spawn(effect));
    running.stage.begin(() => {
      hear(() => {
        if (!running.isStopping) this.#attach(running);
      });
    });
  }

  /** A stage that a former agent process started. */
  adopt(stage: ToyStage): void {
    this.#watched(stage);
  }

  attach({ incarnation }: Extract<Effect, { kind: 'attach-stage' }>): void {
    const running = this.#running.get(incarnation);
    if (running === undefined || running.isStopping) return;
    if (running.stage.life === 'dead') this.#lost(running, new P4Error('STAGE_LOST', {}));
    else this.#attach(running);
  }

  stop({ incarnation }: Extract<Effect, { kind: 'stop-stage' }>): void {
    const running = this.#running.get(incarnation);
    if (running === undefined) this.#stoppedEarly.add(incarnation);
    else if (!running.isStopping) this.#end(running);
  }

  #watched(stage: ToyStage): Running {
    const running: Running = { stage, sink: null, isStopping: false };
    assert(!this.#running.has(stage.incarnation), 'the number of a start is used once');
    this.#running.set(stage.incarnation, running);
    stage.watch((error) => {
      const { after, random } = this.#outside;
      after(random.between(0, random.oneIn(3) ? limits.stageExitMs : 5), () => {
        this.#lost(running, error);
      });
    });
    return running;
  }

  #attach(running: Running): void {
    const { stage } = running;
    const { hear, after, output } = this.#outside;
    const { load, node } = stage.order;
    const sink: StageSink = {
      output: (frame) => {
        hear(() => {
          if (running.sink === sink) output(load, node, frame);
        });
      },
    };
    running.sink = sink;
    let isAttached = false;
    stage.attach(sink, () => {
      hear(() => {
        isAttached = true;
        if (running.sink === sink && !running.isStopping) this.#enter(running, sink);
      });
    });
    after(limits.stageAnswerMs, () => {
      if (!isAttached && running.sink === sink) this.#lost(running, new P4Error('STAGE_LOST', { why: 'no answer' }));
    });
    this.#listen(running, sink);
  }

  /** One that does not answer for long is ended as if it had died. */
  #listen(running: Running, sink: StageSink): void {
    this.#outside.after(limits.stageHeartbeatMs * limits.stageSilences, () => {
      if (running.sink !== sink || running.isStopping) return;
      const silentMs = running.stage.silentForMs;
      if (silentMs < limits.stageHeartbeatMs * (limits.stageSilences - 1)) this.#listen(running, sink);
      else this.#lost(running, new P4Error('STAGE_LOST', { why: 'it does not answer' }));
    });
  }

  #enter({ stage }: Running, sink: StageSink): void {
    const { enter } = this.#outside;
    const { ring, load, node } = stage.order;
    const isLive = enter(load, node, (frame) => {
      stage.accept(frame, sink);
    });
    if (!isLive) return;
    const { incarnation } = stage;
    const vocabulary = node === 0 ? toyVocabulary : null;
    const atMs = this.#outside.nowMs();
    const loaded = { incarnation, pid: incarnation, vocabulary, keepsPrefixes: true, atMs };
    this.#tell({ kind: 'stage-loaded', ring, load, node, ...loaded });
  }

  #lost(running: Running, error: P4Error): void {
    if (running.isStopping) return;
    const { nowMs } = this.#outside;
    const { stage } = running;
    const { ring, load, node } = stage.order;
    const named = new P4Error(error.code, { ...error.facts, ring, node, host: stage.host });
    this.#end(running);
    this.#tell({ kind: 'stage-lost', ring, load, node, incarnation: stage.incarnation, error: named, atMs: nowMs() });
  }

  #end(running: Running): void {
    const { after, random } = this.#outside;
    const { stage } = running;
    running.isStopping = true;
    running.sink = null;
    // It ends its decode first; one that does not, or is not scheduled, is killed in the end.
    const isSlow = random.oneIn(4) || stage.silentForMs > 0;
    after(isSlow ? random.between(40, limits.stageStopMs) : random.between(2, 40), () => {
      stage.kill(new P4Error('STAGE_LOST', { why: 'stopped' }));
      this.#running.delete(stage.incarnation);
      const { ring, load, node } = stage.order;
      this.#tell({ kind: 'stage-stopped', ring, load, node, incarnation: stage.incarnation });
    });
  }

  /** R2: news that comes again, when the stage has long been started anew, changes nothing. */
  #tell(news: Input): void {
    const { dispatch, doublesOneIn, random, after } = this.#outside;
    dispatch(news);
    if (doublesOneIn === 0 || !random.oneIn(doublesOneIn)) return;
    after(random.between(0, 3000), () => {
      dispatch(news);
    });
  }
}
