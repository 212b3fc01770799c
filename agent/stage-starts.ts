/** What a stage is told when it is started: its part of the plan. */
import { present } from '../protocol/assert.ts';
import type { NodeIndex } from '../protocol/ids.ts';
import { threadsOf } from '../protocol/plan.ts';
import type { StartStage } from './effects.ts';
import type { AgentState, LiveRing } from './state.ts';

type StartedRing = Pick<LiveRing, 'ring' | 'load' | 'plan' | 'generation' | 'placements'>;

/** The starts of a ring's nodes on this host, with numbers from the agent's next one on. */
export const startsOf = (state: AgentState, ring: StartedRing, nodes: readonly NodeIndex[]): StartStage[] =>
  nodes.map((node, count) => startOf(ring, node, state.nextIncarnation + count));

/** The start of one node, with a number of its own. */
export function startOf(
  { ring, load, plan, generation, placements }: StartedRing,
  node: NodeIndex,
  incarnation: number,
): StartStage {
  const { contextTokens, sessions, keptPrefixes, kv, decode, wire, stages } = plan;
  const { layers, device, threads, confinement } = present(stages[node], 'a node is a stage of its plan');
  return {
    kind: 'start-stage',
    incarnation,
    order: {
      ...{ ring, load, node },
      stage: {
        ...{ ring, node, stages: stages.length, generation: generation.toString() },
        sliceId: present(placements[node], 'every stage has a placement').sliceId,
        modelLayers: present(stages.at(-1), 'a plan has stages').layers.last + 1,
        ...{ layers, contextTokens, sessions, keptPrefixes, kv, decode, wire, device, threads: threadsOf(threads) },
        ...(confinement === undefined ? {} : { confinement }),
      },
    },
  };
}
