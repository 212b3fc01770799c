/** What SQLite and the file system answer, as the journal's own error codes. */
import { P4Error } from '../../protocol/errors.ts';
import { SqliteFailure } from './connection.ts';

export const repairCommand = '/opt/p4/libexec/p4 journal repair';

export function corrupt(folder: string, why: string, cause?: unknown): P4Error {
  return new P4Error('JOURNAL_CORRUPT', { folder, why, repair: repairCommand }, cause);
}

/** Failure while a journal is opened (J1, J6). A `P4Error` and a bug pass as they are. */
export function openingFailure(folder: string, error: unknown): unknown {
  if (error instanceof P4Error) return error;
  if (error instanceof SqliteFailure) return sqliteOpeningFailure(folder, error);
  if (isSystemError(error)) return new P4Error('JOURNAL_UNWRITABLE', { folder, why: error.message }, error);
  return error;
}

/** Failure of a transaction or a checkpoint on an open journal. A bug passes as it is. */
export function writingFailure(folder: string, error: unknown): unknown {
  if (error instanceof SqliteFailure || isSystemError(error))
    return new P4Error('JOURNAL_WRITE_FAILED', { folder, why: error.message }, error);
  return error;
}

function sqliteOpeningFailure(folder: string, error: SqliteFailure): P4Error {
  switch (error.code) {
    case 'SQLITE_CANTOPEN':
    case 'SQLITE_READONLY':
    case 'SQLITE_PERM':
    case 'SQLITE_IOERR':
    case 'SQLITE_FULL':
      return new P4Error('JOURNAL_UNWRITABLE', { folder, why: error.message }, error);
    default:
      // A damaged schema shows in many ways: a missing table is as much of a damage as a broken page.
      return corrupt(folder, error.message, error);
  }
}

export function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'code' in error && typeof error.code === 'string';
}
