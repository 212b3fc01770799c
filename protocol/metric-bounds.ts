/** The bounds of metrics, a part of `limits.ts`. */
export const metricBounds = {
  /** Time between two looks at how late the event loop is: 20 a second cost nothing, and are 300 between two scrapes. */
  eventLoopLookMs: 50,
  /** Characters of a name that becomes a label's value. */
  metricLabelCharacters: 64,
  /** Digits of a digest that becomes one: enough to tell plans apart. */
  metricDigestDigits: 12,
  /** Time between two looks at the GPUs. */
  gpuLookMs: 5_000,
  /** Age at which what was seen of a GPU is not shown any more. */
  gpuStaleMs: 20_000,
  /** Time from the end of the program that looks to its next start. */
  gpuRetryMs: 60_000,
  /** Time that a scrape waits for stages and host to tell their figures; then it shows what they told last. */
  metricFiguresMs: 250,
  /** Time that writing metrics takes of the event loop at a stretch: a tenth of a fast token. */
  metricSliceMs: 0.5,
  /** Age up to which a scrape is shown again: any number of scrapers costs one collection a second. */
  metricCacheMs: 1_000,
  /** What a load's later speed is compared with. */
  firstHourMs: 3_600_000,
  /** Stretch in which a ring's load counts as one level: some tokens even of a slow ring. */
  speedStretchMs: 10_000,
  /** Times between tokens from which their mean says something. */
  speedLeastTokens: 100,
  /** Time for an agent to answer a watch, whose next look is soon: whoever takes longer is shown as silent meanwhile. */
  watchAnswerMs: 3_000,
  /** Seconds between two looks of a watch: no more than an hour. */
  watchIntervalSeconds: 3_600,
  /** Points of a watch's history: wider than screens are. */
  watchHistory: 512,
  /** Bytes of a request for metrics with its headers; Prometheus sends some 400. */
  metricHeaderBytes: 8 * 1024,
  /** Time for a request to come in and for its answer to be taken. */
  metricRequestMs: 5_000,
  /** Time that a quiet connection is kept: longer than scrapers usually pause. */
  metricKeepAliveMs: 90_000,
  /** Connections to each address that metrics are shown at. */
  metricConnections: 32,
  /** Requests served a second, all scrapers together; more wait, and then are sent away. */
  metricRequestsPerSecond: 50,
  /** Longest time that a request waits for that. */
  metricWaitMs: 1_000,
  /** Time between two tries to listen where it was not possible. */
  metricRetryMs: 10_000,
};
