/** What a stage says on standard error: whole lines to whoever listens, and the latest ones kept for the news of its end. */
import { limits } from '../../protocol/limits.ts';
import { isRecord } from '../../protocol/plain-value.ts';
import type { StageLine } from './stage-launcher.ts';

/** Lines kept: what a library says on its way to abort, with some of its backtrace. */
const keptLines = 20;

export class StageWords {
  readonly #log: (line: StageLine) => void;
  readonly #last: string[] = [];
  #rest = '';

  constructor(log: (line: StageLine) => void) {
    this.#log = log;
  }

  /** The latest lines, oldest first. */
  get last(): readonly string[] {
    return [...this.#last];
  }

  hear(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = (lines.pop() ?? '').slice(0, limits.stageLineCharacters);
    for (const line of lines) this.#say(line.slice(0, limits.stageLineCharacters));
  }

  /** Nothing more will come; a line without an end is one, too. */
  end(): void {
    this.#say(this.#rest);
    this.#rest = '';
  }

  #say(text: string): void {
    if (text.trim() === '') return;
    this.#last.push(text);
    if (this.#last.length > keptLines) this.#last.shift();
    this.#log(stageLine(text));
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
