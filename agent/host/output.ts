/** Where the host's commands print: text for people or, with `--json`, one JSON object; failures on standard error. */
import process from 'node:process';

import { P4Error } from '../../protocol/errors.ts';

export interface Output {
  readonly isJson: boolean;
  /** Lines for people; nothing with `--json`. */
  readonly line: (text: string) => void;
  /** The result, with `--json`. */
  readonly result: (value: Readonly<Record<string, unknown>>) => void;
}

export const outputOf = (isJson: boolean): Output => ({
  isJson,
  line: (text) => {
    if (!isJson) process.stdout.write(`${text}\n`);
  },
  result: (value) => {
    if (isJson) process.stdout.write(`${JSON.stringify(value)}\n`);
  },
});

/** Prints a failure and returns the exit status; a bug is thrown. */
export function failed(error: unknown, isJson: boolean): number {
  if (!(error instanceof P4Error)) throw error;
  if (isJson) process.stdout.write(`${JSON.stringify({ error: { code: error.code, facts: error.facts } })}\n`);
  process.stderr.write(`${error.message}\n`);
  return error.rule.exit;
}
