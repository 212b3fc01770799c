/**
 * For crash tests: when in its life an agent passes each of its journal's failpoints, and which of all these cases a run
 * tries.
 *
 * `npm test` tries a few, which a fixed seed chooses; with `P4_CRASHES=all` (`npm run prove:crashes`) a run tries all.
 */
import process from 'node:process';

import { journalPoints, type JournalPoint } from '../../agent/journal/failpoint.ts';
import { present } from '../../protocol/assert.ts';
import { chooser } from '../fixture/chooser.ts';

/** The hosts of the ring's two stages; the first has its head. */
export const crashHosts = ['local', 'local-2'] as const;
export type CrashHost = (typeof crashHosts)[number];

export const moments = [
  /** It opens its journal, in which a ring stands with requests. */
  'opening',
  /** A ring is loaded for the first time. */
  'loading',
  /** A ring is loaded again and tells on; the other agent than the head's loses its stage as well. */
  'telling',
  /** The same for long enough that the journal moves its WAL into the database. */
  'upkeep',
  /** It opens its journal again after the disk failed. */
  'reopening',
  /** Its journal is full of what has had its time. */
  'making room',
  /** It ends in order while its ring tells. */
  'ending',
] as const;
export type Moment = (typeof moments)[number];

/** Where and when an agent's journal fails, once or again. */
export interface CrashCase {
  readonly host: CrashHost;
  readonly moment: Moment;
  readonly point: JournalPoint;
  /** Which passing of the point since the agent's start. */
  readonly nth: number;
}

/** Passings of a point that come in a moment, by host: from the first to the last that comes for certain. */
interface Passings {
  readonly points: readonly JournalPoint[];
  readonly moment: Moment;
  readonly of: Readonly<Partial<Record<CrashHost, readonly [from: number, to: number]>>>;
  /** Cases that are made of each; 1 if absent. */
  readonly cases?: number;
}

const once = { local: [1, 1], 'local-2': [1, 1] } as const;
const commits = ['append.before', 'append.after', 'mark.before', 'mark.after'] as const;

const passings: readonly Passings[] = [
  {
    points: [
      ...(['open.before', 'open.after', 'migrate.before', 'migrate.after', 'prove.before', 'prove.after'] as const),
      ...(['checkpoint.before', 'checkpoint.after', 'mark.before', 'mark.after'] as const),
    ],
    moment: 'opening',
    of: once,
  },
  { points: commits, moment: 'loading', of: { local: [2, 3], 'local-2': [2, 3] } },
  { points: ['append.before'], moment: 'loading', of: once },
  { points: commits, moment: 'telling', of: { local: [2, 20], 'local-2': [2, 6] }, cases: 2 },
  // Hops go along with a commit once there are enough of them; the rest is written at the end.
  { points: ['append.commit'], moment: 'telling', of: { local: [1, 1] } },
  { points: ['append.commit'], moment: 'ending', of: { 'local-2': [1, 1] } },
  { points: ['keep.before', 'keep.after'], moment: 'upkeep', of: { local: [1, 1] } },
  // Its first passing was at the opening.
  { points: ['checkpoint.before', 'checkpoint.after'], moment: 'upkeep', of: { local: [2, 2] } },
  { points: ['discard.before', 'discard.after'], moment: 'reopening', of: once },
  { points: ['remove.before', 'remove.after'], moment: 'making room', of: { local: [1, 3], 'local-2': [1, 3] } },
  { points: ['vacuum.before', 'vacuum.after'], moment: 'making room', of: once },
  { points: ['keep.before', 'keep.after', 'close.before'], moment: 'ending', of: once },
  { points: ['checkpoint.before', 'checkpoint.after'], moment: 'ending', of: { local: [2, 2], 'local-2': [2, 2] } },
];

/** Every case, in the order of the table; which passing it is, the seed says. */
export function allCrashCases(seed: number): readonly CrashCase[] {
  const choose = chooser(seed);
  return passings.flatMap(({ points, moment, of, cases = 1 }) =>
    points.flatMap((point) =>
      crashHosts.flatMap((host) => {
        const [from, to] = of[host] ?? [1, 0];
        const count = from > to ? 0 : cases;
        return Array.from({ length: count }, () => ({ host, moment, point, nth: from + choose(to - from + 1) }));
      }),
    ),
  );
}

/** Of several passings of one point in one moment, the first. */
export function oneOfEach(cases: readonly CrashCase[]): readonly CrashCase[] {
  const isSame = (one: CrashCase, other: CrashCase): boolean =>
    one.host === other.host && one.moment === other.moment && one.point === other.point;
  return cases.filter((each, index) => cases.findIndex((other) => isSame(each, other)) === index);
}

/** Points that no case of this host has. */
export function pointsLeftOut(cases: readonly CrashCase[], host: CrashHost): readonly JournalPoint[] {
  return journalPoints.filter((point) => !cases.some((each) => each.host === host && each.point === point));
}

/** Of each of these moments one case, by the seed, hosts in turn. */
export function someCrashCases(cases: readonly CrashCase[], wanted: readonly Moment[], seed: number): CrashCase[] {
  const choose = chooser(seed);
  return wanted.map((moment, index) => {
    const host = crashHosts[index % crashHosts.length];
    const fitting = cases.filter((each) => each.moment === moment && each.host === host);
    return present(fitting[choose(fitting.length)], 'the moment has cases on this host');
  });
}

export const triesAllCrashes = (): boolean => process.env['P4_CRASHES'] === 'all';
export const crashSeed = (): number => Number(process.env['P4_SEED'] ?? 1);

/** Failpoints of a case, as an agent is given them: a kill; one error of the disk, then the other. */
export const killed = ({ point, nth }: CrashCase): string => `${point}:kill:${nth}`;
export const erring = ({ point, nth }: CrashCase): string => `${point}:EIO:${nth},${point}:ENOSPC:${nth + 1}`;

export const caseName = ({ host, moment, point, nth }: CrashCase): string =>
  `${point}, passing ${nth}, ${moment}, the agent of ${host}`;
