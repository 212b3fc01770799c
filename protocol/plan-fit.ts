/**
 * Whether a good plan fits what it is to run on: the model's layers, the hosts there are.
 *
 * Plain values in, faults at the plan's lines out.
 */
import type { Fault } from './fault.ts';
import type { HostName } from './ids.ts';
import { pointerTo } from './json-pointer.ts';
import type { PlanDocument } from './plan-document.ts';
import { layersText, type StagePlan } from './plan.ts';
import { layerWords } from './stage-order.ts';

/** What a plan has to know of its model. */
export interface ModelLayers {
  readonly layerCount: number;
  /** Layers that a stage other than the head may start with. */
  readonly legalCuts: readonly number[];
  /** Why the other layers are no legal cuts, in a sentence without its full stop; `null` where all are. */
  readonly reason: string | null;
  /** Tokens of context the model was trained with, `null` where the file does not say. */
  readonly trainedContextTokens: number | null;
}

/** The stages against the model: all of its layers, none that it has not, cuts only where they are legal. */
export function checkPlanLayers(document: PlanDocument, model: ModelLayers): readonly Fault[] {
  const { plan } = document;
  const newest = model.layerCount - 1;
  const faults = plan.stages.flatMap((stage) => {
    if (stage.layers.last > newest)
      return [layersFault(document, stage, `layers up to ${newest}: the model has ${model.layerCount}`)];
    if (stage.index === 0 || model.legalCuts.includes(stage.layers.first)) return [];
    const cuts =
      model.legalCuts.length === 0 ? 'no cut' : `a cut before one of the layers ${model.legalCuts.join(', ')}`;
    return [layersFault(document, stage, model.reason === null ? cuts : `${cuts}: ${model.reason}`)];
  });
  const tail = plan.stages.at(-1);
  if (tail !== undefined && tail.layers.last < newest) {
    const missing = layerWords({ first: tail.layers.last + 1, last: newest });
    faults.push(layersFault(document, tail, `the last stage to end with layer ${newest}: ${missing} on no stage`));
  }
  const trained = model.trainedContextTokens;
  if (trained !== null && plan.contextTokens > trained) {
    const expected = `at most ${trained}, the context that the model was trained with`;
    faults.push(faultAt(document, pointerTo('context'), { found: String(plan.contextTokens), expected }));
  }
  return faults;
}

/** The stages' hosts against those there are. */
export function checkPlanHosts(document: PlanDocument, hosts: readonly HostName[]): readonly Fault[] {
  const expected = hosts.length === 0 ? 'a host of the fleet, which has none yet' : `one of ${hosts.join(', ')}`;
  return document.plan.stages
    .filter((stage) => !hosts.includes(stage.host))
    .map((stage) => {
      const found = `the unknown host ${stage.host}`;
      return faultAt(document, pointerTo('stages', stage.index, 'host'), { found, expected });
    });
}

const layersFault = (document: PlanDocument, stage: StagePlan, expected: string): Fault =>
  faultAt(document, pointerTo('stages', stage.index, 'layers'), { found: layersText(stage.layers), expected });

const faultAt = (document: PlanDocument, path: string, words: Pick<Fault, 'found' | 'expected'>): Fault => ({
  ...document.locate(path),
  path,
  ...words,
});
