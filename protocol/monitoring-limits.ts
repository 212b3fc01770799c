/** The bounds of setting up and watching the fleet's Prometheus, each with its reason. */

export const monitoringLimits = {
  /** Time to fetch lists of packages, or a package, on a host: 100 MB over a slow line. */
  packageFetchMs: 300_000,
  /** Time for what was fetched to be installed, on a busy host. */
  packageInstallMs: 300_000,
  /** Time to wait until another installation on the host is done: the daily one of a host that was just switched on. */
  packageLockMs: 120_000,
  /** Time for Prometheus to answer after it was started: it reads what it wrote last. */
  readyMs: 60_000,
  /** Time for a target to be scraped: two intervals of 15 s, one for an agent that came up just now. */
  scrapeMs: 30_000,
  /** Bytes of an answer of Prometheus that are read: a target takes some 1,500. */
  answerBytes: 4 * 1024 * 1024,
} as const;
