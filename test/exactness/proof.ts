/**
 * The proof for one model: that slices compute what the uncut model does, bit for bit (X1).
 *
 * Why it is enough to look at slices one by one. The uncut model, fed a script, has a hidden state at every layer boundary
 * and logits at the end; all are recorded. A slice `first..last` is a process of its own: what it gives depends on its file
 * and on the rows it was fed since its KV cache was empty, and on nothing else. It is fed the recorded state before `first`
 * (token ids for the head), all decodes in order, and gives the recorded state after `last`, or the logits, bit for bit.
 * Then so does every ring of such slices, by induction over its stages: the head is fed the same token ids, so gives the
 * recorded state; each next stage is fed what the one before gave, which is the recorded state, so gives the recorded one;
 * the last of them gives the recorded logits. A hop carries float32 as they are.
 *
 * What the induction takes for granted is looked at too: that slices do not disturb one another and that a slice gives the
 * same again (real rings: all of two stages, some or all of three and four), that stages in processes of their own and
 * their frames keep the bits (stage-processes.ring.test.ts), and that observing a model does not change it (`observed`).
 */
import type { ModelFile } from '../../model/model-file.ts';
import { assert } from '../../protocol/assert.ts';
import { layersText } from '../../protocol/plan.ts';
import { BitComparison } from './bit-comparison.ts';
import { record, type Recording } from './recording.ts';
import { replayRing, replaySlice } from './replay.ts';
import { legalRings, legalSlices, ringText, sampleRings, type RingCut } from './rings.ts';
import type { Script } from './script.ts';
import { SliceShelf } from './slice-shelf.ts';
import { contextShape, ringScripts, sliceScripts, type Subject } from './subjects.ts';
import { UncutModel } from './uncut-model.ts';

/** How much of a model is looked at. `all` or so many, chosen by the seed. */
export interface ProofScope {
  readonly slices: 'all' | 'none';
  /** By number of stages. */
  readonly rings: Readonly<Record<2 | 3 | 4, number | 'all'>>;
  /** Chunkings that rings are put through beside those of the slices' script. */
  readonly chunkings: readonly number[];
  /** Greedy tokens after each of them but the first, which has 64. */
  readonly stepsAfterChunks: number;
  /** Whether opened slices are kept for other rings: not where they are large. */
  readonly keepsSlices: boolean;
  readonly seed: number;
}

export interface ProofReport {
  readonly subject: string;
  readonly slices: number;
  readonly rings: number;
  readonly slicesFound: BitComparison;
  readonly ringsFound: BitComparison;
  /** Observed against not observed: logits of the uncut model. */
  readonly observedFound: BitComparison;
  /** Slices and rings that are not exact. */
  readonly faults: readonly string[];
  readonly cpuSeconds: number;
}

export async function prove(subject: Subject, scope: ProofScope): Promise<ProofReport> {
  const startedUs = cpuUs();
  const shelf = await SliceShelf.create(subject.path, contextShape);
  try {
    const { model } = shelf;
    const forSlices = sliceScripts(model);
    const forRings = ringScripts(model, scope.chunkings, scope.stepsAfterChunks);
    const recordings = recordAll(subject, [...forSlices, ...forRings]);
    const observedFound = compareObserved(subject, recordings, [...forSlices, ...forRings]);
    const ofSlices =
      scope.slices === 'all' ? await proveSlices(shelf, recordings.slice(0, forSlices.length), scope) : nothing();
    // Where slices are not looked at by themselves, rings are put through their script as well.
    const ringRecordings = scope.slices === 'all' ? recordings.slice(forSlices.length) : recordings;
    const ofRings = await proveRings(shelf, { cuts: chosenRings(model, scope), recordings: ringRecordings, scope });
    return {
      subject: subject.name,
      slices: ofSlices.count,
      rings: ofRings.count,
      slicesFound: ofSlices.found,
      ringsFound: ofRings.found,
      observedFound,
      faults: [...ofSlices.faults, ...ofRings.faults],
      cpuSeconds: (cpuUs() - startedUs) / 1e6,
    };
  } finally {
    await shelf.close();
  }
}

export function reportLine(report: ProofReport): string {
  const { subject, slices, rings, slicesFound, ringsFound, faults, cpuSeconds } = report;
  const parts = [
    ...(slices > 0 ? [`${String(slices)} slices (${slicesFound.text})`] : []),
    `${String(rings)} rings (${ringsFound.text})`,
    `${String(faults.length)} not exact`,
    `${cpuSeconds.toFixed(1)} s of CPU`,
  ];
  return `${subject}: ${parts.join('; ')}`;
}

interface Found {
  readonly count: number;
  readonly found: BitComparison;
  readonly faults: readonly string[];
}

const nothing = (): Found => ({ count: 0, found: new BitComparison(), faults: [] });

/** What the uncut model makes of the scripts, with every layer boundary. */
export function recordAll({ path }: Subject, scripts: readonly Script[]): Recording[] {
  const uncut = new UncutModel({ path, ...contextShape, observes: true });
  try {
    return scripts.map((script) => record(uncut, script));
  } finally {
    uncut.close();
  }
}

/** A graph that is stopped at every layer could be computed otherwise than one that is not. */
function compareObserved(
  { path }: Subject,
  recordings: readonly Recording[],
  scripts: readonly Script[],
): BitComparison {
  const uncut = new UncutModel({ path, ...contextShape, observes: false });
  const comparison = new BitComparison();
  try {
    scripts.forEach((script, index) => {
      const observed = (recordings[index]?.decodes ?? []).flatMap(({ logits }) => logits);
      const plain = record(uncut, script).decodes.flatMap(({ logits }) => logits);
      assert(plain.length === observed.length, 'as many rows have logits');
      plain.forEach((logits, at) => {
        comparison.add(logits, observed[at] ?? new Float32Array(), 1);
      });
    });
    return comparison;
  } finally {
    uncut.close();
  }
}

async function proveSlices(
  shelf: SliceShelf,
  recordings: readonly Recording[],
  { keepsSlices }: ProofScope,
): Promise<Found> {
  const found = new BitComparison();
  const faults: string[] = [];
  const ranges = legalSlices(shelf.model);
  for (const layers of ranges) {
    const comparison = replaySlice(await shelf.open(layers), recordings);
    found.merge(comparison);
    if (!comparison.isExact) faults.push(`slice ${layersText(layers)}: ${comparison.text}`);
    if (!keepsSlices) await shelf.empty();
  }
  return { count: ranges.length, found, faults };
}

function chosenRings(model: ModelFile, { rings, seed }: ProofScope): RingCut[] {
  return ([2, 3, 4] as const).flatMap((stages) => {
    const all = legalRings(model, stages);
    const wanted = rings[stages];
    return wanted === 'all' ? all : sampleRings(all, wanted, seed + stages);
  });
}

interface RingWork {
  readonly cuts: readonly RingCut[];
  readonly recordings: readonly Recording[];
  readonly scope: ProofScope;
}

async function proveRings(shelf: SliceShelf, { cuts, recordings, scope }: RingWork): Promise<Found> {
  const found = new BitComparison();
  const faults: string[] = [];
  for (const cut of cuts) {
    const { hops, logits } = replayRing(await shelf.openRing(cut), recordings);
    found.merge(hops);
    found.merge(logits);
    const isExact = hops.isExact && logits.isExact;
    if (!isExact) faults.push(`ring ${ringText(cut)}: hops ${hops.text}; logits ${logits.text}`);
    if (!scope.keepsSlices) await shelf.empty();
  }
  return { count: cuts.length, found, faults };
}

function cpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
