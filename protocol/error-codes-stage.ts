/** Error codes of stages and the engine in them. */
import type { CodeRule } from './error-rule.ts';

export const stageCodes = {
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
    remedy:
      'What it said stands here; most often memory, or its limit in the plan, is short, or the file is not a slice of this model.',
  },
  ENGINE_CONTEXT_REFUSED: {
    exit: 4,
    status: 'RESOURCE_EXHAUSTED',
    says: 'llama.cpp does not make room for the KV cache and computations of the slice.',
    remedy:
      'Lower the context, the sessions or the KV types in the plan, or raise the limit of memory that it gives the stage; what llama.cpp said stands here.',
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
  STAGE_CONFINEMENT: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'A stage cannot keep to the CPUs or the memory that the plan gives it.',
    remedy: 'Correct `cpus` and `memory` in the plan: CPUs that the host gives to p4, and a limit that it allows.',
  },
  STAGE_UNIT_REFUSED: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'The agent cannot have a unit of a stage started or stopped.',
    remedy: 'Deploy the host again, which installs the units and the right to start them; units/README.md explains it.',
  },
  STAGE_LOST: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: 'A stage process is gone, or closed its socket.',
    remedy:
      'A loaded ring has it started again and goes on by itself: `npm run status` shows how far it is. Where it ended while it loaded, the log of its agent has what it said.',
  },
  STAGE_SILENT: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: 'A stage process runs and does not answer.',
    remedy:
      'It may be halted, or its machine may be swapping: look at it on its host. Should it stay silent, its agent ends it and starts it again.',
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
} as const satisfies Record<string, CodeRule>;
