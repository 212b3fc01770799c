/**
 * Stages as children of their agent, where there is no systemd: they end with it.
 *
 * Each leads a process group of its own, so that Ctrl-C in a terminal reaches the agent alone, and has a pipe as standard
 * input whose other end only the agent holds: when the agent is gone, however, the pipe closes and the stage ends.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';

import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { stageEnvironment } from '../../protocol/stage-environment.ts';
import { removeDeadStages } from './dead-stages.ts';
import { makeStageFolder, removeStageFolder } from './stage-folder.ts';
import type { StageExit, StageHandle, StageLauncher, StageSpec } from './stage-launcher.ts';
import { StageWords } from './stage-words.ts';

type StageChild = ChildProcessByStdio<Writable, null, Readable>;

const stageMain = fileURLToPath(new URL('../../stage/main.js', import.meta.url));

export class ChildLauncher implements StageLauncher {
  readonly outlivesAgent = false;

  /** None: children end with their agent. */
  async former(runtimeFolder: string): Promise<readonly StageHandle[]> {
    await removeDeadStages(runtimeFolder);
    return [];
  }

  async start(spec: StageSpec): Promise<StageHandle> {
    await makeStageFolder(spec.folder);
    const child = spawn(
      process.execPath,
      ['--enable-source-maps', stageMain, '--runtime', spec.folder, '--ends-with-input'],
      {
        detached: true,
        stdio: ['pipe', 'ignore', 'pipe'],
        env: { ...process.env, ...stageEnvironment },
      },
    );
    await started(child, spec);
    return new ChildStage(child, spec);
  }
}

function started(child: StageChild, { ring, node }: StageSpec): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (cause) => {
      reject(new P4Error('STAGE_START', { ring, node, reason: cause.message }, cause));
    });
  });
}

class ChildStage implements StageHandle {
  readonly pid: number;
  readonly folder: string;
  readonly gone: AbortSignal;
  readonly exited: Promise<StageExit>;
  readonly #child: StageChild;
  #hasEnded = false;

  constructor(child: StageChild, spec: StageSpec) {
    this.pid = present(child.pid, 'a spawned process has a number');
    this.folder = spec.folder;
    this.#child = child;
    const gone = new AbortController();
    this.gone = gone.signal;
    // A stage that has just died does not read its lifeline any more.
    child.stdin.on('error', () => undefined);
    const words = new StageWords(spec.log);
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      words.hear(text);
    });
    child.stderr.on('end', () => {
      words.end();
    });
    this.exited = new Promise((resolve) => {
      child.once('exit', (status, signal) => {
        this.#hasEnded = true;
        removeStageFolder(spec.folder);
        gone.abort(new P4Error('STAGE_LOST', { ring: spec.ring, node: spec.node, ...exitFacts(status, signal) }));
      });
      // After `exit`, when everything it said is read.
      child.once('close', (status, signal) => {
        resolve({ status, signal, lastWords: words.last });
      });
    });
  }

  /** A child ends when its agent does. */
  release(): void {
    this.#child.stdin.end();
  }

  async stop(): Promise<StageExit> {
    this.#child.stdin.end();
    if (!this.#hasEnded) this.#child.kill('SIGTERM');
    const force = setTimeout(() => {
      if (!this.#hasEnded) this.#child.kill('SIGKILL');
    }, limits.stageStopMs);
    const exit = await this.exited;
    clearTimeout(force);
    return exit;
  }
}

const exitFacts = (status: number | null, signal: string | null): { readonly exit: string } => ({
  exit: signal ?? `status ${status ?? 'unknown'}`,
});
