/** `deploy`: makes the hosts of an inventory run p4, or takes it away again. */
import { join } from 'node:path';

import type { Command } from 'commander';

import { P4Error } from '../../protocol/errors.ts';
import { hostName, isName, type HostName } from '../../protocol/ids.ts';
import type { Inventory } from '../../protocol/inventory.ts';
import { limits } from '../../protocol/limits.ts';
import { modeOf, runCommand, userPath, type CommandContext } from '../command.ts';
import { changeFleet, readFleet } from '../fleet-file.ts';
import { interruption } from '../interrupt.ts';
import { hasCertificate, revokeCertificate } from '../pki.ts';
import { makeOwnerFolder } from '../durable-file.ts';
import { wholeNumber } from '../number-option.ts';
import { presentOperator } from '../ssh/operator-config.ts';
import { TerminalPrompt } from '../ssh/secret-prompt.ts';
import { addSshOptions, readSshOptions, type SshOptionValues } from '../ssh/ssh-options.ts';
import type { StateFolder } from '../state-folder.ts';
import { whileLocked } from '../state-lock.ts';
import { chosenState, stateOptionText } from '../state-option.ts';
import { letGo } from './access-phases.ts';
import { limitedHosts, type Deployment, type DeployOrder } from './deploy-order.ts';
import { conclude } from './conclusion.ts';
import { runDeployment } from './deployment.ts';
import { tellStrayHosts } from './fleet-members.ts';
import { hostLockOwner } from './host-lock.ts';
import { HostRun } from './host-run.ts';
import { openInventory } from './inventory-file.ts';
import { chosenPhases, phaseNames } from './phase.ts';
import { runRemoval } from './removal.ts';
import { Report } from './report.ts';

interface DeployOptions extends SshOptionValues {
  readonly check?: boolean;
  readonly diff?: boolean;
  readonly limit?: string;
  readonly tags?: string;
  readonly forks: string;
  readonly remove?: boolean;
  readonly yes?: boolean;
  readonly revoke?: string;
  readonly restartRings?: boolean;
  readonly forceUnlock?: boolean;
  readonly measure?: boolean;
  readonly state?: string;
  readonly json?: boolean;
}

export function addDeployCommand(program: Command): void {
  const command = program
    .command('deploy')
    .description('makes the hosts of an inventory run p4; what is as it should be stays untouched')
    .argument('<inventory>', 'the inventory file')
    .option('--check', 'change nothing; say what a run would change')
    .option('--diff', 'show the difference of every text that changes')
    .option('--limit <names>', 'only these hosts and groups, with commas between')
    .option('--tags <phases>', `only these phases, with commas between: ${phaseNames.join(', ')}`)
    .option('--forks <number>', 'hosts at once', String(limits.deployForks))
    .option('--measure', 'measure the networks anew, although every host has its address')
    .option('--restart-rings', 'restart agents also under loaded rings, which end')
    .option('--force-unlock', 'take hosts from a deployment that has certainly ended without letting go')
    .option('--remove', 'take everything away: units, files, user, journals and slices')
    .option('--yes', 'with --remove: confirm that journals and slices go, and loaded rings end')
    .option('--revoke <host>', 'take the certificate of a host back; the others are told, and it leaves the fleet')
    .option('--state <folder>', stateOptionText)
    .option('--json', 'print JSON lines');
  addSshOptions(command).action((inventory: string, options: DeployOptions) =>
    runCommand(modeOf(options), (context) => deploy(userPath(inventory), options, context)),
  );
}

async function deploy(inventoryFile: string, options: DeployOptions, context: CommandContext): Promise<number> {
  const { terminal, signal } = context;
  const inventory = await openInventory(inventoryFile);
  const state = chosenState(options.state);
  const revoked = await revokedHost(options.revoke, inventory, state);
  const order: DeployOrder = {
    inventory,
    inventoryFile,
    state,
    hosts: limitedHosts(inventory, options.limit).filter(({ name }) => name !== revoked),
    revoked,
    phases: chosenPhases(options.tags),
    forks: wholeNumber('--forks', options.forks, [1, limits.fleetHosts]),
    isCheck: options.check === true,
    restartsRings: options.restartRings === true,
    forcesUnlock: options.forceUnlock === true,
    measuresAnew: options.measure === true || options.tags?.split(',').includes('addresses') === true,
    acceptance: readSshOptions(options),
    prompt: new TerminalPrompt(() => {
      terminal.endProgress();
    }),
  };
  const reporting = { isCheck: order.isCheck, showsDifferences: options.diff === true };
  const deployment: Deployment = {
    order,
    hosts: order.hosts.map((host) => new HostRun(host)),
    report: new Report(
      terminal,
      order.hosts.map(({ name }) => name),
      reporting,
    ),
    owner: await hostLockOwner(order.state),
    signal,
  };
  const work = (): Promise<void> =>
    options.remove === true
      ? runRemoval(deployment, presentOperator(), { isConfirmed: options.yes === true })
      : runRevoking(deployment, revoked);
  return concluded(deployment, () => run(deployment, work));
}

/** What was begun ends with a recap, also where a signal or an error cuts it short. */
async function concluded(deployment: Deployment, work: () => Promise<void>): Promise<number> {
  try {
    await work();
    // Work that a signal may not cut short ends first.
    if (deployment.signal.aborted) throw interruption(deployment.signal);
  } catch (error) {
    if (error instanceof P4Error && deployment.report.current !== null) conclude(deployment, error);
    throw error;
  }
  return conclude(deployment, null);
}

/**
 * The host that `--revoke` names: one of the inventory, of the fleet, or one that has a certificate still.
 * @throws INVALID_ARGUMENT
 */
async function revokedHost(
  option: string | undefined,
  inventory: Inventory,
  state: StateFolder,
): Promise<HostName | null> {
  if (option === undefined) return null;
  const fleet = (await readFleet(state)) ?? [];
  const known = new Set([...inventory.hosts, ...fleet].map(({ name }) => name));
  const found = [...known].find((name) => name === option);
  if (found !== undefined) return found;
  if (isName(option) && (await hasCertificate(state, hostName(option)))) return hostName(option);
  throw new P4Error('INVALID_ARGUMENT', { option: '--revoke', found: option, hosts: [...known] });
}

/** A revoked host is no part of the deployment that tells the others: nothing is changed on it. */
async function runRevoking(deployment: Deployment, revoked: HostName | null): Promise<void> {
  const { order, report } = deployment;
  if (revoked !== null && !order.isCheck) {
    const had = await revokeCertificate(order.state, revoked, new Date());
    report.note(had ? `The certificate of ${revoked} is revoked.` : `${revoked} has no certificate of this fleet.`);
    await changeFleet(order.state, (hosts) => hosts.filter(({ name }) => name !== revoked));
  }
  await runDeployment(deployment, presentOperator());
  await tellStrayHosts(deployment, revoked);
}

/** One deployment at a time with one state folder; on the hosts, one at a time with any. */
async function run(deployment: Deployment, work: () => Promise<void>): Promise<void> {
  const { order } = deployment;
  try {
    if (order.isCheck) await work();
    else {
      await makeOwnerFolder(order.state.root);
      await whileLocked(join(order.state.root, 'deploy'), work, 0);
    }
  } finally {
    await letGo(deployment);
  }
}
