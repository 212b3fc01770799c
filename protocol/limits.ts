/** Every bound in one place, with its reason; relations between bounds are asserted at the end. */
import { assert } from './assert.ts';
import { journalBounds } from './journal-bounds.ts';
import { metricBounds } from './metric-bounds.ts';
import { reuseBounds } from './reuse-bounds.ts';

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
  /** Items of one hop frame: every session may open, adopt, begin, run, end and be kept in it. */
  frameItems: 2048,
  /**
   * Items that wait for the head stage before nobody new is admitted: with what the open sessions may add to end and
   * close, they fit one frame.
   */
  waitingItems: 512,
  /** Items of those that wait which one frame takes: half of what it may have. The rest goes with the next frames. */
  frameWaitingItems: 1024,
  /** Tokens that come with them, for samplers that are built again: 4 MiB. */
  frameTokens: 1_048_576,
  /** Frames on their way to one node that it has not finished: enough to keep it busy, few enough to push back. */
  linkWindowFrames: 4,
  /** Frames at the head stage: one that it computes and one that waits. */
  headFrames: 2,
  /**
   * With a prompt's chunks between, sessions that decode come to their next token in so many times the time that they take by
   * themselves: less than three, with room for what is not foreseen.
   */
  slowestBeside: 2.5,
  /** Rows of a chunk beside sessions that decode when no step was measured yet. */
  firstChunkRows: 4,
  /** Requests that ended and whose texts and settlements the head's agent still answers from memory, for each ring. */
  keptRequests: 256,
  /** Requests whose text an agent still has for readers: all its running ones and the latest that ended. */
  keptTranscripts: 1024,
  /** Callers that wait for a session of a ring to end; each is a stream that stays open. */
  waitingSessions: 64,
  /** When to try again at a ring whose sessions are taken and whose queue is full. */
  busyRetrySeconds: 10,
  /** How long a session may stay without its lease. */
  lingerMs: 3_600_000,
  /** How long requests wait for a lost part of their ring, unless the plan says: a machine restarts in it. */
  defaultDeadlineSeconds: 60,
  /** Most that a plan may say: a day. */
  deadlineSeconds: 86_400,
  /** How long a deadline is put off while a stage is seen to load again: as long as a load may take. */
  reloadMs: 1_800_000,
  /** Stages of one host that may end within one outage; further ones are started again, but not waited for beyond the deadline. */
  stagesLostMost: 3,
  /** Time between two tries to bring a suspended ring back, at first, and at most: each next one is doubled. */
  recoveryRetryMs: 250,
  recoveryRetryMostMs: 2_000,
  /** Time for clients to come back to their sessions when an agent has started again. */
  orphanLeaseMs: 120_000,
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
  /** CPUs of one host: the most that Linux for x86 can be built for. */
  hostCpus: 8192,
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
  /** Time between two looks at whether a stage still answers. */
  stageHeartbeatMs: 2_000,
  /** How many of them in a row it may miss: a process that is stopped for longer is ended, and started again. */
  stageSilences: 15,
  /** How many of them make a stage silent: no token goes round its ring, as far as can be told. */
  stageSilencesTold: 2,
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
  /** Least limit of a stage's memory, in MiB: the program alone takes a third of it. */
  stageLeastMemoryMiB: 256,
  /** Most of it: 16 TiB, more than any host has. */
  stageMostMemoryMiB: 16 * 1024 * 1024,
  /** Time for systemd, or the unit that serves requests, to take an order to start or stop a stage. */
  stageOrderMs: 10_000,
  /** Bytes of what a unit's stage said that are kept in its folder, in memory, after its agent has read them. */
  stageLogBytes: 1024 * 1024,
  /** Longest time between two words to the service manager: a status that people look at is that old. */
  serviceStatusMs: 10_000,
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
  /** Age from which the part of an upload that was cut short is removed: a week to go on with it. */
  abandonedUploadMs: 604_800_000,
  /** Bytes of one piece of a slice on its way to a host: what an agent unpacks between two tokens. */
  sliceChunkBytes: 256 * 1024,
  /** Slices that one host is sent at once: a disk writes a few streams as fast as many. */
  sliceUploads: 2,
  /** Threads of an agent that hash and cut; more would take the stages' cores. */
  sliceTasks: 2,
  /** Tries of one upload that make no way before it is given up: an agent that starts again, or sees a dead sender, is back. */
  sliceUploadTries: 25,
  /** Time between two tries of an upload, and between two looks at one of somebody else. */
  sliceRetryMs: 1_000,
  /** Slices that one call may ask about or remove. */
  slicesAsked: 4096,
  /** Characters of a path: Linux allows 4096 bytes. */
  pathCharacters: 4096,
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
  /** At most: an agent that has started again is found so much later. */
  rpcReconnectMostMs: 2_000,
  /** Who waits for a token asks after so long without one which part of the ring is silent, and again after as long. */
  readerSilenceMs: 5_000,
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
  /** Bytes of one line on an agent's socket for its host: an answer that names so many loads takes a fifth of it. */
  hostLineBytes: 1024 * 1024,
  /** Connections to it at once: people's commands. */
  hostConnections: 8,
  /** Time for an answer on it: a ring that is forgotten has its stages ended first. */
  hostAnswerMs: 60_000,
  /** Time for a TCP connection to a host's ssh port: two resends of a lost packet, over any distance. */
  sshConnectMs: 10_000,
  /** Time for the ssh handshake and the login; a host that asks its name service first takes most of it. */
  sshLoginMs: 30_000,
  /** Tries of a connection that breaks off before the server says who it is: sshd turns some away when many come. */
  sshConnectTries: 4,
  /** Pause before such a try, at first; each next one is doubled. */
  sshRetryMs: 250,
  /** Quiet time on a connection after which the host is asked whether it lives. */
  sshKeepaliveMs: 5_000,
  /** Quiet time after which a connection counts as lost: three such questions and their answers. */
  sshSilenceMs: 20_000,
  /** Commands at once on one connection: sshd allows ten sessions by default, and two stay free to end others. */
  sshCommands: 8,
  /** Time for a shell to start on the host, sudo's delay after a wrong password included. */
  sshShellMs: 30_000,
  /** Time for an ended command to be gone; then its channel is left to itself. */
  sshEndMs: 5_000,
  /** Bytes that a login shell may print before a script starts. */
  sshPreambleBytes: 256 * 1024,
  /** Bytes that a command which is not streamed may print. */
  sshOutputBytes: 64 * 1024 * 1024,
  /** Bytes kept of what a command says on standard error: its last ones. */
  sshErrorBytes: 64 * 1024,
  /** Bytes given to a channel at once: enough for a full window to be on its way while more is read. */
  sshChunkBytes: 256 * 1024,
  /** Hosts that are connected to at once: each takes a key exchange's worth of the processor. */
  sshForks: 16,
  /** Machines on the way to one host. */
  sshHops: 8,
  /** Files that ssh's configuration includes, one in another. */
  sshConfigDepth: 16,
  /** Wrong answers to one question for a secret; sudo itself allows three tries. */
  secretTries: 3,
  /** Bytes of a secret: what fits a line of a terminal. */
  secretBytes: 4096,
  /** Addresses of one host that are probed: more are those of containers, whose bridges were made last. */
  probeAddresses: 64,
  /** Probes under way at once on one host: each holds a connection and at most a large frame. */
  probeOrders: 64,
  /** Bytes of one line between operator and probe program: all addresses of a host, with room. */
  probeLineBytes: 256 * 1024,
  /** Time for the probe program to look at its host and listen. */
  probeBeginMs: 15_000,
  /** Time for a connection to a probe program, and then for each of its answers; a WAN takes a third of it. */
  probeAnswerMs: 1_500,
  /** Round trips of which the shortest counts. */
  probePings: 5,
  /** Bytes of the large frame that a probe sends at once: seven jumbo frames, to meet every MTU on the way. */
  probeFrameBytes: 64 * 1024,
  /** Time for that frame to go and to come back; TCP resends at least twice in it. */
  probeFrameMs: 2_000,
  /** Time of a burst in one direction: TCP has reached its speed on a LAN by then. */
  probeBurstMs: 100,
  /** Bytes of a burst in one direction: 10 Gb/s for half of its time. */
  probeBurstBytes: 64 * 1024 * 1024,
  /** Time in which further rounds of bursts begin where a decision is in doubt: an operator waits for it. */
  probeRepeatsMs: 20_000,
  /** Life of a probe program: a fleet of the largest size is measured in it. */
  probeLifeMs: 1_800_000,
  /** Time between two looks of an agent at whether its advertised address is still its own. */
  addressCheckMs: 3_000,
  /** Bytes from which a file's hash is remembered between commands: smaller ones are read faster than looked up. */
  rememberedHashBytes: 1024 * 1024,
  /** Bytes from which a file of a release is sent by itself; smaller ones go together, in one stream. */
  loneObjectBytes: 16 * 1024 * 1024,
  /** Bytes of files that are sent together: it is there twice on the host until they are taken apart. */
  packBytes: 64 * 1024 * 1024,
  /** Bytes sent to a host to see how fast it takes them. */
  paceSampleBytes: 4 * 1024 * 1024,
  /** Bytes a second above which compression slows sending down: gzip takes 50 to 65 MB/s and leaves 40 % of Node. */
  compressBelowRate: 30 * 1024 * 1024,
  /** Bytes of a release that are read at once while it is sent. */
  sendChunkBytes: 256 * 1024,
  /** Free bytes that a host keeps beyond what it is sent: journals of running rings are on the same disk. */
  hostSpareBytes: 64 * 1024 * 1024,
  /** Releases that stay on a host besides the one in use: what somebody may want to go back to. */
  keptReleases: 2,
  /** Time for the agent of a new release to answer on its advertised address; then its host goes back. */
  releaseProofMs: 30_000,
  /** Lines of what a program on a host said last that an error shows. */
  saidLines: 12,
  /** Hosts that a deployment works on at once. */
  deployForks: 16,
  /** Time for an agent to answer a call that only asks or notes something. */
  answerMs: 10_000,
  /** Time for an agent to say that it took a ring down: its stages get `stageStopMs`, then are killed. */
  unloadMs: 30_000,
  /** Time from a request's last token to its receipts: they come with the next frame. */
  settleMs: 60_000,
  /** Time that a command whose answer is told waits for its receipts: those of a suspended ring come when it is back. */
  receiptsMs: 5_000,
  /**
   * Time between two looks at whether receipts that were on their way have come, at first, and at most: each next one is
   * doubled. Those of a ring that is well come with its next round.
   */
  settlePollMs: 10,
  settlePollMostMs: 250,
  ...journalBounds,
  ...metricBounds,
  ...reuseBounds,
};

export const limits: { readonly [Name in keyof typeof bounds]: number } = bounds;

assert(limits.frameBytes < limits.grpcMessageBytes, 'a frame fits a gRPC message');
assert(limits.sessions < 256, 'one sequence is left for the dummy row');
assert(
  limits.waitingItems + 5 * limits.sessions + limits.cpuDecodeRows < limits.frameItems,
  'what waits at the head fits one frame: each session may be cut, end, drop a prefix and be kept, room be made, and rows follow',
);
assert(limits.journalCheckpointBytes < limits.journalWalBytes, 'a checkpoint is tried in a pause before it is forced');
assert(
  limits.journalRetainSeconds <= limits.journalSettlementSeconds,
  'a settlement does not go before the text it is of',
);
assert(limits.journalHopBatch < limits.journalLoneHops, 'hops ride along with a commit before they go alone');
assert(limits.journalLoneHops < limits.journalGatheredHops, 'hops are written before they are dropped');
