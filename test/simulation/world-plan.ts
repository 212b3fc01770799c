/** What a world is made of and what will befall it, chosen by its seed before anything runs. */
import { hostName, nodeIndex, ringName, tokenId, type HostName, type TokenId } from '../../protocol/ids.ts';
import type { Plan } from '../../protocol/plan.ts';
import { defaultSampling } from '../../protocol/sampling.ts';
import type { Submission } from '../../agent/inputs.ts';
import type { ClientScript } from './client-script.ts';
import type { OperatorScript } from './ring-model.ts';
import type { SeededRandom } from './seeded-random.ts';
import { brokenGrammar, narrowGrammar, vocabularySize } from './toy-model.ts';

export const faultKinds = [
  ...(['stage-killed', 'stage-stopped', 'stage-strange', 'loads-fail', 'load-hangs'] as const),
  ...(['link-broken', 'hosts-cut'] as const),
  ...(['agent-killed', 'agent-stopped', 'power-lost', 'journal-fails', 'intruder'] as const),
] as const;
export type FaultKind = (typeof faultKinds)[number];
/** Of one ring alone. */
const stageFaults = [
  'stage-killed',
  'stage-stopped',
  'stage-strange',
  'loads-fail',
] as const satisfies readonly FaultKind[];

export interface PlannedFault {
  readonly kind: FaultKind;
  readonly atMs: number;
  readonly lastsMs: number;
}

export interface WorldPlan {
  readonly hosts: readonly HostName[];
  readonly rings: readonly RingPlan[];
  readonly faults: readonly PlannedFault[];
  /** Faults befall the first ring's stages alone: the second ring must not feel anything. */
  readonly sparesOthers: boolean;
  readonly slowMessagesOneIn: number;
  /** Once in so many times, news comes twice, the second time at once or much later; 0 is never. */
  readonly doublesOneIn: number;
  /** Most that a stage takes to load, now and then. */
  readonly slowLoadMs: number;
  readonly lingerMs: number;
  readonly probeMs: number;
  /** The last fault has begun. */
  readonly faultsEndMs: number;
  /** Everything that the faults have done is over. */
  readonly calmMs: number;
  readonly endMs: number;
}

export interface RingPlan {
  readonly plan: Plan;
  readonly operator: OperatorScript;
  readonly clients: readonly ClientScript[];
}

export function planWorld(random: SeededRandom): WorldPlan {
  const hosts = ['alpha', 'beta', 'gamma'].slice(0, random.between(1, 3)).map(hostName);
  const sparesOthers = random.oneIn(4);
  const ringCount = sparesOthers || random.oneIn(4) ? 2 : 1;
  const faultsEndMs = random.between(3_000, 20_000);
  const faults = plannedFaults(random, { sparesOthers, faultsEndMs });
  const rings = ['first', 'second']
    .slice(0, ringCount)
    .map((name) => ringPlan(random, { name, hosts, faults, faultsEndMs, isSpared: sparesOthers && name === 'second' }));
  const calmMs = Math.max(faultsEndMs, ...faults.map(({ atMs, lastsMs }) => atMs + lastsMs));
  return {
    ...{ hosts, rings, faults, sparesOthers, faultsEndMs, calmMs },
    slowMessagesOneIn: random.pick([0, 0, 20, 100]),
    doublesOneIn: random.pick([0, 3, 10]),
    slowLoadMs: random.pick([3_000, 3_000, 25_000]),
    lingerMs: 10_000,
    probeMs: random.pick([3_000, 10_000]),
    endMs: calmMs + 400_000,
  };
}

function plannedFaults(
  random: SeededRandom,
  { sparesOthers, faultsEndMs }: { readonly sparesOthers: boolean; readonly faultsEndMs: number },
): PlannedFault[] {
  const offered = sparesOthers ? stageFaults : faultKinds.filter((kind) => kind !== 'load-hangs');
  // Some worlds have one kind of trouble only, which then shows what it does by itself.
  const kinds = random.oneIn(2) ? offered : [random.pick(offered)];
  const faults = Array.from({ length: random.between(0, 8) }, (): PlannedFault => {
    const kind = random.pick(kinds);
    const lastsMs = random.pick([random.between(10, 500), random.between(500, 5_000), random.between(5_000, 40_000)]);
    return { kind, atMs: random.between(100, faultsEndMs), lastsMs: kind === 'loads-fail' ? 2 * lastsMs : lastsMs };
  });
  if (!random.oneIn(15)) return faults;
  // Beyond any deadline here, and beyond its second limit (R1): those worlds are long, so there are few.
  const lastsMs = random.oneIn(4) ? 2_000_000 : 100_000;
  return [...faults, { kind: 'load-hangs', atMs: random.between(1_000, faultsEndMs), lastsMs }];
}

interface RingOptions {
  readonly name: string;
  readonly hosts: readonly HostName[];
  readonly faults: readonly PlannedFault[];
  readonly faultsEndMs: number;
  /** Nothing at all befalls it, its operator's doings neither. */
  readonly isSpared: boolean;
}

/** At any time, or in the middle of what a fault has done: while something is lost, or just comes back. */
function unloadTime(random: SeededRandom, faults: readonly PlannedFault[], faultsEndMs: number): number {
  if (faults.length === 0 || random.oneIn(2)) return random.between(500, faultsEndMs);
  const { atMs, lastsMs } = random.pick(faults);
  return atMs + random.below(500) + (random.oneIn(2) ? Math.min(lastsMs, 10_000) : 0);
}

function ringPlan(random: SeededRandom, { name, hosts, faults, faultsEndMs, isSpared }: RingOptions): RingPlan {
  const stages = random.between(hosts.length > 1 ? 2 : 1, 4);
  // What ended sessions leave is taken over again and again, also while something is lost.
  const talks = random.oneIn(3);
  const plan: Plan = {
    ring: ringName(name),
    model: 'toy.gguf',
    modelOn: 'operator',
    contextTokens: talks ? 256 : random.pick([48, 128, 256]),
    sessions: random.between(1, 4),
    keptPrefixes: random.pick(talks ? [1, 2, 8] : [0, 1, 2, 8]),
    kv: { keys: 'f16', values: 'f16' },
    decode: random.oneIn(3) ? 'exact' : 'fast',
    wire: 'f32',
    deadlineSeconds: random.pick([2, 10, 60]),
    stages: Array.from({ length: stages }, (_, index) => ({
      index: nodeIndex(index),
      host: random.pick(hosts),
      layers: { first: index, last: index },
      device: { kind: 'cpu' },
      threads: 1,
    })),
  };
  const operator: OperatorScript = {
    loaderDiesOneIn: !isSpared && random.oneIn(4) ? random.between(2, 12) : 0,
    unloadAtMs: !isSpared && random.oneIn(4) ? unloadTime(random, faults, faultsEndMs) : null,
    // At once, or when the deadline of its requests is near.
    unloadsHeadlessMs:
      isSpared || !random.oneIn(4) ? null : random.pick([0, plan.deadlineSeconds * 1000 - random.below(2_000)]),
    loadsAnew: random.oneIn(2),
    movesAgents: random.oneIn(2),
  };
  const beginnings = Array.from({ length: random.between(1, 2) }, () => tokens(random, random.between(10, 70)));
  const script = talks ? talkScript : clientScript;
  const clients = Array.from({ length: random.between(1, 6) }, () => script(random, { faultsEndMs, beginnings }));
  return { plan, operator, clients };
}

interface ClientOptions {
  readonly faultsEndMs: number;
  /** Many a prompt begins with one of these. */
  readonly beginnings: readonly (readonly TokenId[])[];
}

const clientScript = (random: SeededRandom, { faultsEndMs, beginnings }: ClientOptions): ClientScript => ({
  startMs: random.between(200, faultsEndMs),
  prompts: Array.from({ length: random.between(1, 4) }, () => submission(random, beginnings)),
  owner: random.oneIn(6) ? null : random.pick(['ann', 'ann', 'bob']),
  renews: random.pick(['never', 'anew', 'with-history']),
  disconnectOneIn: random.pick([0, 0, 8, 20]),
  cancelOneIn: random.pick([0, 0, 10]),
  abandons: random.oneIn(12),
});

/** One who talks on, in a new session for each of a few words. */
const talkScript = (random: SeededRandom, { faultsEndMs, beginnings }: ClientOptions): ClientScript => ({
  startMs: random.between(200, random.oneIn(2) ? 2_000 : faultsEndMs),
  prompts: Array.from({ length: random.between(3, 8) }, (_, turn) => ({
    ...submission(random, beginnings),
    prompt: [...(turn === 0 ? random.pick(beginnings) : []), ...tokens(random, random.between(1, 12))],
    sampling: {
      ...{ ...defaultSampling, seed: random.below(1000) },
      grammar: random.oneIn(6) ? random.pick([narrowGrammar, brokenGrammar, brokenGrammar]) : null,
    },
    maxTokens: random.pick([1, random.between(4, 12), random.between(20, 80)]),
    ignoreEnd: !random.oneIn(4),
  })),
  owner: random.oneIn(8) ? 'bob' : 'ann',
  renews: random.pick(['anew', 'with-history', 'with-history']),
  disconnectOneIn: random.pick([0, 0, 20]),
  cancelOneIn: random.pick([0, 0, 20]),
  abandons: random.oneIn(20),
});

const tokens = (random: SeededRandom, length: number): readonly TokenId[] =>
  Array.from({ length }, () => tokenId(1 + random.below(vocabularySize - 1)));

const grammar = (random: SeededRandom): string | null =>
  random.oneIn(10) ? narrowGrammar : random.oneIn(10) ? brokenGrammar : null;

const submission = (random: SeededRandom, beginnings: ClientOptions['beginnings']): Submission => ({
  prompt: [
    ...(random.oneIn(2) ? random.pick(beginnings) : []),
    ...tokens(random, random.pick([random.between(0, 2), random.between(3, 20), random.between(60, 90)])),
  ],
  sampling: { ...defaultSampling, seed: random.below(1000), grammar: grammar(random) },
  stopStrings: random.oneIn(6) ? [String.fromCodePoint(0x61 + random.below(26))] : [],
  maxTokens: random.pick([1, 3, random.between(4, 12), random.between(20, 60)]),
  ignoreEnd: random.oneIn(2),
});
