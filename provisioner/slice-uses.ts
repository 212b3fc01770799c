/** Which of the slices that lie about are still wanted. Pure. */
import type { P4Error } from '../protocol/errors.ts';
import type { HostName } from '../protocol/ids.ts';
import type { KeptGeneration } from './generation-file.ts';
import { bytesText, tableLines } from './text-table.ts';

export interface HeldSlice {
  readonly id: string;
  readonly bytes: number;
  readonly lastUsedMs: number;
  /** Rings that have it loaded on this host. */
  readonly rings: readonly string[];
}

/** A host, or (`null`) the operator's own folder. */
export type SlicePlace =
  | {
      readonly kind: 'read';
      readonly host: HostName | null;
      readonly slices: readonly HeldSlice[];
      readonly unfinishedBytes: number;
      /** Loads of which the host knows no more than that they have its name: it cannot tell their slices. */
      readonly emptyLoads: readonly string[];
    }
  | { readonly kind: 'failed'; readonly host: HostName; readonly error: P4Error };

export interface JudgedSlice {
  readonly host: HostName | null;
  readonly slice: HeldSlice;
  /** Rings that have it loaded, on whatever host: agents of one machine may share a folder. */
  readonly rings: readonly string[];
  /** Rings that stand by their kept generation file, and have it there. */
  readonly plans: readonly string[];
  /** `unsure`: a ring that was loaded from elsewhere and is to come back may use it. */
  readonly fate: 'used' | 'unsure' | 'prunable';
}

type Kept = Pick<KeptGeneration, 'loadId' | 'slices' | 'phase'> & {
  readonly plan: Pick<KeptGeneration['plan'], 'ring'>;
};

/** A ring that was unloaded, or never came to stand, keeps its generation file, and no slices. */
const holdsSlices = ({ phase }: Kept): boolean => phase === 'loading' || phase === 'ready' || phase === 'unloading';

export function judgeSlices(places: readonly SlicePlace[], kept: readonly Kept[]): readonly JudgedSlice[] {
  const read = places.filter((place) => place.kind === 'read');
  const everywhere = read.flatMap(({ slices }) => slices);
  const known = new Set<string>(kept.filter(({ slices }) => slices.length > 0).map(({ loadId }) => loadId));
  return read.flatMap(({ host, slices, emptyLoads }) =>
    slices.map((slice): JudgedSlice => {
      const same = everywhere.filter(({ id }) => id === slice.id);
      const rings = [...new Set(same.flatMap((one) => one.rings))].sort();
      const plans = kept
        .filter((one) => holdsSlices(one) && one.slices.some((id) => id === slice.id))
        .map(({ plan }) => plan.ring);
      const isUsed = rings.length > 0 || plans.length > 0;
      const isUnsure = !emptyLoads.every((load) => known.has(load));
      return { host, slice, rings, plans, fate: isUsed ? 'used' : isUnsure ? 'unsure' : 'prunable' };
    }),
  );
}

/** A table, and a line for what is beside it. */
export function sliceLines(places: readonly SlicePlace[], judged: readonly JudgedSlice[]): readonly string[] {
  const table = tableLines(
    [
      { title: 'host', align: 'left' },
      { title: 'slice', align: 'left' },
      { title: 'size', align: 'right' },
      { title: 'last used', align: 'left' },
      { title: 'used by', align: 'left' },
    ],
    judged.map((one) => [
      ...[one.host ?? '(here)', one.slice.id.slice(0, 12), bytesText(one.slice.bytes)],
      ...[new Date(one.slice.lastUsedMs).toISOString().slice(0, 10), useText(one)],
    ]),
  );
  const unfinished = places.flatMap((place) =>
    place.kind === 'read' && place.unfinishedBytes > 0
      ? [`${place.host ?? '(here)'}: ${bytesText(place.unfinishedBytes)} of unfinished slices`]
      : [],
  );
  return [...(judged.length === 0 ? ['No slices.'] : table), ...unfinished];
}

function useText({ rings, plans, fate }: JudgedSlice): string {
  if (fate === 'prunable') return 'nothing';
  if (fate === 'unsure') return 'perhaps a ring that was loaded from elsewhere';
  const planned = plans.filter((plan) => !rings.includes(plan)).map((plan) => `the plan of ring ${plan}`);
  return [...rings.map((ring) => `ring ${ring}`), ...planned].join(', ');
}
