/** The prompt of a command: its argument, `--tokens`, or what stands on standard input. */
import type { Readable } from 'node:stream';

import { P4Error } from '../protocol/errors.ts';
import { tokenId } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import { unlessAborted } from './interrupt.ts';
import type { Prompt } from './ring-request.ts';

export interface PromptChoice {
  readonly argument: string | undefined;
  /** `1,5,9` */
  readonly tokens: string | undefined;
  readonly input: Readable;
  readonly signal: AbortSignal;
}

/** @throws COMMAND_LINE_INVALID, INVALID_ARGUMENT, CANCELLED */
export async function readPrompt({ argument, tokens, input, signal }: PromptChoice): Promise<Prompt> {
  if (tokens !== undefined) {
    if (argument === undefined) return { kind: 'tokens', ids: parseTokenIds(tokens) };
    throw new P4Error('COMMAND_LINE_INVALID', { found: 'a prompt and --tokens', expected: 'one of them' });
  }
  if (argument !== undefined) return { kind: 'text', text: argument };
  return { kind: 'text', text: await unlessAborted(readText(input), signal) };
}

function parseTokenIds(text: string): readonly number[] {
  const parts = text.split(',').map((part) => part.trim());
  return parts.map((part) => {
    if (!/^\d{1,10}$/.test(part)) {
      throw new P4Error('INVALID_ARGUMENT', { option: '--tokens', found: part, expected: 'token ids, as in 1,5,9' });
    }
    return tokenId(Number(part));
  });
}

/** The line end that a shell puts after the last line is not part of the prompt. */
async function readText(input: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of input) {
    const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk));
    length += bytes.length;
    if (length > limits.promptBytes) {
      throw invalid(`more than ${limits.promptBytes} bytes`, `a prompt of at most ${limits.promptBytes} bytes`);
    }
    chunks.push(bytes);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)).replace(/\r?\n$/, '');
  } catch {
    throw invalid('bytes that are no UTF-8', 'text in UTF-8');
  }
}

const invalid = (found: string, expected: string): P4Error =>
  new P4Error('INVALID_ARGUMENT', { what: 'standard input', found, expected });
