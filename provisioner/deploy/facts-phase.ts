/** The phase `facts`: what each host is, whether it can run p4, and whether two entries are one machine. */
import { askLibraries } from '../release/host-libraries.ts';
import { cudaDecision } from './cuda.ts';
import type { Deployment } from './deploy-order.ts';
import { factsScript } from './facts-script.ts';
import { parseFacts } from './facts.ts';
import { onHosts } from './fork.ts';
import { clockWarningMs, sharedMachines, unfitness, type ReleaseNeeds } from './host-fitness.ts';
import { hostLayout } from '../host-layout.ts';
import type { HostRun } from './host-run.ts';
import { isMonitoringHost } from './monitoring/monitoring-desire.ts';
import { monitoringFactsScript, parseMonitoringFacts } from './monitoring/monitoring-facts.ts';
import { runHostScript } from '../ssh/host-script.ts';
import { ownArchitecture, type ReleaseShelf } from './release-phase.ts';

/** @param shelf for what a release wants of a host's libraries, which is asked at the same time */
export async function gatherFacts(deployment: Deployment, needs: ReleaseNeeds, shelf: ReleaseShelf): Promise<void> {
  const { order, hosts, signal } = deployment;
  await onHosts({ phase: 'facts', hosts, forks: order.forks }, async (host) => {
    const script = factsScript([hostLayout.programs, host.host.variables.stateFolder]);
    const [text, libraries, monitoring] = await Promise.all([
      runHostScript(host.session, 'gather facts', { script, signal }),
      shelf
        .release(ownArchitecture, 'none')
        .then((release) => askLibraries({ session: host.session, root: hostLayout.programs, signal }, release.needs)),
      isMonitoringHost(order, host.name)
        ? runHostScript(host.session, 'look for Prometheus', { script: monitoringFactsScript, signal })
        : null,
    ]);
    host.facts = parseFacts(host.name, text);
    host.libraries = libraries;
    if (monitoring !== null) host.monitoring = parseMonitoringFacts(host.name, monitoring);
    const fault = unfitness(host.name, host.facts, { needs, now: new Date() });
    if (fault !== null) host.fail('facts', fault);
    else tell(deployment, host);
  });
  const known = hosts.filter(({ hasFacts }) => hasFacts).map(({ name, facts }) => ({ host: name, facts }));
  for (const { host, error } of sharedMachines(known)) hosts.find(({ name }) => name === host)?.fail('facts', error);
}

function tell({ report }: Deployment, { name, facts, host }: HostRun): void {
  const memory = `${Math.round(facts.memoryBytes / 1024 ** 3)} GiB`;
  const privileges = facts.hasPolkit ? 'polkit' : 'no polkit';
  report.host(name, `${facts.os.name}, ${facts.machine}, ${facts.cpus} CPUs, ${memory}, ${privileges}`);
  const offMs = facts.clockMs - Date.now();
  if (Math.abs(offMs) > clockWarningMs) {
    report.host(name, `its clock is ${Math.round(Math.abs(offMs) / 60_000)} minutes ${offMs < 0 ? 'behind' : 'ahead'}`);
  }
  const cuda = cudaDecision(facts.nvidia, host.variables.gpus);
  if (cuda.kind === 'use') report.host(name, `GPUs: ${cuda.gpus.map((gpu) => gpu.name).join(', ')}`);
  if (cuda.kind === 'missing') report.host(name, `its GPUs stay unused: ${cuda.what.join('; ')}`);
  report.event({ event: 'facts', host: name, ...facts, freeBytes: Object.fromEntries(facts.freeBytes) });
}
