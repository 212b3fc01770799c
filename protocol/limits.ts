/** Every bound in one place, with its reason; relations between bounds are asserted at the end. */
import { assert } from './assert.ts';

const bounds = {
  /** Stages in one ring: more would put less than a layer on each for most models. */
  stages: 64,
  /** Sessions of one ring: llama.cpp allows 256 sequences, and one is kept for the dummy row of `decode: exact`. */
  sessions: 255,
  /** Rows of one decode on a CPU: 64 and more take another flash-attention tile and round differently. */
  cpuDecodeRows: 63,
  /** Tokens one session may hold. */
  contextTokens: 1_048_576,
  /** Bytes of one hop frame: 512 rows of 8192 float32 and their items, with room. */
  frameBytes: 32 * 1024 * 1024,
  /** Items of one hop frame: every session may open, begin, run, end and close in it. */
  frameItems: 2048,
  /**
   * Items that wait for the head stage before nobody new is admitted: with what the open sessions may add to end and
   * close, they fit one frame.
   */
  waitingItems: 512,
  /** Frames on their way to one node that it has not finished: enough to keep it busy, few enough to push back. */
  linkWindowFrames: 4,
  /** Frames at the head stage: one that it computes and one that waits. */
  headFrames: 2,
  /** Requests that ended and whose texts and settlements the head's agent still answers from memory, for each ring. */
  keptRequests: 256,
  /** Requests whose text an agent still has for readers: all its running ones and the latest that ended. */
  keptTranscripts: 1024,
  /** How long a session may stay without its lease. */
  lingerMs: 3_600_000,
  /** Time for calls to end when an agent stops. */
  rpcStopMs: 500,
  /** Frames that a stage has at once: one that it computes and those that wait for it, to run as one decode. */
  nodeFrames: 4,
  /** Bytes of one control message on a stage's socket; a vocabulary of 256 Ki pieces fits. */
  controlMessageBytes: 16 * 1024 * 1024,
  /** Bytes of one gRPC message: a frame and its wrapper. */
  grpcMessageBytes: 33 * 1024 * 1024,
  /** Bytes of a prompt as text. */
  promptBytes: 8 * 1024 * 1024,
  /** Bytes of a GBNF grammar: llama.cpp parses it recursively. */
  grammarBytes: 64 * 1024,
  /** Stop strings of one request: each is looked for at every token. */
  stopStrings: 16,
  /** Bytes of a stop string: text that may be the start of one is held back from the reader. */
  stopStringBytes: 256,
  /** Token ids with a bias in one request: each is applied at every token. */
  logitBiases: 1024,
  /** Bytes of a plan or inventory file. */
  documentBytes: 1024 * 1024,
  /** Keys, values and list items of a plan or inventory file: the check for duplicate keys is quadratic. */
  documentNodes: 20_000,
  /** Nesting of a plan or inventory file: the parser is recursive. */
  documentDepth: 32,
  /** Syntax faults reported of one file: each is often only the consequence of the one before. */
  syntaxFaults: 20,
  /** Aliases (`*name`) of a plan or inventory file: each repeats a whole value. */
  documentAliases: 100,
  /** Compute threads of one stage: more than any host's cores. */
  stageThreads: 1024,
  /** GPUs of one host. */
  hostGpus: 64,
  /** Tokens of all sessions of a ring together: a decode's attention mask has 64 float32 rows of this width (4 GiB). */
  ringTokens: 16_777_216,
  /** Time to wait for another command to release a file of the state folder; each holds it for milliseconds. */
  stateLockMs: 10_000,
  /** Validity of a host's or a command's certificate: the longest that TLS libraries of every make accept. */
  certificateDays: 825,
  /** Validity of the fleet's authority. */
  authorityDays: 3650,
  /** A certificate that is valid for less is renewed when it is next asked for. */
  certificateRenewalDays: 30,
  /** A certificate is valid from this long before it is made: hosts' clocks differ. */
  certificateClockSkewMs: 3_600_000,
  /** Hosts of one inventory: deploy measures every pair of them. */
  fleetHosts: 256,
  /** Bytes of a Unix socket's path: `sun_path` has 108, one of them the end. */
  socketPathBytes: 107,
  /** Frames that a stage holds before it reads on: one of every session, merged into one decode. */
  stageFrames: 256,
  /** Time for a stage to answer a question between two decodes. */
  stageAnswerMs: 30_000,
  /** Time for a stage to give its figures for a status: it does so between two messages, whatever it computes. */
  stageReportMs: 1_000,
  /** Characters of one line that a stage says on standard error. */
  stageLineCharacters: 8192,
  /** Time for a stage process to answer on its socket after its start. */
  stageStartMs: 30_000,
  /** Time for a stage to load its slice: 100 GB from a slow disk. */
  stageLoadMs: 1_800_000,
  /** Time between the end of a stage's sockets and the news of its process's end. */
  stageExitMs: 500,
  /** Time for a stage to end after it was told to; then it is killed. */
  stageStopMs: 5_000,
  /** Time for an agent to reach its neighbour when a ring is linked. */
  linkMs: 10_000,
  /** Time for the probe token to go all the way round. */
  probeMs: 60_000,
  /** Bytes of a GGUF header (metadata and tensor table): ten times the largest vocabulary in use. */
  ggufHeaderBytes: 256 * 1024 * 1024,
  /** Metadata keys of one GGUF file; the largest in use have some hundreds. */
  ggufKeys: 65_536,
  /** Tensors of one model: 512 layers of 128 tensors. */
  ggufTensors: 65_536,
  /** Bytes of a metadata key: the bound the GGUF format sets. */
  ggufKeyBytes: 65_535,
  /** Bytes of one text in the metadata: a thousand times the longest chat template in use. */
  ggufTextBytes: 16 * 1024 * 1024,
  /** Elements of one metadata array: four vocabularies of four million tokens. */
  ggufArrayElements: 16 * 1024 * 1024,
  /** Shards of one split model. */
  ggufShards: 4096,
  /** Layers of one model: the size of llama.cpp's per-layer tables. */
  modelLayers: 512,
  /** Experts of one layer: llama.cpp asserts it. */
  modelExperts: 1024,
  /** Age from which an unfinished slice that nobody writes to is removed. */
  abandonedCutMs: 3_600_000,
  /** Bytes held at once while weights are copied or hashed. */
  copyBufferBytes: 4 * 1024 * 1024,
  /** Time for an agent to answer on its addresses after its start: it verifies its journal first. */
  agentStartMs: 60_000,
  /** Time for an agent and its stages to end after they were told to; then they are killed. */
  agentStopMs: 12_000,
  /** Agents that one command starts on one machine: the demo, tests and benchmarks need few. */
  localAgents: 16,
  /** Bytes kept of what a started agent says last. */
  agentSaidBytes: 8192,
  /** Bytes a neighbour may send ahead of what is read: a prefill frame of 8 MiB crosses without waiting for credit. */
  rpcStreamWindowBytes: 16 * 1024 * 1024,
  /** Connections to an agent: every host of a fleet, each from several processes. */
  rpcConnections: 1024,
  /** Calls at once on one connection: a bridge holds two for each session of several rings. */
  rpcStreams: 4096,
  /** Time for a TLS handshake; a peer that only connects holds nothing for longer. */
  rpcHandshakeMs: 10_000,
  /** Quiet time on a connection after which a ping asks whether the peer still lives. */
  rpcKeepaliveMs: 10_000,
  /** Time for the answer to such a ping; a loaded host answers late, a dead one never. */
  rpcKeepaliveAnswerMs: 10_000,
  /** Time from a failed connection to the next try, at first; gRPC doubles it. */
  rpcReconnectMs: 250,
  /** Time to find out why a connection failed. */
  rpcDiagnosisMs: 3_000,
  /** Bytes of the facts of an error in trailing metadata: HTTP/2 peers take 64 KiB of headers, base64 adds a third. */
  rpcFactsBytes: 8 * 1024,
  /** Characters kept of a foreign error's text. */
  rpcDetailsLength: 300,
  /** Latest frames of a link whose acknowledgement times are kept. */
  linkSamples: 512,
  /** Time for the reason of a loss to come round a ring, once a neighbour has closed its link without one. */
  lossNewsMs: 500,
  /** Time for a neighbour to take note that a link closes. */
  linkCloseMs: 1_000,
  /** Least size of an agent's journal: a WAL, a batch on its way and the spare room leave enough to be of use. */
  journalLeastBytes: 64 * 1024 * 1024,
  /** WAL size at which a checkpoint comes before the next transaction. */
  journalWalBytes: 16 * 1024 * 1024,
  /** WAL size at which a checkpoint is taken when no commit waits: it then takes about 2 ms. */
  journalCheckpointBytes: 4 * 1024 * 1024,
  /** Room in the database that no admission is given: the ring of hops, and pages that are not quite full. */
  journalSpareBytes: 4 * 1024 * 1024,
  /** Records and bytes of one transaction: more only makes the next commit wait longer. */
  journalBatchRecords: 4096,
  journalBatchBytes: 4 * 1024 * 1024,
  /** Records whose commit has not ended: 10 s of 255 fast sessions; then the disk counts as failed. */
  journalWaitingRecords: 262_144,
  /** Records read from the journal at once, and the longest body read with them: 8 MiB a page at most. */
  journalPageRecords: 512,
  journalPageBodyBytes: 16 * 1024,
  /** Hops that the journal's trail keeps. */
  journalHops: 16_384,
  /** Hops that wait in memory for a commit to ride along with; then the oldest quarter is dropped. */
  journalGatheredHops: 4096,
  /** Hops that ride along with one commit at least: a few at a time would make every commit dearer. */
  journalHopBatch: 64,
  /** Hops that are written without a commit: an agent without a head commits nothing while its rings run. */
  journalLoneHops: 1024,
  /** Time for an agent to answer a call that only asks or notes something. */
  answerMs: 10_000,
  /** Time for an agent to say that it took a ring down: its stages get `stageStopMs`, then are killed. */
  unloadMs: 30_000,
  /** Time from a request's last token to its receipts: they come with the next frame. */
  settleMs: 60_000,
};

export const limits: { readonly [Name in keyof typeof bounds]: number } = bounds;

assert(limits.frameBytes < limits.grpcMessageBytes, 'a frame fits a gRPC message');
assert(limits.sessions < 256, 'one sequence is left for the dummy row');
assert(
  limits.waitingItems + 3 * limits.sessions + limits.cpuDecodeRows < limits.frameItems,
  'what waits at the head fits one frame: each session may be cut, end and close, and rows follow',
);
assert(limits.journalCheckpointBytes < limits.journalWalBytes, 'a checkpoint is tried in a pause before it is forced');
assert(limits.journalHopBatch < limits.journalLoneHops, 'hops ride along with a commit before they go alone');
assert(limits.journalLoneHops < limits.journalGatheredHops, 'hops are written before they are dropped');
