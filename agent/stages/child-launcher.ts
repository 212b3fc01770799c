/**
 * Stages as children of their agent, where there is no systemd: they end with it.
 *
 * Each leads a process group of its own, so that Ctrl-C in a terminal reaches the agent alone, and has a pipe as standard
 * input whose other end only the agent holds: when the agent is gone, however, the pipe closes and the stage ends.
 */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';

import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { isRecord } from '../../protocol/plain-value.ts';
import { stageEnvironment } from '../../protocol/stage-environment.ts';
import { controlSocketName } from '../../protocol/stage-control.ts';
import { connectOnce } from './control-client.ts';
import { removeStageFolder } from './dead-stages.ts';
import type { StageExit, StageHandle, StageLauncher, StageLine, StageSpec } from './stage-launcher.ts';

type StageChild = ChildProcessByStdio<Writable, null, Readable>;

const stageMain = fileURLToPath(new URL('../../stage/main.js', import.meta.url));
const keptWords = 20;

export class ChildLauncher implements StageLauncher {
  async start(spec: StageSpec): Promise<StageHandle> {
    await makeFolder(spec.folder);
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

/** Its sockets are removed with the process; so it must not be another's that lives. */
async function makeFolder(path: string): Promise<void> {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    chmodSync(path, 0o700);
  } catch (cause) {
    throw new P4Error('STAGE_RUNTIME_FOLDER', { path, reason: String(cause) }, cause);
  }
  const attempt = await connectOnce(join(path, controlSocketName));
  if (attempt.kind === 'failed') return;
  attempt.socket.destroy();
  throw new P4Error('STAGE_RUNTIME_FOLDER', { path, reason: 'another stage lives in it' });
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
  readonly #lastWords: string[] = [];
  #hasEnded = false;

  constructor(child: StageChild, spec: StageSpec) {
    this.pid = present(child.pid, 'a spawned process has a number');
    this.folder = spec.folder;
    this.#child = child;
    const gone = new AbortController();
    this.gone = gone.signal;
    // A stage that has just died does not read its lifeline any more.
    child.stdin.on('error', () => undefined);
    this.#relay(child.stderr, spec.log);
    this.exited = new Promise((resolve) => {
      child.once('exit', (status, signal) => {
        this.#hasEnded = true;
        removeStageFolder(spec.folder);
        gone.abort(new P4Error('STAGE_LOST', { ring: spec.ring, node: spec.node, ...exitFacts(status, signal) }));
      });
      // After `exit`, when everything it said is read.
      child.once('close', (status, signal) => {
        resolve({ status, signal, lastWords: [...this.#lastWords] });
      });
    });
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

  #relay(stream: Readable, log: (line: StageLine) => void): void {
    let rest = '';
    const say = (text: string): void => {
      if (text.trim() === '') return;
      this.#lastWords.push(text);
      if (this.#lastWords.length > keptWords) this.#lastWords.shift();
      log(stageLine(text));
    };
    stream.setEncoding('utf8');
    stream.on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n');
      rest = (lines.pop() ?? '').slice(0, limits.stageLineCharacters);
      for (const line of lines) say(line.slice(0, limits.stageLineCharacters));
    });
    stream.on('end', () => {
      say(rest);
    });
  }
}

function stageLine(text: string): StageLine {
  if (!text.startsWith('{')) return { kind: 'text', text };
  try {
    const record: unknown = JSON.parse(text);
    return isRecord(record) ? { kind: 'record', record } : { kind: 'text', text };
  } catch {
    return { kind: 'text', text };
  }
}

const exitFacts = (status: number | null, signal: string | null): { readonly exit: string } => ({
  exit: signal ?? `status ${status ?? 'unknown'}`,
});
