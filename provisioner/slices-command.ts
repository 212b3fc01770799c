/** `slices`: what slices lie on the hosts and here, what uses them, and taking away those that nothing does. */
import type { Command } from 'commander';

import { P4Error } from '../protocol/errors.ts';
import { isName, type HostName } from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import { readSliceFolder, removeAbandoned, removeSlice } from '../model/slice-folder.ts';
import { modeOf, runCommand, type CommandContext } from './command.ts';
import { FleetConnection } from './fleet-connection.ts';
import { commandWays } from './fleet-ways.ts';
import { readGenerations } from './generation-file.ts';
import { slicesFolderIn } from './prepared-slices.ts';
import { isBareClaim } from './ring-health.ts';
import { judgeSlices, sliceLines, type HeldSlice, type JudgedSlice, type SlicePlace } from './slice-uses.ts';
import { chosenState, stateOptionText } from './state-option.ts';
import type { StateFolder } from './state-folder.ts';
import { bytesText } from './text-table.ts';

interface SlicesOptions {
  readonly prune?: boolean;
  readonly state?: string;
  readonly json?: boolean;
}

/** Exit status when a host did not answer. */
const incompleteExit = 3;

export function addSlicesCommand(program: Command): void {
  program
    .command('slices')
    .description('lists the slices on every host, and what uses each')
    .option('--prune', 'remove those of rings that no longer stand')
    .option('--state <folder>', stateOptionText)
    .option('--json', 'print JSON lines')
    .action((options: SlicesOptions) =>
      runCommand(modeOf(options), (context) => slices(chosenState(options.state), options.prune === true, context)),
    );
}

async function slices(state: StateFolder, prunes: boolean, context: CommandContext): Promise<number> {
  const { terminal, signal } = context;
  const fleet = await FleetConnection.open(state, await commandWays(state, context));
  try {
    const kept = await readGenerations(state);
    const places = [
      ...(await Promise.all(fleet.hosts.map((host) => placeOn(fleet, host, signal)))),
      await placeHere(state),
    ];
    signal.throwIfAborted();
    const judged = judgeSlices(places, kept);
    terminal.line(sliceLines(places, judged).join('\n'));
    for (const place of places) reportPlace(context, place, judged);
    if (prunes) await prune({ fleet, state, judged }, context);
    return places.every(({ kind }) => kind === 'read') ? 0 : incompleteExit;
  } finally {
    await fleet.close();
  }
}

function reportPlace({ terminal }: CommandContext, place: SlicePlace, judged: readonly JudgedSlice[]): void {
  const name = place.host ?? 'here';
  if (place.kind === 'failed') {
    terminal.failure(place.error);
    return;
  }
  const own = judged.filter(({ host }) => host === place.host);
  terminal.event({
    event: 'slices',
    host: name,
    unfinishedBytes: place.unfinishedBytes,
    slices: own.map(({ slice, rings, plans, fate }) => ({
      ...{ sliceId: slice.id, bytes: slice.bytes, lastUsed: new Date(slice.lastUsedMs).toISOString() },
      ...{ rings, plans, prunable: fate === 'prunable' },
    })),
  });
}

/** An agent that does not answer is told with the others, and nothing of it is removed. */
async function placeOn(fleet: FleetConnection, host: HostName, signal: AbortSignal): Promise<SlicePlace> {
  const options = { deadlineMs: limits.answerMs, signal };
  const client = fleet.client(host);
  try {
    const [list, status] = await Promise.all([
      client.call(['Agent', 'ListSlices'], {}, options),
      client.call(['Agent', 'Status'], { ring: '' }, options),
    ]);
    return {
      kind: 'read',
      host,
      unfinishedBytes: Number(list.unfinishedBytes),
      slices: list.slices.map((slice) => ({
        ...{ id: slice.sliceId, bytes: Number(slice.bytes), lastUsedMs: Number(slice.lastUsedMs) },
        rings: slice.rings.filter(isName),
      })),
      emptyLoads: status.rings.filter(({ phase }) => isBareClaim(phase)).map(({ loadId }) => loadId),
    };
  } catch (error) {
    if (error instanceof P4Error) return { kind: 'failed', host, error };
    throw error;
  }
}

async function placeHere(state: StateFolder): Promise<SlicePlace> {
  const { slices: files, unfinished } = await readSliceFolder(slicesFolderIn(state));
  return {
    kind: 'read',
    host: null,
    unfinishedBytes: unfinished.reduce((sum, { bytes }) => sum + bytes, 0),
    slices: files.map((file): HeldSlice => ({ ...file, rings: [] })),
    emptyLoads: [],
  };
}

interface PruneOrder {
  readonly fleet: FleetConnection;
  readonly state: StateFolder;
  readonly judged: readonly JudgedSlice[];
}

async function prune({ fleet, state, judged }: PruneOrder, { terminal, signal }: CommandContext): Promise<void> {
  const prunable = judged.filter(({ fate }) => fate === 'prunable');
  const removed: { readonly host: string; readonly sliceId: string; readonly bytes: number }[] = [];
  for (const host of new Set(judged.map((one) => one.host))) {
    const own = prunable.filter((one) => one.host === host);
    const gone = new Set(host === null ? await pruneHere(state, own) : await pruneOn(fleet, { host, own, signal }));
    for (const { slice } of own)
      if (gone.has(slice.id)) removed.push({ host: host ?? 'here', sliceId: slice.id, bytes: slice.bytes });
  }
  const bytes = removed.reduce((sum, one) => sum + one.bytes, 0);
  terminal.line(`Removed ${removed.length} slices, ${bytesText(bytes)}.`);
  terminal.event({ event: 'pruned', removed, bytes });
}

interface HostPrune {
  readonly host: HostName;
  readonly own: readonly JudgedSlice[];
  readonly signal: AbortSignal;
}

/** The agent looks again at what its rings use. */
async function pruneOn(fleet: FleetConnection, { host, own, signal }: HostPrune): Promise<readonly string[]> {
  const gone: string[] = [];
  for (let from = 0; from < own.length; from += limits.slicesAsked) {
    const sliceIds = own.slice(from, from + limits.slicesAsked).map(({ slice }) => slice.id);
    const options = { deadlineMs: limits.answerMs, signal };
    gone.push(...(await fleet.client(host).call(['Agent', 'RemoveSlices'], { sliceIds }, options)).removed);
  }
  return gone;
}

async function pruneHere(state: StateFolder, own: readonly JudgedSlice[]): Promise<readonly string[]> {
  const folder = slicesFolderIn(state);
  const gone: string[] = [];
  const { slices: files } = await readSliceFolder(folder);
  for (const { slice } of own) {
    const file = files.find(({ id }) => id === slice.id);
    // Local agents share this folder: what they removed is gone by now.
    if (file === undefined || (await removeSlice(folder, file.id))) gone.push(slice.id);
  }
  await removeAbandoned(folder, Date.now());
  return gone;
}
