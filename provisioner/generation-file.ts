/**
 * The loader's record of one ring's newest load: `generations/<ring>.json` in the state folder.
 *
 * - G1: it stays when the ring is unloaded, so that the next generation is greater than every one before.
 * - G2: it is durable, for its owner only, when `keepGeneration` returns; commands leave after that. It holds the plan
 *   and its digest.
 * - G6: what stands is told again from it.
 * - A load that no agent took leaves no trace in it.
 */
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { assert } from '../protocol/assert.ts';
import { P4Error } from '../protocol/errors.ts';
import { nextGeneration } from '../protocol/generation.ts';
import {
  generation,
  isName,
  loadId,
  ringName,
  sliceId,
  type Generation,
  type RingName,
  type SliceId,
} from '../protocol/ids.ts';
import { limits } from '../protocol/limits.ts';
import { planDigest } from '../protocol/plan-digest.ts';
import { parsePlan, planFileOf } from '../protocol/plan-document.ts';
import { namePatternText } from '../protocol/plan-schema.ts';
import type { Plan } from '../protocol/plan.ts';
import { parsedOrNull } from '../protocol/plain-value.ts';
import { compiledSchema } from '../protocol/schema-fault.ts';
import { systemCode } from '../protocol/tls-identity.ts';
import { makeOwnerFolder, ownerFileMode, readIfThere, removeDurably, writeDurably } from './durable-file.ts';
import { knownFleet } from './fleet-file.ts';
import { keptPhases, type KeptLoad, type KeptPhase, type LoadName } from './loader-step.ts';
import { readStateText, stateText } from './state-document.ts';
import type { StateFolder } from './state-folder.ts';
import { whileLocked } from './state-lock.ts';

export interface KeptGeneration extends KeptLoad {
  /** The ring's plan after defaults; the digest is its own. */
  readonly plan: Plan;
  /** Absolute path of the file the plan was read from: the plan's relative paths start there. */
  readonly planFile: string;
  /** Of each stage, in ring order; empty in files that an earlier release wrote. */
  readonly slices: readonly SliceId[];
  /** When the generation was chosen, ISO 8601. */
  readonly createdAt: string;
  /** The ring's greatest generation before this one, `null` for the first. */
  readonly former: Generation | null;
}

/** What a new load is made of. */
export interface FreshLoad {
  readonly plan: Plan;
  readonly planFile: string;
  readonly slices: readonly SliceId[];
  readonly now: Date;
}

const fileOf = (folder: StateFolder, ring: RingName): string => join(folder.generations, `${ring}.json`);

/**
 * The ring's newest load, `null` where there has been none from here.
 *
 * @throws GENERATION_FILE_DAMAGED, STATE_UNREADABLE
 */
export async function readGeneration(folder: StateFolder, ring: RingName): Promise<KeptGeneration | null> {
  const file = fileOf(folder, ring);
  const text = await readIfThere(file);
  return text === null ? null : parseGeneration(text, file, ring);
}

/** @throws FLEET_FILE_MISSING, GENERATION_FILE_MISSING where nothing was loaded from here; else as `readGeneration` */
export async function knownGeneration(folder: StateFolder, ring: RingName): Promise<KeptGeneration> {
  const kept = await readGeneration(folder, ring);
  if (kept !== null) return kept;
  // Where there is no fleet, that comes first.
  await knownFleet(folder);
  throw new P4Error('GENERATION_FILE_MISSING', { ring, file: fileOf(folder, ring) });
}

/** The newest load of every ring that was loaded from here, by name. @throws as `readGeneration` */
export async function readGenerations(folder: StateFolder): Promise<readonly KeptGeneration[]> {
  const names = await readdir(folder.generations).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw new P4Error('STATE_UNREADABLE', { path: folder.generations, why: systemCode(error) }, error);
  });
  const rings = names.filter((name) => name.endsWith('.json') && isName(name.slice(0, -5))).sort();
  const kept = await Promise.all(rings.map((name) => readGeneration(folder, ringName(name.slice(0, -5)))));
  return kept.filter((one) => one !== null);
}

/**
 * A load under a number of its own, not yet kept.
 *
 * @param former what `readGeneration` says of the ring
 * @throws GENERATIONS_EXHAUSTED
 */
export function freshGeneration(
  { plan, planFile, slices, now }: FreshLoad,
  former: KeptGeneration | null,
): KeptGeneration {
  const { ring } = plan;
  return {
    ...freshName(ring, former),
    planDigest: planDigest(plan),
    phase: 'loading',
    plan,
    planFile,
    slices,
    createdAt: now.toISOString(),
    former: former?.generation ?? null,
  };
}

const freshName = (ring: RingName, former: KeptGeneration | null): LoadName => ({
  generation: nextGeneration(ring, former?.generation ?? null, randomBytes(8)),
  loadId: loadId(randomBytes(16).toString('hex')),
});

/**
 * Keeps a load, or how far it has come. When this returns, it is durable.
 *
 * @param next the load to keep: `former` in another phase, or a fresh one after it
 * @param former what the ring's file has said so far; another command's change since then is not written over
 * @throws GENERATION_FILE_CHANGED, GENERATION_FILE_DAMAGED, STATE_BUSY, STATE_UNREADABLE, STATE_UNWRITABLE
 */
export async function keepGeneration(
  folder: StateFolder,
  next: KeptGeneration,
  former: KeptGeneration | null,
): Promise<void> {
  const { ring } = next.plan;
  assert(former === null || isSuccessor(next, former), 'a ring keeps its load, or a greater one');
  const file = fileOf(folder, ring);
  await makeOwnerFolder(folder.generations);
  await whileLocked(file, async () => {
    const present = await readGeneration(folder, ring);
    const isAsRead = present?.generation === former?.generation && present?.phase === former?.phase;
    if (!isAsRead) throw new P4Error('GENERATION_FILE_CHANGED', { ring, file });
    await writeDurably({ path: file, text: generationText(next), mode: ownerFileMode });
  });
}

/**
 * Takes back a load that stands nowhere: the file says again what it said before, or is gone where it said nothing. When
 * this returns, that is durable.
 *
 * @param next what the file says now; another command's change since then is not written over
 * @param former what it said before `next` was chosen
 * @throws as `keepGeneration`
 */
export async function restoreGeneration(
  folder: StateFolder,
  next: KeptGeneration,
  former: KeptGeneration | null,
): Promise<void> {
  const { ring } = next.plan;
  assert(next.former === (former?.generation ?? null), 'what is restored was there before');
  const file = fileOf(folder, ring);
  await whileLocked(file, async () => {
    const present = await readGeneration(folder, ring);
    const isAsRead = present?.generation === next.generation && present.phase === next.phase;
    if (!isAsRead) throw new P4Error('GENERATION_FILE_CHANGED', { ring, file });
    if (former === null) await removeDurably(file);
    else await writeDurably({ path: file, text: generationText(former), mode: ownerFileMode });
  });
}

const isSuccessor = (next: KeptGeneration, former: KeptGeneration): boolean =>
  next.generation === former.generation
    ? next.loadId === former.loadId && next.planDigest === former.planDigest
    : next.generation > former.generation && next.former === former.generation;

/** The file's value. */
interface GenerationFile {
  readonly format: 1;
  readonly ring: string;
  readonly generation: string;
  readonly loadId: string;
  readonly planDigest: string;
  readonly phase: KeptPhase;
  readonly createdAt: string;
  readonly formerGeneration: string | null;
  readonly planFile: string;
  readonly slices?: readonly string[];
  /** As a plan file has it. */
  readonly plan: object;
}

const decimal = '^[1-9][0-9]{0,19}$';

const checkGenerationFile = compiledSchema<GenerationFile>({
  type: 'object',
  description: 'a mapping of a load',
  additionalProperties: false,
  required: [
    'format',
    'ring',
    'generation',
    'loadId',
    'planDigest',
    'phase',
    'createdAt',
    'formerGeneration',
    'planFile',
    'plan',
  ],
  properties: {
    format: { const: 1, description: 'the format 1' },
    ring: { type: 'string', pattern: namePatternText, description: "the ring's name" },
    generation: { type: 'string', pattern: decimal, description: 'a decimal number' },
    loadId: { type: 'string', pattern: '^[0-9a-f]{32}$', description: '32 hexadecimal digits' },
    planDigest: { type: 'string', pattern: '^[0-9a-f]{64}$', description: '64 hexadecimal digits' },
    phase: { enum: keptPhases, description: `one of ${keptPhases.join(', ')}` },
    createdAt: { type: 'string', pattern: '^[0-9]{4}-[0-9T:.-]{1,30}Z$', description: 'a time' },
    formerGeneration: { type: ['string', 'null'], pattern: decimal, description: 'a decimal number, or null' },
    planFile: { type: 'string', pattern: '^/', description: 'an absolute path' },
    slices: {
      type: 'array',
      maxItems: limits.stages,
      description: 'a list of slice ids',
      items: { type: 'string', pattern: '^[0-9a-f]{64}$', description: '64 hexadecimal digits' },
    },
    plan: { type: 'object', description: 'a plan' },
  },
});

const generationText = (kept: KeptGeneration): string =>
  stateText({
    format: 1,
    ring: kept.plan.ring,
    generation: kept.generation.toString(),
    loadId: kept.loadId,
    planDigest: kept.planDigest,
    phase: kept.phase,
    createdAt: kept.createdAt,
    formerGeneration: kept.former?.toString() ?? null,
    planFile: kept.planFile,
    slices: kept.slices,
    plan: planFileOf(kept.plan),
  } satisfies GenerationFile);

function parseGeneration(text: string, file: string, ring: RingName): KeptGeneration {
  const refuse = (...why: readonly string[]): P4Error => new P4Error('GENERATION_FILE_DAMAGED', { file, why });
  const reading = readStateText(text, file, checkGenerationFile);
  if (reading.kind === 'damaged') throw refuse(...reading.why);
  const { value } = reading;
  const plan = parsePlan(JSON.stringify(value.plan), file);
  if (plan.kind === 'faults')
    throw refuse(...plan.faults.map(({ path, expected }) => `/plan${path} is not ${expected}`));
  if (ringName(value.ring) !== ring || plan.plan.ring !== ring) throw refuse('it is of another ring');
  if (planDigest(plan.plan) !== value.planDigest) throw refuse('the plan does not have its digest');
  const number = parsedOrNull(generation, value.generation);
  const former = parsedOrNull(generation, value.formerGeneration);
  if (number === null || (value.formerGeneration !== null && (former === null || former >= number)))
    throw refuse('its generation is no unsigned 64-bit number above the former one');
  return {
    generation: number,
    loadId: loadId(value.loadId),
    planDigest: value.planDigest,
    phase: value.phase,
    plan: plan.plan,
    planFile: value.planFile,
    slices: (value.slices ?? []).map(sliceId),
    createdAt: value.createdAt,
    former,
  };
}
