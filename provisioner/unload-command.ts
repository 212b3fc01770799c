/** `unload`: takes a ring down with the generation it was loaded under (G3). */
import type { Command } from 'commander';

import { P4Error } from '../protocol/errors.ts';
import type { HostName } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import { modeOf, runCommand, userPath, type CommandContext } from './command.ts';
import { failpoint } from './failpoint.ts';
import { FleetConnection } from './fleet-connection.ts';
import { commandWays } from './fleet-ways.ts';
import { keepGeneration, knownGeneration, type KeptGeneration } from './generation-file.ts';
import { openPlan, ringHosts } from './opened-plan.ts';
import { chosenState, stateOptionText } from './state-option.ts';
import type { StateFolder } from './state-folder.ts';

interface UnloadOptions {
  readonly state?: string;
  readonly json?: boolean;
}

export function addUnloadCommand(program: Command): void {
  program
    .command('unload')
    .description("ends a ring's stages and frees its name")
    .argument('<plan>', 'the plan file the ring was loaded with')
    .option('--state <folder>', stateOptionText)
    .option('--json', 'print JSON lines')
    .action((plan: string, options: UnloadOptions) =>
      runCommand(modeOf(options), (context) => unload(userPath(plan), chosenState(options.state), context)),
    );
}

/** What one agent made of the call. */
type HostUnload =
  | { readonly kind: 'unloaded'; readonly host: HostName; readonly stages: number }
  | { readonly kind: 'nothing-there'; readonly host: HostName }
  /** Another load holds the ring's name there, so this one has nothing there. */
  | { readonly kind: 'of-another'; readonly host: HostName; readonly error: P4Error }
  | { readonly kind: 'failed'; readonly host: HostName; readonly error: P4Error };

async function unload(planPath: string, state: StateFolder, { terminal, signal }: CommandContext): Promise<number> {
  const { plan, digest } = await openPlan(planPath);
  const { ring } = plan;
  // The load's own plan, not the file's: that may have been edited since.
  const found = await knownGeneration(state, ring);
  if (found.planDigest !== digest)
    terminal.note(
      `Ring ${ring} was loaded with another plan than this, as ${found.planFile} was then: that load is taken down.`,
    );
  const fleet = await FleetConnection.open(state, await commandWays(state, { terminal, signal }));
  try {
    const kept = await keptUnloading(state, found);
    const results = await Promise.all(ringHosts(kept.plan).map((host) => unloadOn(fleet, { host, kept, signal })));
    const failed = results.filter((result) => result.kind === 'failed');
    const [first] = failed;
    if (first !== undefined) {
      const ended = results.filter(({ kind }) => kind !== 'failed').map(({ host }) => host);
      if (ended.length > 0) terminal.note(`Not loaded any more on: ${ended.join(', ')}. The rest stays as it is.`);
      const left = failed.map(({ host, error }) => ({ host, code: error.code }));
      terminal.event({ event: 'unload-failed', ring, ended, left });
      throw first.error;
    }
    failpoint('before keep unloaded');
    await keepGeneration(state, { ...kept, phase: 'unloaded' }, kept);
    const others = results.filter((result) => result.kind === 'of-another');
    const [other] = others;
    // G3: nothing was changed on the hosts.
    if (other !== undefined && !results.some(({ kind }) => kind === 'unloaded')) throw other.error;
    if (other !== undefined)
      terminal.note(`Another load holds ring ${ring} on ${others.map(({ host }) => host).join(', ')}: it stays.`);
    const stages = results.reduce((sum, result) => sum + (result.kind === 'unloaded' ? result.stages : 0), 0);
    const hosts = results.filter(({ kind }) => kind === 'unloaded').map(({ host }) => host);
    terminal.line(
      hosts.length === 0
        ? `Ring ${ring} was not loaded on ${results.map(({ host }) => host).join(', ')}: nothing to take down.`
        : `Ring ${ring} is unloaded: ${stages} stages ended on ${hosts.join(', ')}.`,
    );
    terminal.event({ event: 'unloaded', ring, stages, hosts });
  } finally {
    await fleet.close();
  }
  return 0;
}

/** Durable before the first agent lets go: a load that is half taken down is never told again. */
async function keptUnloading(state: StateFolder, kept: KeptGeneration): Promise<KeptGeneration> {
  if (kept.phase !== 'ready' && kept.phase !== 'loading') return kept;
  const next: KeptGeneration = { ...kept, phase: 'unloading' };
  failpoint('before keep unloading');
  await keepGeneration(state, next, kept);
  failpoint('after keep unloading');
  return next;
}

interface UnloadCall {
  readonly host: HostName;
  readonly kept: KeptGeneration;
  readonly signal: AbortSignal;
}

async function unloadOn(fleet: FleetConnection, { host, kept, signal }: UnloadCall): Promise<HostUnload> {
  const command = { ring: kept.plan.ring, generation: kept.generation.toString() };
  try {
    const { stages } = await fleet.client(host).call(['Agent', 'Unload'], command, {
      deadlineMs: limits.unloadMs,
      signal,
    });
    failpoint(`after unload ${host}`);
    return { kind: 'unloaded', host, stages };
  } catch (error) {
    if (!(error instanceof P4Error)) throw error;
    if (error.code === 'RING_UNKNOWN') return { kind: 'nothing-there', host };
    return { kind: error.code === 'GENERATION_MISMATCH' ? 'of-another' : 'failed', host, error };
  }
}
