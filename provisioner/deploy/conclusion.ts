/** How a deployment ends: what failed, what each host is left with, the recap, the exit status. */
import type { P4Error } from '../../protocol/errors.ts';
import type { Deployment } from './deploy-order.ts';
import { leftState, leftTexts } from './left-state.ts';
import { tellFailures } from './telling.ts';

/**
 * @param cutShort what ended it before its end, a signal for one; `null` where it came to its end
 * @returns the exit status: that of the first host's failure
 */
export function conclude(deployment: Deployment, cutShort: P4Error | null): number {
  const { hosts, report, order } = deployment;
  tellFailures(deployment);
  const failures = hosts.flatMap(({ failure }) => (failure === null ? [] : [failure]));
  const isWhole = failures.length === 0 && cutShort === null;
  if (!isWhole && !order.isCheck) tellLeft(deployment);
  const recaps = hosts.map(({ recap }) => recap);
  report.recap(recaps);
  report.event({
    event: 'deployed',
    check: order.isCheck,
    isCutShort: cutShort !== null,
    changed: recaps.reduce((sum, { changed }) => sum + changed, 0),
    failed: failures.length,
  });
  return failures[0]?.error.rule.exit ?? 0;
}

function tellLeft({ hosts, report }: Deployment): void {
  report.heading('left', 'what each host is left with; run it again, or leave out what failed with --limit');
  for (const host of hosts) {
    const state = leftState(host);
    report.host(host.name, leftTexts[state]);
    report.event({ event: 'left', host: host.name, state });
  }
}
