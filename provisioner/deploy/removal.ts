/** `--remove`: takes p4 away from hosts: units, processes, files, user, and the state with its journals and slices. */
import { P4Error } from '../../protocol/errors.ts';
import type { HostName } from '../../protocol/ids.ts';
import type { InventoryHost } from '../../protocol/inventory.ts';
import { changeWholeFleet } from '../fleet-file.ts';
import { interruption } from '../interrupt.ts';
import { ringsOn, type LoadedRing } from '../network/kept-choice.ts';
import { shellQuoted } from '../ssh/shell-quoting.ts';
import type { Operator } from '../ssh/operator-config.ts';
import { unitFiles, unitFolders, unitNames } from '../units/unit-files.ts';
import { becomeRoot, connect, lockHosts } from './access-phases.ts';
import { actualScript, parseActual } from './actual.ts';
import { goesOn, type Deployment } from './deploy-order.ts';
import { slicesResource, stateResource } from './desired.ts';
import { refuseForeignState } from './foreign-state.ts';
import { onHosts } from './fork.ts';
import { hostLayout } from '../host-layout.ts';
import type { HostRun } from './host-run.ts';
import { loadedRings } from './loaded-rings.ts';
import { tellLeftBehind, tellStaleTargets } from './monitoring/monitoring-phase.ts';
import { piecesScript, withdrawScript } from './monitoring/withdrawal.ts';
import { tellFailures, beginPhase } from './telling.ts';
import { runHostScript } from '../ssh/host-script.ts';

export interface RemovalOptions {
  readonly isConfirmed: boolean;
}

/**
 * All hosts are looked at before anything goes from any: one that fails keeps what it has, and so do the others.
 * @throws REMOVAL_UNCONFIRMED
 */
export async function runRemoval(
  deployment: Deployment,
  operator: Operator,
  { isConfirmed }: RemovalOptions,
): Promise<void> {
  const { order, hosts, report } = deployment;
  await connect(deployment, operator);
  await becomeRoot(deployment);
  if (!goesOn(deployment)) return;
  beginPhase(deployment, 'facts');
  const found = await findPieces(deployment);
  if (!goesOn(deployment)) return;
  const rings = await loadedRings(
    deployment,
    hosts.filter((host) => found.get(host)?.runsStages === true),
  );
  if (!order.isCheck) confirm(found, rings, isConfirmed);
  await lockHosts(deployment);
  if (!goesOn(deployment)) return;
  tellFailures(deployment);
  report.heading('remove', 'all that is of p4 on each host');
  for (const host of hosts.filter(({ hasFailed }) => !hasFailed)) {
    tellEndedRings(deployment, host, rings);
    if (order.isCheck) tellRemoved(deployment, host, found);
  }
  if (!order.isCheck) await removeAll(deployment, found);
  tellStaleTargets(deployment);
}

/** A signal spares the hosts that were not begun. */
async function removeAll(deployment: Deployment, found: FoundPieces): Promise<void> {
  const { order, hosts, report, signal } = deployment;
  try {
    await onHosts({ phase: report.current ?? 'lock', hosts, forks: order.forks }, async (host) => {
      if (signal.aborted) throw interruption(signal);
      await runHostScript(host.session, 'remove p4', { script: removeScript(host.host) });
      // It went with its folder.
      host.isLocked = false;
      host.end = 'removed';
      tellRemoved(deployment, host, found);
    });
  } finally {
    const gone = new Set(hosts.filter(({ end }) => end === 'removed').map(({ name }) => name));
    await changeWholeFleet(order.state, ({ hosts: known, measurement }) => ({
      hosts: known.filter(({ name }) => !gone.has(name)),
      measurement,
    }));
  }
}

interface Found {
  /** One piece each, in the order they are removed. */
  readonly pieces: readonly string[];
  /** Whether there is a stage that a removal ends. */
  readonly runsStages: boolean;
}

type FoundPieces = ReadonlyMap<HostRun, Found>;

async function findPieces({ order, hosts, signal }: Deployment): Promise<FoundPieces> {
  const found = new Map<HostRun, Found>();
  await onHosts({ phase: 'facts', hosts, forks: order.forks }, async (host) => {
    const asked = [stateResource(host.host), slicesResource(host.host)];
    const [answer, text] = await Promise.all([
      runHostScript(host.session, 'look for p4', { script: findScript(host.host), signal }),
      runHostScript(host.session, 'look at the host', { script: actualScript(asked), signal }),
    ]);
    refuseForeignState(host.host, parseActual(host.name, asked, text));
    const lines = answer.split('\n').filter((line) => line !== '');
    found.set(host, {
      pieces: lines.filter((line) => line !== runningStage),
      runsStages: lines.includes(runningStage),
    });
  });
  return found;
}

/** What has gone, or with `--check` would. */
function tellRemoved(deployment: Deployment, host: HostRun, found: FoundPieces): void {
  const { report } = deployment;
  const pieces = found.get(host)?.pieces ?? [];
  for (const text of pieces) {
    const change = { resource: { kind: 'absent', path: text }, phase: 'files', action: { kind: 'delete' } } as const;
    host.noteRemoved(text);
    report.change(host.name, { ...change, text: `remove ${text}`, difference: null });
  }
  tellLeftBehind(deployment, host, pieces);
}

/** Rings that lose a host with it: they end, on all of their hosts. */
function tellEndedRings({ order, report }: Deployment, { name }: HostRun, rings: readonly LoadedRing[]): void {
  const ended = ringsOn(name, rings);
  if (ended.length === 0) return;
  report.host(name, `${order.isCheck ? 'would end' : 'ends'} ${endedText(ended)}`);
  report.event({ event: 'rings-end', host: name, rings: ended });
}

const endedText = (rings: readonly string[]): string =>
  `the loaded ${rings.length === 1 ? 'ring' : 'rings'} ${rings.join(', ')}`;

function confirm(found: FoundPieces, rings: readonly LoadedRing[], isConfirmed: boolean): void {
  const hosts = [...found].filter(([, { pieces }]) => pieces.length > 0).map(([{ name }]) => name);
  if (isConfirmed || hosts.length === 0) return;
  throw removalUnconfirmed(hosts, rings);
}

/** What a removal wants a word for: the hosts it empties, and on each the rings it ends. */
export function removalUnconfirmed(hosts: readonly HostName[], rings: readonly LoadedRing[]): P4Error {
  const ends = hosts.flatMap((host) => {
    const ended = ringsOn(host, rings);
    return ended.length === 0 ? [] : [`${host}: ${endedText(ended)}`];
  });
  return new P4Error('REMOVAL_UNCONFIRMED', { hosts, ends: ends.length === 0 ? 'no loaded ring' : ends });
}

/** Every file of ours outside our own folders, whatever kind of host it is. */
function strayFiles({ variables }: InventoryHost): readonly string[] {
  const { stateFolder, cpus, gpus, ports } = variables;
  const paths = (['polkit', 'request-folder'] as const).flatMap((privileges) =>
    unitFiles({ stateFolder, cpus, gpus, ports, hasGpus: false, privileges }).map(({ path }) => path),
  );
  return [...new Set([...paths, hostLayout.polkitRules])].filter((path) => !path.startsWith(`${hostLayout.programs}/`));
}

const ownFolders = (host: InventoryHost): readonly string[] => [
  hostLayout.configuration,
  hostLayout.runtime,
  hostLayout.trial,
  ...unitFolders.filter((path) => !path.startsWith(`${hostLayout.programs}/`)),
  host.variables.stateFolder,
  hostLayout.programs,
];

/** Units that may run. */
const runningUnits = [...unitNames.filter((name) => !name.includes('@')), hostLayout.trialUnit] as const;

/** A line that is no piece. */
const runningStage = 'a stage runs';

/** One piece a line, in the order they are removed. */
const findScript = (host: InventoryHost): string => `export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
for unit in ${runningUnits.join(' ')}; do
  if systemctl cat "$unit" >/dev/null 2>&1 || systemctl is-active --quiet "$unit"; then echo "unit $unit"; fi
done
systemctl list-units --all --plain --no-legend 'p4-stage@*' | awk '{ print "unit " $1 }'
if systemctl list-units --plain --no-legend --state=active 'p4-stage@*' | grep -q .; then echo '${runningStage}'; fi
${piecesScript('echo')}
for path in ${[...strayFiles(host), ...ownFolders(host)].map(shellQuoted).join(' ')}; do
  if [ -e "$path" ] || [ -L "$path" ]; then echo "$path"; fi
done
if getent passwd ${hostLayout.user} >/dev/null; then echo 'user ${hostLayout.user}'; fi
if getent group ${hostLayout.group} >/dev/null; then echo 'group ${hostLayout.group}'; fi
`;

/**
 * Goes on when a step has nothing to do; what must not be left is looked at at the end. The state folder may be a mount,
 * which stays, empty; the programs' folder goes last, and the lock with it.
 */
const removeScript = (host: InventoryHost): string => `export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
for unit in ${runningUnits.join(' ')}; do systemctl --quiet disable --now "$unit" 2>/dev/null; done
for unit in $(systemctl list-units --all --plain --no-legend 'p4-stage@*' | awk '{ print $1 }'); do systemctl stop "$unit"; done
systemctl stop p4.slice 2>/dev/null
${withdrawScript}
rm -f ${strayFiles(host).map(shellQuoted).join(' ')}
systemctl daemon-reload
systemctl reset-failed 'p4-*' 2>/dev/null
pkill -KILL -u ${hostLayout.user} 2>/dev/null
for folder in ${ownFolders(host).map(shellQuoted).join(' ')}; do
  rm -rf --one-file-system "$folder" 2>/dev/null || find "$folder/" -mindepth 1 -delete
done
if getent passwd ${hostLayout.user} >/dev/null; then userdel ${hostLayout.user}; fi
if getent group ${hostLayout.group} >/dev/null; then groupdel ${hostLayout.group}; fi
left=$(find ${[...strayFiles(host), ...ownFolders(host)].map(shellQuoted).join(' ')} -maxdepth 0 2>/dev/null)
for path in $left; do mountpoint -q "$path" || { echo "$path is still there" >&2; exit 1; }; done
exit 0
`;
