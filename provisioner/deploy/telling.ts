/** What a deployment tells of its phases: each failure under the phase in which it happened. */
import type { Deployment } from './deploy-order.ts';
import type { PhaseName } from './phase.ts';

export function beginPhase(deployment: Deployment, phase: PhaseName): void {
  tellFailures(deployment);
  deployment.report.phase(phase);
}

/** Those that were not told yet. */
export function tellFailures({ hosts, report }: Deployment): void {
  for (const host of hosts) {
    const failure = host.untoldFailure();
    if (failure !== null) report.failure(host.name, failure.phase, failure.error);
  }
}
