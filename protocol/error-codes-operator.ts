/** Error codes of what an operator writes, keeps and types. */
import type { CodeRule } from './error-rule.ts';
import { forgetAdvice } from './forget-advice.ts';

export const operatorCodes = {
  INVALID_ARGUMENT: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'A value is not of the expected form.',
    remedy: 'Correct the value named here.',
  },
  TERMINAL_NEEDED: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'A live picture needs a terminal, and the output is none.',
    remedy: 'Run it in a terminal, or have one picture with `--once`, or its figures with `--once --json`.',
  },
  PLAN_INVALID: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'The plan is wrong.',
    remedy: 'Correct every line named here; plans/README.md explains the keys.',
  },
  INVENTORY_INVALID: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'The inventory is wrong.',
    remedy: 'Correct every line named here; inventory/README.md explains the keys.',
  },
  GENERATIONS_EXHAUSTED: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'This ring has used up its generations.',
    remedy: 'Give the ring another name in the plan.',
  },
  STATE_UNWRITABLE: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: "A file of the operator's state folder cannot be written.",
    remedy: 'See to space and permissions of the path named here.',
  },
  STATE_UNREADABLE: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: "A file of the operator's state folder cannot be read.",
    remedy: 'See to the permissions of the path named here.',
  },
  STATE_BUSY: {
    exit: 4,
    status: 'ABORTED',
    says: 'Another command holds the state folder.',
    remedy:
      'Wait for it and run the command again. A lock whose process has ended on this machine is taken over by itself; where its owner is on another machine, or unknown, and certain to have ended, delete the lock named here.',
  },
  GENERATION_FILE_MISSING: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'This ring was never loaded from here.',
    remedy: `Load it: \`npm run load -- plan.yaml\`. Where it stands already, run the command where it was loaded from, with the same state folder; where its generation file is lost, ${forgetAdvice}.`,
  },
  GENERATION_FILE_DAMAGED: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'The generation file is not what was written.',
    remedy: `Restore it from a copy; where there is none, ${forgetAdvice} and delete the file.`,
  },
  GENERATION_FILE_CHANGED: {
    exit: 3,
    status: 'ABORTED',
    says: 'Another command changed the generation file of this ring in the meantime.',
    remedy: 'Look at the status of the ring, then run the command again if it is still wanted.',
  },
  FLEET_FILE_MISSING: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'There is no fleet here.',
    remedy:
      'Make one: `npm run deploy -- inventory.yaml` on machines of yours, or `npm run agents` on this one. Where there is one already, run the command in its folder, or name its state folder with `--state` or P4_STATE.',
  },
  FLEET_FILE_DAMAGED: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'The fleet file is not what was written.',
    remedy: 'Restore it from a copy, or deploy again to write it anew.',
  },
  PKI_DAMAGED: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: "The fleet's certificate authority is damaged.",
    remedy:
      'Restore its key and certificate from a copy; where there is none, delete both and deploy again: every host gets a new certificate.',
  },
  PKI_EXPIRED: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: "The fleet's certificate authority is too old to sign.",
    remedy: 'Delete its key and certificate and deploy again: every host gets a new certificate.',
  },
  STATE_FOLDER_DEPLOYED: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'This state folder is that of a deployed fleet; agents of this machine would become part of it.',
    remedy:
      'Name another one for local use, with `--state .p4-local` here and with every command for these agents, or run them in another folder.',
  },
  CANCELLED: {
    exit: 5,
    status: 'CANCELLED',
    says: 'The command was interrupted.',
    remedy: 'Run it again when you want to.',
  },
  OUTPUT_FAILED: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: 'What this command prints cannot be written where it goes.',
    remedy:
      'See to the space and the rights of the file or device that its output goes to; `npm run status` shows what stands.',
  },
  AGENT_NOT_STARTED: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: 'An agent did not start.',
    remedy: 'What it said last stands here; mend that and start it again.',
  },
  AGENT_LOST: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: 'An agent that this command started has ended.',
    remedy:
      'Its last words are in its log. Nothing starts it again: end this command (Ctrl-C) where it still runs, start it again, and load the plans again.',
  },
  RING_LOADED: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'This ring is loaded with another plan.',
    remedy: 'Unload it first (npm run unload), then load the new plan.',
  },
  RING_HALF_UNLOADED: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'The unload of this ring is at work, or was cut short: agents may still hold parts of it.',
    remedy: 'Where no unload runs, run it again (npm run unload); when the ring is gone, load the plan.',
  },
  CONFIG_INVALID: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'The configuration of the agent is wrong.',
    remedy: 'Correct every line named here, or have the command that made the file make it again.',
  },
  CONFIG_UNREADABLE: {
    exit: 4,
    status: 'INTERNAL',
    says: 'A file that the agent needs cannot be read.',
    remedy: 'Check that it is there and that the user of the agent may read it; on a host, run `p4` as root.',
  },
  COMMAND_LINE_INVALID: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'The command line is wrong.',
    remedy: 'Run the command with --help to see what it takes.',
  },
  PLAN_UNREADABLE: {
    exit: 2,
    status: 'NOT_FOUND',
    says: 'The plan file cannot be read.',
    remedy: 'Check the path and the rights on it.',
  },
  HOST_UNKNOWN: {
    exit: 3,
    status: 'NOT_FOUND',
    says: 'The fleet has no such host.',
    remedy: 'Use one of the hosts named here, or make the host part of the fleet again.',
  },
  TRACE_UNAVAILABLE: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'The system calls of an agent cannot be traced, which this benchmark is to show.',
    remedy:
      'Install the program named here (Debian: `apt-get install strace`) and run it as root, or as whoever may trace.',
  },
} as const satisfies Record<string, CodeRule>;
