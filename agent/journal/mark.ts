/**
 * `journal.mark`: one line beside the database that says how far the journal had come, for two readers.
 *
 * A later opening compares it with the last record: SQLite takes a damaged, cut or missing WAL for the end of the
 * history, so without the mark such a history would be shorter and nobody would know (J6). And a second agent reads
 * from it which process holds the journal (J5).
 *
 * The line is written in place after each transaction, without a sync of its own: it may be behind the journal after a
 * power loss, never ahead of it.
 */
import { writeSync } from 'node:fs';
import { open, readFile, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';

import { crc32c } from '@node-rs/crc32';

import { syncFolder } from '../../model/folder-sync.ts';
import type { Failpoint } from './failpoint.ts';
import { isSystemError } from './failure.ts';

export type MarkReading =
  | { readonly kind: 'absent' }
  | { readonly kind: 'damaged' }
  | {
      readonly kind: 'found';
      /** Random name of the journal the mark belongs to. */
      readonly journal: string;
      /** Process that held the journal when the line was written. */
      readonly pid: number;
      /** Number of the last record that was durable. */
      readonly number: number;
    };

export const markFileName = 'journal.mark';

const line = /^p4-journal ([0-9a-f]{32}) pid ([0-9]{10}) record ([0-9]{16}) crc32c ([0-9a-f]{8})\n$/;

export async function readMark(folder: string): Promise<MarkReading> {
  let text: string;
  try {
    text = await readFile(join(folder, markFileName), 'utf8');
  } catch (error) {
    if (isSystemError(error) && error.code === 'ENOENT') return { kind: 'absent' };
    throw error;
  }
  const [, journal, pid, number, crc] = line.exec(text) ?? [];
  if (journal === undefined || crc !== checksum(text)) return { kind: 'damaged' };
  return { kind: 'found', journal, pid: Number(pid), number: Number(number) };
}

/** The mark of the journal that this process holds. */
export class Mark {
  readonly #file: FileHandle;
  readonly #head: string;
  readonly #at: Failpoint;

  private constructor(file: FileHandle, head: string, failpoint: Failpoint) {
    this.#file = file;
    this.#head = head;
    this.#at = failpoint;
  }

  /** Makes or takes over the mark; it is durable when this returns. */
  static async open(
    folder: string,
    { journal, number }: { readonly journal: string; readonly number: number },
    failpoint: Failpoint,
  ): Promise<Mark> {
    const file = await open(join(folder, markFileName), 'a+', 0o600).then(async (created) => {
      await created.close();
      return open(join(folder, markFileName), 'r+');
    });
    const head = `p4-journal ${journal} pid ${String(process.pid).padStart(10, '0')} record `;
    const mark = new Mark(file, head, failpoint);
    try {
      mark.write(number);
      await file.sync();
      await syncFolder(folder);
    } catch (error) {
      await file.close();
      throw error;
    }
    return mark;
  }

  /** Costs some microseconds: the line lies in the page cache. */
  write(number: number): void {
    const text = `${this.#head}${String(number).padStart(16, '0')} crc32c `;
    this.#at('mark.before');
    writeSync(this.#file.fd, `${text}${checksum(text)}\n`, 0);
    this.#at('mark.after');
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

/** Over everything before the checksum itself. */
function checksum(text: string): string {
  const covered = text.slice(0, text.indexOf('crc32c ') + 'crc32c '.length);
  return crc32c(covered).toString(16).padStart(8, '0');
}
