/** Error codes of rings, sessions and requests. */
import type { CodeRule } from './error-rule.ts';
import { forgetAdvice } from './forget-advice.ts';

export const ringCodes = {
  SAMPLING_INVALID: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'A sampling option is out of its range.',
    remedy: 'Correct the option named here.',
  },
  GENERATION_MISMATCH: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'This is not the generation that is loaded.',
    remedy: `Nothing was changed. Use the generation file of the load that stands; where it is lost, ${forgetAdvice}, or take p4 off the hosts with \`npm run deploy -- inventory.yaml --remove --yes\`.`,
  },
  AGENT_RESTARTED: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: 'The agent of this host has started again, and takes its stages up.',
    remedy: 'Wait: the ring comes back by itself. `npm run status` shows how far it is.',
  },
  SESSION_UNKNOWN: {
    exit: 3,
    status: 'NOT_FOUND',
    says: 'The ring has no such open session.',
    remedy: 'Open a session first; one whose lease ended is closed.',
  },
  SESSION_BUSY: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'A request is running in this session.',
    remedy: 'Wait for its end, or cancel it.',
  },
  REQUEST_UNKNOWN: {
    exit: 3,
    status: 'NOT_FOUND',
    says: 'The ring knows no such request.',
    remedy: 'Check the request; those that ended long ago are no longer kept.',
  },
  REQUEST_EXPIRED: {
    exit: 3,
    status: 'NOT_FOUND',
    says: 'The request ended so long ago that it is no longer kept.',
    remedy: 'Ask for a settlement sooner: it is kept until it is acknowledged, or for 30 days; tokens are for a day.',
  },
  REQUEST_CUT_OFF: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: "The connection to the agent of the ring's head broke, and did not come back in time.",
    remedy:
      '`npm run status` shows what answers; the request may go on there, and can be read from where this stopped.',
  },
  PROMPT_EMPTY: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'The prompt has no tokens.',
    remedy: 'Give a prompt.',
  },
  PROMPT_TOO_LONG: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'The prompt does not fit the context of its session.',
    remedy: 'Shorten the prompt, or raise `context` in the plan and load again.',
  },
  RING_BUSY: {
    exit: 3,
    status: 'RESOURCE_EXHAUSTED',
    says: 'All sessions of the ring are in use.',
    remedy: 'Try again later, or raise `sessions` in the plan and load again.',
  },
  RING_STALLED: {
    exit: 3,
    status: 'RESOURCE_EXHAUSTED',
    says: 'The head stage of the ring has not taken what waits for it.',
    remedy: '`npm run status` shows the stages; try again when they go on.',
  },
  RING_UNKNOWN: {
    exit: 3,
    status: 'NOT_FOUND',
    says: 'The host has no such ring.',
    remedy: 'Load the plan first; `npm run status` shows what is loaded.',
  },
  RING_EMPTY: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'The ring is claimed on this host, but its stages ended with the agent or the machine.',
    remedy: 'Run `npm run load` with the same plan again: it replays the load.',
  },
  LOAD_NOT_READABLE: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'The journal of this host holds a load of the ring whose plan this version of p4 does not accept: none of its stages runs here.',
    remedy: `Give it up: \`npm run unload\` with its plan, or ${forgetAdvice}; then load a plan that this version accepts. Or run the version that loaded it.`,
  },
  RING_TAKEN: {
    exit: 3,
    status: 'ALREADY_EXISTS',
    says: 'Another load holds the name of this ring on the host.',
    remedy: `Choose another ring name, or have it unloaded by whoever holds its generation file; where that is lost, ${forgetAdvice}, or take p4 off the hosts with \`npm run deploy -- inventory.yaml --remove --yes\`.`,
  },
  RING_ENDING: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'The ring is being taken down on this host.',
    remedy: 'Run the command again in a moment.',
  },
  RING_NOT_READY: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'The ring is not ready for this.',
    remedy: '`npm run status` shows its phase; run `npm run load` with its plan.',
  },
  RING_UNLOADED: {
    exit: 3,
    status: 'ABORTED',
    says: 'The ring was unloaded.',
    remedy: 'Load the plan again.',
  },
  PLAN_DIFFERS: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'The ring is loaded under this generation with another plan.',
    remedy: 'Unload it first, then load the new plan.',
  },
  NO_STAGE_HERE: {
    exit: 3,
    status: 'INVALID_ARGUMENT',
    says: 'The plan has no stage on this host.',
    remedy: 'Send the load to the hosts that the plan names.',
  },
  NOT_THE_HEAD: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'The head of the ring is not on this host.',
    remedy: 'Ask the agent of the plan’s first stage.',
  },
  EDGE_UNKNOWN: {
    exit: 3,
    status: 'PERMISSION_DENIED',
    says: 'A peer opened a link that the plan does not have.',
    remedy: 'Check that the certificates and the plan name the same hosts.',
  },
  EDGE_TAKEN: {
    exit: 3,
    status: 'ALREADY_EXISTS',
    says: 'A peer opened a link of the ring a second time.',
    remedy: 'Load the plan again; nothing was changed.',
  },
  PROBE_LOST: {
    exit: 4,
    status: 'DEADLINE_EXCEEDED',
    says: 'The probe token did not come back round the ring.',
    remedy: '`npm run status` shows the stages; look at their logs.',
  },
  RECEIPT_GENERATION_MISMATCH: {
    exit: 3,
    status: 'ABORTED',
    says: 'A stage gave a receipt of another generation and was stopped.',
    remedy: 'Unload the ring and load it again.',
  },
  RING_LOST: {
    exit: 4,
    status: 'ABORTED',
    says: 'The ring lost a part of itself while it answered; the text is not whole.',
    remedy: '`npm run status` shows what is lost; load the plan again.',
  },
  REQUEST_REFUSED: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'The tail of the ring refused the options of the request.',
    remedy: 'Correct the grammar or the sampling options; the detail says which.',
  },
  REQUEST_CANCELLED: {
    exit: 5,
    status: 'CANCELLED',
    says: 'The request was cancelled before its end.',
    remedy: 'What it had said until then is all there is of it. Give its prompt again for a whole answer.',
  },
} as const satisfies Record<string, CodeRule>;
