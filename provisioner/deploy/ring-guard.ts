/** Loaded rings that a deployment would end: it is refused, unless it was told to. */
import { P4Error } from '../../protocol/errors.ts';
import { hostLayout } from '../host-layout.ts';
import { ringsOn, type LoadedRing } from '../network/kept-choice.ts';
import type { Deployment } from './deploy-order.ts';
import type { Change } from './difference.ts';
import type { HostRun } from './host-run.ts';

/** Whether changes restart the agent, and with that end the rings on its host. */
export const restartsAgent = (changes: readonly Change[]): boolean =>
  changes.some(
    ({ resource, action }) =>
      resource.kind === 'unit' &&
      resource.name === hostLayout.agentUnit &&
      action.kind === 'unit' &&
      action.steps.includes('restart'),
  );

const endedRings = ({ name, changes }: HostRun, rings: readonly LoadedRing[]): readonly string[] =>
  restartsAgent(changes) ? ringsOn(name, rings) : [];

/** Each host under whose rings the agent would restart fails, in the phase that is under way. */
export function refuseEndedRings({ order, hosts, report }: Deployment, rings: readonly LoadedRing[]): void {
  if (!order.phases.has('services') || order.restartsRings) return;
  for (const host of hosts) {
    const ended = endedRings(host, rings);
    if (ended.length === 0) continue;
    host.fail(report.current ?? 'release', new P4Error('RINGS_WOULD_STOP', { host: host.name, rings: ended }));
  }
}

/** Where that was asked for. */
export function noteEndedRings({ order, hosts, report }: Deployment, rings: readonly LoadedRing[]): void {
  if (!order.phases.has('services') || !order.restartsRings) return;
  for (const host of hosts) {
    const ended = endedRings(host, rings);
    if (ended.length === 0) continue;
    const verb = order.isCheck ? 'would restart' : 'restarts';
    report.note(`${host.name} ${verb} its agent under ${ended.join(', ')}: load again afterwards`);
    report.event({ event: 'rings-end', host: host.name, rings: ended });
  }
}
