/**
 * Every failure a user or another process can meet, by a stable code.
 *
 * Nobody matches on message text: code, exit status and gRPC status are looked up here. A code is never reused for
 * another meaning.
 */

/** How a code leaves a process: the exit status of a command and the gRPC status of a call. */
interface CodeRule {
  /** 2: the input is wrong; 3: the fleet refused; 4: something outside failed; 5: cancelled. */
  readonly exit: 2 | 3 | 4 | 5;
  /** Name of the gRPC status. */
  readonly status: GrpcStatusName;
  /** One sentence: what happened. */
  readonly says: string;
  /** One sentence: what to do about it. */
  readonly remedy: string;
}

export type GrpcStatusName =
  | 'INVALID_ARGUMENT'
  | 'NOT_FOUND'
  | 'ALREADY_EXISTS'
  | 'PERMISSION_DENIED'
  | 'FAILED_PRECONDITION'
  | 'RESOURCE_EXHAUSTED'
  | 'ABORTED'
  | 'UNAVAILABLE'
  | 'CANCELLED'
  | 'DEADLINE_EXCEEDED'
  | 'INTERNAL';

export const errorCodes = {
  INVALID_ARGUMENT: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'A value is not of the expected form.',
    remedy: 'Correct the value named here.',
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
    remedy: 'Wait for it and run the command again; where none runs, delete the lock named here.',
  },
  GENERATION_FILE_MISSING: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'There is no generation file for this ring here.',
    remedy:
      'Run the command where the ring was loaded from, with the same state folder; where the file is lost, forget the ring on its hosts as root.',
  },
  GENERATION_FILE_DAMAGED: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'The generation file is not what was written.',
    remedy: 'Restore it from a copy; where there is none, forget the ring on its hosts as root and delete the file.',
  },
  GENERATION_FILE_CHANGED: {
    exit: 4,
    status: 'ABORTED',
    says: 'Another command changed the generation file of this ring in the meantime.',
    remedy: 'Look at the status of the ring, then run the command again if it is still wanted.',
  },
  FLEET_FILE_MISSING: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'There is no fleet here.',
    remedy: 'Deploy to hosts or start local agents first, or name the state folder of the fleet.',
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
  MODEL_FILE_UNREADABLE: {
    exit: 2,
    status: 'NOT_FOUND',
    says: 'A model file cannot be opened or read.',
    remedy: 'Check the path and the rights on it.',
  },
  GGUF_NOT_GGUF: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'The file is not a GGUF.',
    remedy: 'Give the path of a GGUF model file.',
  },
  GGUF_BIG_ENDIAN: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'The GGUF file is big-endian.',
    remedy: 'Convert the model to a little-endian GGUF.',
  },
  GGUF_VERSION: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'The GGUF file is of a version this release does not read.',
    remedy: 'Convert the model to GGUF version 2 or 3.',
  },
  GGUF_TRUNCATED: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'The GGUF file ends before its content does.',
    remedy: 'Fetch the file again and compare its size and checksum with the source.',
  },
  GGUF_INVALID: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'The GGUF file contradicts its own format.',
    remedy: 'Fetch or convert the file again; what was found and what is expected stand here.',
  },
  GGUF_SHARD_MISSING: {
    exit: 2,
    status: 'NOT_FOUND',
    says: 'A shard of a split GGUF model is missing.',
    remedy: 'Put every shard into the same folder.',
  },
  GGUF_SHARD_INVALID: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'The shards of a split GGUF model do not belong together.',
    remedy: 'Fetch all shards of the model again, from one release.',
  },
  MODEL_INVALID: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'The model lacks something it needs to be run, or says something that cannot be.',
    remedy: 'Convert the model again with a current converter.',
  },
  MODEL_ARCHITECTURE_UNPROVEN: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'No exact way to cut models of this architecture is proven.',
    remedy: 'Use a model of one of the architectures named here.',
  },
  MODEL_CUT_ILLEGAL: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'A slice with these layers would not compute what the whole model does.',
    remedy: 'Cut after one of the layers named here.',
  },
  MODEL_CHANGED: {
    exit: 4,
    status: 'ABORTED',
    says: 'A model file changed while it was read.',
    remedy: 'Leave the file alone and run the command again.',
  },
  SLICE_INVALID: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'The file is not a sound slice of a model.',
    remedy: 'Remove the file and load the plan again; it is cut anew.',
  },
  SLICE_NO_SPACE: {
    exit: 4,
    status: 'RESOURCE_EXHAUSTED',
    says: 'The disk has no room for the slice.',
    remedy: 'Free the bytes named here, or choose another folder.',
  },
  SLICE_UNWRITABLE: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'The slice cannot be written.',
    remedy: 'Check the folder and the rights on it.',
  },
  FRAME_INVALID: {
    exit: 4,
    status: 'INVALID_ARGUMENT',
    says: 'A hop frame is not well-formed.',
    remedy: 'Check that all agents and stages run the same release.',
  },
  SAMPLING_INVALID: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'A sampling option is out of its range.',
    remedy: 'Correct the option named here.',
  },
  ENGINE_LIBRARY_MISSING: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'The libraries of llama.cpp are not where they are looked for.',
    remedy: 'Install the platform package for this machine, or name their folder in P4_LLAMA_LIBRARIES.',
  },
  ENGINE_LIBRARY_MISMATCH: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'The libraries of llama.cpp are not the version this release was written for.',
    remedy: 'Use the platform package that this release depends on; another version would corrupt memory.',
  },
  ENGINE_DEVICE_ABSENT: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'The host has no GPU with this index that the libraries can use.',
    remedy: 'Correct the device in the plan, or mend the driver; the devices found stand here.',
  },
  ENGINE_MODEL_REFUSED: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'llama.cpp does not load the slice.',
    remedy: 'What it said stands here; most often memory is short or the file is not a slice of this model.',
  },
  ENGINE_CONTEXT_REFUSED: {
    exit: 4,
    status: 'RESOURCE_EXHAUSTED',
    says: 'llama.cpp does not make room for the KV cache and computations of the slice.',
    remedy: 'Lower the context, the sessions or the KV types in the plan; what llama.cpp said stands here.',
  },
  STAGE_DECODE: {
    exit: 4,
    status: 'INTERNAL',
    says: 'A decode failed; the KV cache of this stage is undefined now.',
    remedy: 'The stage ends and is loaded again by its agent; if it happens again, look at the status and the host.',
  },
  STAGE_RUNTIME_FOLDER: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'A stage cannot use its runtime folder.',
    remedy: 'Give it a folder of its own that only its user may enter, with a short path.',
  },
  STAGE_START: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: 'A stage process did not start, or did not answer in time.',
    remedy: 'Its last words stand here or in the log of its agent.',
  },
  STAGE_LOST: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: 'A stage process is gone, or closed its socket.',
    remedy: 'Look for its last words in the log of its agent.',
  },
  STAGE_VERSION: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'Agent and stage speak different versions of their protocol.',
    remedy: 'Stop the stage; one of the release of its agent starts at the next load.',
  },
  STAGE_PROTOCOL: {
    exit: 4,
    status: 'INTERNAL',
    says: 'A stage and its agent contradict each other.',
    remedy: 'The stage ends; load the plan again, and report what stands here.',
  },
  STAGE_HOLDS_LOAD: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'The stage already holds a load, or is loading one.',
    remedy: 'Unload it first.',
  },
  STAGE_EMPTY: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'The stage holds no load.',
    remedy: 'Load a plan first.',
  },
  STAGE_OF_ANOTHER_NODE: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'The stage belongs to another node.',
    remedy: 'Check that no two agents share a runtime folder.',
  },
  STAGE_BUG: {
    exit: 4,
    status: 'INTERNAL',
    says: 'A stage ended on a fault of its own.',
    remedy: 'The stage is loaded again by its agent; report what stands here.',
  },
  SLICE_MISMATCH: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'The file is not the slice that the load names.',
    remedy: 'Remove the file and load the plan again; it is cut anew.',
  },
  GENERATION_MISMATCH: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'This is not the generation that is loaded.',
    remedy: 'Use the generation file of the load that stands; nothing was changed.',
  },
  SAMPLER_GRAMMAR: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'The grammar cannot be used.',
    remedy: 'Correct the GBNF text at the line and column named here.',
  },
  TOKENIZER_ABSENT: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'The model has no tokenizer.',
    remedy: 'Give the prompt as token ids, and no grammar.',
  },
  TOKEN_OUT_OF_RANGE: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'A token id is not in the vocabulary of the model.',
    remedy: 'Use ids from 0 to the size of the vocabulary less one.',
  },
  CANCELLED: {
    exit: 5,
    status: 'CANCELLED',
    says: 'The command was interrupted.',
    remedy: 'Run it again when you want to.',
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
    remedy: 'What it said last stands here; start the agents again.',
  },
  RING_LOADED: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'This ring is loaded with another plan.',
    remedy: 'Unload it first (npm run unload), then load the new plan.',
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
    remedy: 'Try again when one has ended, or raise `sessions` in the plan and load again.',
  },
  ROLE_FORBIDDEN: {
    exit: 3,
    status: 'PERMISSION_DENIED',
    says: 'A certificate of this role may not make this call.',
    remedy: 'Use a certificate of one of the roles named here.',
  },
  CERTIFICATE_REFUSED: {
    exit: 3,
    status: 'PERMISSION_DENIED',
    says: 'One side does not accept the certificate of the other.',
    remedy:
      "Check that both certificates come from the fleet's own authority, have not expired and name the right host.",
  },
  CERTIFICATE_UNUSABLE: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'A certificate or key file cannot be read or used.',
    remedy: 'Check the path, the rights on it and that certificate and key belong together.',
  },
  AGENT_UNREACHABLE: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: 'The agent does not answer at this address.',
    remedy: 'Check that it runs, that it listens there and that no firewall is between.',
  },
  AGENT_STOPPING: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: 'The agent is stopping.',
    remedy: 'Start it again, then load the plan.',
  },
  AGENT_BUG: {
    exit: 4,
    status: 'INTERNAL',
    says: 'The agent met a bug in itself and ends.',
    remedy: 'Its log on that host says where; report it.',
  },
  ADDRESS_IN_USE: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'Another process listens at this address.',
    remedy: 'End that process, or choose another port.',
  },
  ADDRESS_UNAVAILABLE: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'It is not possible to listen at this address.',
    remedy: 'Use an address of this host, and a port that its user may listen on.',
  },
  PROTOCOL_MISMATCH: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'The two sides speak different major versions of the protocol.',
    remedy: 'Bring all hosts to the same release.',
  },
  LINK_WRONG_PEER: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'Another host than the expected one answers at this address.',
    remedy: 'Correct the address in the inventory, and look for an address that two hosts share.',
  },
  LINK_TO_SELF: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: "The neighbour's address leads back to this host itself.",
    remedy: 'Correct the address in the inventory; never use loopback between hosts.',
  },
  LINK_LOST: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: 'The connection to a neighbour in the ring is lost.',
    remedy: 'Check that host and the network to it, then load the plan again.',
  },
  FRAME_CORRUPT: {
    exit: 4,
    status: 'ABORTED',
    says: 'A hop frame arrived with another checksum than it was sent with.',
    remedy: 'Check the memory and network hardware of both hosts.',
  },
  RPC_TIMED_OUT: {
    exit: 4,
    status: 'DEADLINE_EXCEEDED',
    says: 'The agent did not answer in time.',
    remedy: 'Look at its status and at the load of its host, then try again.',
  },
  RPC_FAILED: {
    exit: 4,
    status: 'INTERNAL',
    says: 'A call failed for a reason this release has no code for.',
    remedy: 'Check that both sides run the same release; what is known stands here.',
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
  RING_TAKEN: {
    exit: 3,
    status: 'ALREADY_EXISTS',
    says: 'Another load holds the name of this ring on the host.',
    remedy: 'Unload it with its own generation file first, or choose another ring name.',
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
    remedy: 'Stop the other agent, or give this one a journal folder of its own.',
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
  LINK_WINDOW_EXCEEDED: {
    exit: 4,
    status: 'RESOURCE_EXHAUSTED',
    says: 'A peer sent more frames than its window allows.',
    remedy: 'Check that all agents run the same release.',
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
    remedy: 'Check that it is there and that the user of the agent may read it.',
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
} as const satisfies Record<string, CodeRule>;

export type ErrorCode = keyof typeof errorCodes;

/** What a reader needs to see the case: plain values, never a prompt, never a generation (G4). */
export type ErrorFacts = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** A failure outside this code's power: a wrong file, a refusing peer, a full disk. A bug is an assertion instead. */
export class P4Error extends Error {
  readonly code: ErrorCode;
  readonly facts: ErrorFacts;

  constructor(code: ErrorCode, facts: ErrorFacts = {}, cause?: unknown) {
    super(sentence(code, facts), cause === undefined ? undefined : { cause });
    this.name = 'P4Error';
    this.code = code;
    this.facts = facts;
  }

  get rule(): CodeRule {
    return errorCodes[this.code];
  }
}

export const isErrorCode = (text: string): text is ErrorCode => Object.hasOwn(errorCodes, text);

function sentence(code: ErrorCode, facts: ErrorFacts): string {
  const rule = errorCodes[code];
  const named = Object.entries(facts).map(
    ([name, value]) => `${name}: ${Array.isArray(value) ? listText(value) : String(value)}`,
  );
  return [`${code}: ${rule.says}`, ...named.map((fact) => `  ${fact}`), `  ${rule.remedy}`].join('\n');
}

/** Words stand on one line; sentences (one per fault of a plan, say) each on their own. */
const listText = (values: readonly string[]): string =>
  values.some((value) => value.includes(' ')) ? values.map((value) => `\n    ${value}`).join('') : values.join(', ');
