/**
 * Rings that lost a part which no agent can load again, and that this operator loaded: what of them is empty, and the
 * command that replays the load (R2, G6). Pure.
 */
import type { NodeStatus, RingStatus, StatusReply } from '../protocol/messages.ts';
import type { Plan } from '../protocol/plan.ts';
import { isHalfUnloaded, type KeptPhase } from './loader-step.ts';
import { isBareClaim } from './ring-health.ts';
import { shellWords } from './ssh/shell-quoting.ts';

/** What is kept of a load, as far as it matters here. */
export interface KnownLoad {
  readonly plan: Plan;
  /** Absolute. */
  readonly planFile: string;
  readonly loadId: string;
  readonly phase: KeptPhase;
}

export interface Replay {
  readonly ring: string;
  /** Whether the command has the ring ready again, or what an unload left of it gone. */
  readonly aim: 'ready' | 'gone';
  /** The stages of hosts that hold nothing of the ring but its name, or not even that. */
  readonly empty: readonly NodeStatus[];
  /** A command line as it is typed in the checkout. */
  readonly command: string;
}

/** What a host says; hosts that do not answer have said nothing. */
export interface HostStatus {
  readonly host: string;
  readonly status: StatusReply;
}

/**
 * @param known the newest load of each ring that was loaded from here
 * @param state path of the state folder as `--state` wants it, `null` where commands find it by themselves
 */
export function replaysOf(
  known: readonly KnownLoad[],
  answers: readonly HostStatus[],
  state: string | null,
): readonly Replay[] {
  return known.flatMap((load) => {
    const parts = new Map(answers.map(({ host, status }) => [host, partOf(load, status)]));
    const standing = [...parts.values()].filter((part) => part !== null);
    // Another load has the name, or none has: nothing is there to be replayed. Or it is being loaded.
    if (standing.length === 0 || standing.some(({ phase }) => phase === 'loading')) return [];
    const hosts = new Set(load.plan.stages.map(({ host }): string => host));
    // A plan that the agents there cannot read is not told again to them.
    const isToGo = isHalfUnloaded(load) || standing.some(({ phase }) => phase === 'unreadable');
    // Its loader ended before a token had gone round.
    const isUnfinished = load.phase === 'loading' && !standing.some(({ phase }) => phase === 'ready');
    const isHalf =
      isToGo || isUnfinished || answers.some(({ host }) => hosts.has(host) && isEmpty(parts.get(host) ?? null));
    if (!isHalf) return [];
    const { ring, stages } = load.plan;
    const aim = isToGo ? 'gone' : 'ready';
    const empty = stages.filter(({ host }) => parts.has(host) && isEmpty(parts.get(host) ?? null)).map(emptyNode);
    const words = [load.planFile, ...(state === null ? [] : ['--state', state])];
    return [{ ring, aim, empty, command: `npm run ${commands[aim]} -- ${shellWords(...words)}` }];
  });
}

const commands: Readonly<Record<Replay['aim'], string>> = { ready: 'load', gone: 'unload' };

const partOf = ({ plan, loadId }: KnownLoad, { rings }: StatusReply): RingStatus | null =>
  rings.find((part) => part.ring === plan.ring && part.loadId === loadId) ?? null;

/** R2: its stages ended with the agent or the machine. */
const isEmpty = (part: RingStatus | null): boolean => part === null || isBareClaim(part.phase);

const emptyNode = ({ index, host, layers }: Plan['stages'][number]): NodeStatus => ({
  ...{ node: index, host, firstLayer: layers.first, lastLayer: layers.last, state: 'empty', reason: '', pid: 0 },
  ...{ residentBytes: '0', cpuSeconds: 0, decodes: '0', prefilledRows: '0', decodedRows: '0', paddingRows: '0' },
  ...{ computeSeconds: 0, kvCellsUsed: 0, kvCellsKept: 0, threads: 0, cpus: '' },
});
