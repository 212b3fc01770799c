/** What the benchmark says to the process that scrapes an agent, and what comes back. */
import type { NetAddress } from '../../protocol/net-address.ts';

export type ScrapeOrder =
  /** From now on, once in so many milliseconds. */
  { readonly kind: 'scrape'; readonly target: NetAddress; readonly everyMs: number } | { readonly kind: 'stop' };

export type ScrapeAnswer =
  | { readonly kind: 'scraping' }
  /** `scrapes`: answers that came whole; `failures`: those that did not. */
  | { readonly kind: 'stopped'; readonly scrapes: number; readonly failures: number };
