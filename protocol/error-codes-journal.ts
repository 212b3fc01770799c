/** Error codes of the journal of an agent. */
import type { CodeRule } from './error-rule.ts';

export const journalCodes = {
  JOURNAL_UNWRITABLE: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: "The agent's journal cannot be opened for writing, and without a journal nothing is loaded.",
    remedy: 'Give the agent a journal folder on a writable disk that has space.',
  },
  JOURNAL_LOCKED: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'Another process holds this journal.',
    remedy:
      'On a host, stop its agent first (`systemctl stop p4-agent`). On this machine, agents already run from this state folder: end them with Ctrl-C where `npm run agents` runs, or use another folder with `--state` or P4_STATE.',
  },
  JOURNAL_CORRUPT: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: "The agent's journal is damaged or incomplete.",
    remedy: 'Check the disk, keep a copy of the folder, then run the repair command on this host.',
  },
  JOURNAL_TOO_NEW: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'A newer version of p4 wrote this journal.',
    remedy: 'Run the newer version, or give this agent a journal folder of its own.',
  },
  JOURNAL_SQLITE_TOO_OLD: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'This SQLite can damage a journal.',
    remedy: 'Install the dependencies again with `npm ci`.',
  },
  JOURNAL_WRITE_FAILED: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: "The agent's journal could not be written; the agent admits nothing until it can be.",
    remedy: "Make space on the journal's disk, or replace the disk.",
  },
  JOURNAL_FULL: {
    exit: 3,
    status: 'RESOURCE_EXHAUSTED',
    says: "The agent's journal has reached its size limit; what is admitted already goes on.",
    remedy: "Wait for requests to end, or raise the journal's limit.",
  },
  JOURNAL_MISSING: {
    exit: 4,
    status: 'NOT_FOUND',
    says: 'There is no journal in this folder.',
    remedy: "Look at `stateFolder` in the agent's configuration, or name another one with `--config`.",
  },
  HOST_RIGHTS_MISSING: {
    exit: 3,
    status: 'PERMISSION_DENIED',
    says: 'Only root, or the user whose state folder this is, may do this on a host (G7).',
    remedy: 'Run the command with sudo.',
  },
  FORGET_UNCONFIRMED: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'Nothing was forgotten: it was not confirmed.',
    remedy: 'Run the command again with `--yes` once you mean it.',
  },
  AGENT_SILENT: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: "An agent holds this host's journal, but gives no answer on its socket.",
    remedy: 'Look at it with `systemctl status p4-agent`; with the agent stopped, the command does without it.',
  },
} as const satisfies Record<string, CodeRule>;
