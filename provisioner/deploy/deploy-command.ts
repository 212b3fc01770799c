/** `deploy`: makes the hosts of an inventory run p4, or takes it away again. */
import { createHash, randomBytes } from 'node:crypto';
import { homedir, hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

import type { Command } from 'commander';

import { hostName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { modeOf, runCommand, userPath, type CommandContext } from '../command.ts';
import { changeFleet } from '../fleet-file.ts';
import { revokeCertificate } from '../pki.ts';
import { makeOwnerFolder, readIfThere } from '../durable-file.ts';
import { wholeNumber } from '../number-option.ts';
import type { Operator } from '../ssh/operator-config.ts';
import { TerminalPrompt } from '../ssh/secret-prompt.ts';
import { addSshOptions, readSshOptions, type SshOptionValues } from '../ssh/ssh-options.ts';
import type { StateFolder } from '../state-folder.ts';
import { whileLocked } from '../state-lock.ts';
import { chosenState, stateOptionText } from '../state-option.ts';
import { letGo } from './access-phases.ts';
import { limitedHosts, type Deployment, type DeployOrder } from './deploy-order.ts';
import { runDeployment } from './deployment.ts';
import type { LockOwner } from './host-lock.ts';
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
    .option('--force-unlock', 'take hosts from another deployment that holds them')
    .option('--remove', 'take everything away: units, files, user, journals and slices')
    .option('--yes', 'do not ask before journals and slices are removed')
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
  const order: DeployOrder = {
    inventory,
    inventoryFile,
    state: chosenState(options.state),
    hosts: limitedHosts(inventory, options.limit).filter(({ name }) => name !== options.revoke),
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
    owner: await lockOwner(order.state),
    signal,
  };
  const isRemoval = options.remove === true;
  const work = (): Promise<void> =>
    isRemoval
      ? runRemoval(deployment, operator(), { isConfirmed: options.yes === true, terminal })
      : runRevoking(deployment, options.revoke);
  await run(deployment, work);
  return conclude(deployment, isRemoval);
}

/** A revoked host is no part of the deployment that tells the others: nothing is changed on it. */
async function runRevoking(deployment: Deployment, revoked: string | undefined): Promise<void> {
  const { order, report } = deployment;
  if (revoked !== undefined && !order.isCheck) {
    const host = hostName(revoked);
    const had = await revokeCertificate(order.state, host, new Date());
    report.note(had ? `The certificate of ${host} is revoked.` : `${host} has no certificate of this fleet.`);
    await changeFleet(order.state, (hosts) => hosts.filter(({ name }) => name !== host));
  }
  await runDeployment(deployment, operator());
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

/** @returns the exit status: that of the first host's failure */
function conclude({ hosts, report, order }: Deployment, isRemoval: boolean): number {
  const failures = hosts.flatMap(({ name, failure }) => (failure === null ? [] : [{ name, ...failure }]));
  for (const { name, phase, error } of failures) report.failure(name, phase, error);
  const others = hosts.filter(({ hasFailed, recap }) => !hasFailed && (!isRemoval || recap.changed === 0));
  if (failures.length > 0 && others.length > 0 && !order.isCheck) {
    const names = others.map(({ name }) => name).join(', ');
    const what = isRemoval ? 'removed from' : 'switched on';
    report.note(`Nothing was ${what} ${names}: run it again, or leave out what failed with --limit.`);
  }
  const recaps = hosts.map(({ recap }) => recap);
  report.recap(recaps);
  report.event({
    event: 'deployed',
    check: order.isCheck,
    changed: recaps.reduce((sum, { changed }) => sum + changed, 0),
    failed: failures.length,
  });
  return failures[0]?.error.rule.exit ?? 0;
}

async function lockOwner(state: StateFolder): Promise<LockOwner> {
  const machine = (await readIfThere('/etc/machine-id')) ?? '';
  return {
    owner: `${userInfo().username}@${hostname()}`,
    pid: process.pid,
    since: new Date().toISOString(),
    token: randomBytes(16).toString('hex'),
    origin: createHash('sha256').update(`${machine}\n${state.root}`).digest('hex').slice(0, 32),
  };
}

const operator = (): Operator => ({ home: homedir(), user: userInfo().username, environment: process.env });
