/** Error codes of model files and their slices. */
import type { CodeRule } from './error-rule.ts';

export const modelCodes = {
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
  SLICE_MISMATCH: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'The file is not the slice that the load names.',
    remedy: 'Remove the file and load the plan again; it is cut anew.',
  },
  SLICE_DAMAGED: {
    exit: 4,
    status: 'ABORTED',
    says: 'The slice that came is not the one that was sent.',
    remedy: 'Load the plan again; if it fails again, check the disk and the memory of the host.',
  },
  SLICE_BUSY: {
    exit: 4,
    status: 'ABORTED',
    says: 'Somebody else sends this slice to the host at the moment.',
    remedy: 'Wait until that has ended and load the plan again.',
  },
  MODEL_DIFFERS: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'The hosts do not have the same model file at the path in the plan.',
    remedy: 'Put one and the same file on every host, then load the plan again.',
  },
  PLAN_DOES_NOT_FIT: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'The plan needs more memory or disk than its hosts have free.',
    remedy: 'Free what is missing, lower context or sessions, or put layers on other hosts.',
  },
  PLAN_OVERSUBSCRIBES: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'A stage with several threads would not have a CPU for each of them.',
    remedy:
      'Give these stages fewer threads or other CPUs (`threads: auto` takes what is free), put some on other hosts, or unload a ring that is named here.',
  },
} as const satisfies Record<string, CodeRule>;
