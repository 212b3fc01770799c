/** How the journal bounds its files, its transactions and its upkeep; a part of `limits`. */
export const journalBounds = {
  /** Time between two tries to open a journal that could not be written. */
  journalRetryMs: 2_000,
  /** Least size of an agent's journal: a WAL, a batch on its way and the spare room leave enough to be of use. */
  journalLeastBytes: 64 * 1024 * 1024,
  /** WAL size at which a checkpoint comes before the next transaction. */
  journalWalBytes: 16 * 1024 * 1024,
  /** WAL size at which a checkpoint is taken when no commit waits: it then takes about 2 ms. */
  journalCheckpointBytes: 4 * 1024 * 1024,
  /** Room in the database that no admission is given: the ring of hops, and pages that are not quite full. */
  journalSpareBytes: 4 * 1024 * 1024,
  /**
   * From the begin of one transaction to that of the next, as long as there are only tokens to write: what a commit costs
   * beside the stages is shared by the tokens of this time. A reader is told what is new thirty times a second.
   */
  journalGatherMs: 30,
  /** Records and bytes of one transaction: more only makes the next commit wait longer. */
  journalBatchRecords: 4096,
  journalBatchBytes: 4 * 1024 * 1024,
  /** Records whose commit has not ended: 10 s of 255 fast sessions; then the disk counts as failed. */
  journalWaitingRecords: 262_144,
  /** Records read from the journal at once, and the longest body read with them: 8 MiB a page at most. */
  journalPageRecords: 512,
  journalPageBodyBytes: 16 * 1024,
  /** Records looked at to find those of one request in a page: about 2 ms in which no commit can run. */
  journalPageNumbers: 8192,
  /** How long a request's token ids stay in the journal after its session was closed: a day to read a text again. */
  journalRetainSeconds: 86_400,
  /** How long its end and its settlement stay, unless they are acknowledged: a month, in which somebody bills. */
  journalSettlementSeconds: 30 * 86_400,
  /** Time between two looks at what has had its time: a look goes through all requests that the journal knows. */
  journalCompactionMs: 600_000,
  /** Least time between two such looks for want of room: a client that is refused tries again at once. */
  journalRoomMs: 1_000,
  /** Requests looked at in one piece, between which the event loop runs: about a millisecond. */
  journalSweepRequests: 4096,
  /** Records read, and bytes of their bodies, in one slice of compaction: about 2 ms in which no commit can run. */
  journalSliceRecords: 256,
  journalSliceBytes: 256 * 1024,
  /** Pause between two slices: compaction takes a tenth of the disk's time at most, and commits go between. */
  journalSlicePauseMs: 20,
  /** How long compaction waits for those who read; then it is left to the next look. */
  journalReadersMs: 60_000,
  /** Free pages (4 KiB) that the database keeps for what comes next; more are given back to the disk. */
  journalFreePages: 1024,
  /** Pages given back in one slice: each is a page moved. */
  journalVacuumPages: 64,
  /** Record numbers looked at together when a damaged journal is read; what cannot be read is halved until it is one. */
  journalScanNumbers: 8192,
  /** Ids that a repair leaves out for lost records: each may have borne a new one, and there are 4 billion. */
  journalLostIds: 1_048_576,
  /** Ranges of lost records, and faults, that are named one by one. */
  journalNamedFaults: 64,
  /** Loads of a journal that are named one by one. */
  journalNamedLoads: 1000,
  /** Hops that the journal's trail keeps. */
  journalHops: 16_384,
  /** Hops that wait in memory for a commit to ride along with; then the oldest quarter is dropped. */
  journalGatheredHops: 4096,
  /** Hops that ride along with one commit at least: a few at a time would make every commit dearer. */
  journalHopBatch: 64,
  /** Hops that are written without a commit: an agent without a head commits nothing while its rings run. */
  journalLoneHops: 1024,
};
