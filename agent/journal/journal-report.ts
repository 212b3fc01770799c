/** The loads of a journal, for people. */
import type { JournalLoad, JournalReport } from '../../protocol/host-order.ts';
import { limits } from '../../protocol/limits.ts';
import type { Ledger } from './ledger.ts';

export function loadsOf(ledger: Ledger): Pick<JournalReport, 'loads' | 'moreLoads'> {
  const histories = ledger.histories();
  const named = histories.slice(-limits.journalNamedLoads);
  const loads = named.map(({ ring, load, number, sessions, requests, highest }): JournalLoad => ({
    ...{ ring, load, stands: ledger.isLive(number) },
    ...{ sessions: sessions.size, requests: requests.count, lastRequest: highest.request },
  }));
  return { loads, moreLoads: histories.length - named.length };
}
