/**
 * Taking up stages that outlived their agent (R2): each is asked what it holds, and kept if the journal says that this agent
 * loaded it: the ring, its load, and a generation that fits the load's digest. Any other is an orphan of a load that is gone:
 * it is ended, and told nothing but to end.
 */
import { basename } from 'node:path';

import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import {
  generation,
  nodeIndex,
  type Generation,
  type HostName,
  type LoadId,
  type NodeIndex,
} from '../../protocol/ids.ts';
import type { StageHolding } from '../../protocol/stage-control.ts';
import { matchesGenerationDigest } from '../generation-digest.ts';
import type { Assignment } from '../assignment.ts';
import type { Adoption } from '../inputs.ts';
import type { Log } from '../log.ts';
import type { LoadAdmitted } from '../records.ts';
import { startOf } from '../stage-starts.ts';
import type { FormerStage } from '../stages.ts';
import type { StandingLoad } from '../standing-loads.ts';
import { StageConnection } from './stage-connection.ts';
import type { StageHandle } from './stage-launcher.ts';

export interface TakenUp {
  readonly adoption: Omit<Adoption, 'atMs'>;
  readonly stages: readonly FormerStage[];
}

interface Parts {
  readonly host: HostName;
  readonly loads: readonly StandingLoad[];
  readonly log: Log;
}

/** What one stage says, and whose it is. */
interface Claim {
  readonly handle: StageHandle;
  readonly holding: StageHolding;
  readonly admitted: LoadAdmitted;
  readonly assignment: Assignment;
  readonly incarnation: number;
}

export async function takeUpStages(handles: readonly StageHandle[], parts: Parts): Promise<readonly TakenUp[]> {
  const claims = new Map<LoadId, Map<NodeIndex, Claim>>();
  const unwanted: StageHandle[] = [];
  // All at once: one that is stopped takes its time not to answer.
  const answers = await Promise.all(handles.map(async (handle) => ({ handle, claim: await claimOf(handle, parts) })));
  for (const { handle, claim } of answers) {
    if (claim === null) {
      parts.log({ event: 'orphan-ending', stage: basename(handle.folder), pid: handle.pid });
      unwanted.push(handle);
      continue;
    }
    const ofLoad = claims.get(claim.admitted.load) ?? new Map<NodeIndex, Claim>();
    claims.set(claim.admitted.load, ofLoad);
    const other = ofLoad.get(claim.holding.node);
    const isNewer = other === undefined || other.incarnation < claim.incarnation;
    if (isNewer) ofLoad.set(claim.holding.node, claim);
    const older = isNewer ? other : claim;
    if (older !== undefined) unwanted.push(older.handle);
  }
  await Promise.all(unwanted.map((handle) => handle.stop()));
  const kept = [...claims.values()].map((ofLoad) => [...ofLoad.values()]);
  const highestStart = Math.max(0, ...kept.flat().map(({ incarnation }) => incarnation));
  return kept.map((ofLoad) => takenUp(ofLoad, highestStart, parts.log));
}

/** `null` for a stage that is nobody's. */
async function claimOf(handle: StageHandle, { host, loads }: Parts): Promise<Claim | null> {
  const holding = await holdingOf(handle);
  const [, digits = '', node, incarnation] = /^([0-9a-f]{8})\.([0-9]+)\.([0-9]+)$/.exec(basename(handle.folder)) ?? [];
  if (holding === null || holding.node !== Number(node)) return null;
  const standing = loads.find(({ admitted }) => admitted.ring === holding.ring && admitted.load.startsWith(digits));
  if (standing === undefined) return null;
  const { admitted, assignment } = standing;
  if (assignment?.plan.stages[holding.node]?.host !== host) return null;
  const fits = await matchesGenerationDigest(generation(holding.generation), admitted.generationDigest);
  return fits ? { handle, holding, admitted, assignment, incarnation: Number(incarnation) } : null;
}

/** `null` where it holds nothing, is of another release, or does not answer. */
async function holdingOf({ folder, gone }: StageHandle): Promise<StageHolding | null> {
  try {
    const connection = await StageConnection.open({ folder, gone, onLost: () => undefined });
    connection.close();
    return connection.welcome.holds;
  } catch (error) {
    if (error instanceof P4Error) return null;
    throw error;
  }
}

function takenUp(claims: readonly Claim[], highestStart: number, log: Log): TakenUp {
  const stages = claims.map(({ handle, holding, admitted, assignment, incarnation }): FormerStage => {
    const ring = { ring: holding.ring, load: admitted.load, ...assignment, generation: held(holding) };
    log({ event: 'stage-taken-up', ring: holding.ring, node: holding.node, pid: handle.pid });
    return { start: startOf(ring, nodeIndex(holding.node), incarnation), handle, facts: holding.facts };
  });
  const first = present(claims[0], 'a load is taken up with a stage of it');
  const { admitted, assignment } = first;
  return {
    stages,
    adoption: {
      ...{ ring: admitted.ring, load: admitted.load, generation: held(first.holding), ...assignment },
      stages: new Map(claims.map(({ holding, incarnation }) => [holding.node, incarnation])),
      highestStart,
    },
  };
}

const held = ({ generation: digits }: StageHolding): Generation => generation(digits);
