/** The Agent service: what an operator's commands ask of this host. */
import { randomInt } from 'node:crypto';
import { P4Error } from '../../protocol/errors.ts';
import { faultsText } from '../../protocol/fault.ts';
import { generation, loadId, ringName, sliceId, type Generation, type RingName } from '../../protocol/ids.ts';
import type * as messages from '../../protocol/messages.ts';
import { parsePlan } from '../../protocol/plan-document.ts';
import { planDigest } from '../../protocol/plan-digest.ts';
import type { Plan } from '../../protocol/plan.ts';
import { assignmentText } from '../assignment.ts';
import { makeGenerationDigest, matchesGenerationDigest } from '../generation-digest.ts';
import type { Input } from '../inputs.ts';
import type { LoadWatch } from '../load-watch.ts';
import type { PendingCalls } from '../pending-calls.ts';
import type { EventSender, RpcHandlers } from '../rpc/calls.ts';
import type { AgentState } from '../state.ts';
import type { StatusReport } from '../status-report.ts';

export interface OperatorServiceOptions {
  readonly state: () => AgentState;
  readonly dispatch: (input: Input) => void;
  readonly calls: PendingCalls;
  readonly watch: LoadWatch;
  readonly report: StatusReport;
}

type OperatorHandlers = Pick<RpcHandlers['Agent'], 'Describe' | 'Status' | 'Load' | 'Link' | 'Probe' | 'Unload'>;

export function operatorService(options: OperatorServiceOptions): OperatorHandlers {
  const { calls, dispatch, report } = options;
  return {
    Describe: () => report.describe(),
    Status: ({ ring, samples }) => report.status(ring === '' ? null : ringName(ring), samples),
    Load: (request, _caller, stream) => load(options, request, stream),
    Link: async (request) => {
      const { links } = await calls.ask('linked', (call) => {
        dispatch({ kind: 'link', call, ...addressOf(request), atMs: performance.now() });
      });
      return { links };
    },
    Probe: async (request) => {
      const { roundMs } = await calls.ask('probed', (call) => {
        dispatch({ kind: 'probe', call, ...addressOf(request), nonce: randomInt(2 ** 32), atMs: performance.now() });
      });
      return { roundMs };
    },
    Unload: async (request) => {
      const at = addressOf(request);
      const digestMatches = await fitsDigest(options.state(), at);
      const { stages } = await calls.ask('unloaded', (call) => {
        dispatch({ kind: 'unload', call, ...at, digestMatches });
      });
      return { stages };
    },
  };
}

async function load(
  { state, dispatch, calls, watch }: OperatorServiceOptions,
  request: messages.LoadRequest,
  stream: EventSender<messages.LoadProgress>,
): Promise<void> {
  const send = (progress: messages.LoadProgress): void => void stream.send(progress);
  const { plan, order } = parseLoad(request);
  const at = addressOf(request);
  const digestMatches = await fitsDigest(state(), at);
  const generationDigest = await makeGenerationDigest(at.generation);
  // The loader has left, and may have taken the load back already: it must not come to stand after that.
  if (stream.signal.aborted) return;
  const unwatch = watch.on(order.load, send);
  try {
    const { confirmed } = await calls.ask('loaded', (call) => {
      const atMs = performance.now();
      dispatch({ kind: 'load', call, ...at, ...order, plan, generationDigest, digestMatches, atMs });
    });
    const ring = state().rings.get(at.ring);
    if (!confirmed || ring?.kind !== 'live') return;
    for (const [node, nodeState] of ring.nodes) {
      send({ node, phase: 'confirmed', fraction: 1, pid: nodeState.kind === 'loaded' ? nodeState.pid : 0 });
    }
  } finally {
    unwatch();
  }
}

/** The request's own claims about itself: its digest is the plan's, its placements fit the plan's stages. */
function parseLoad(request: messages.LoadRequest): {
  plan: Plan;
  order: Pick<Extract<Input, { kind: 'load' }>, 'load' | 'planDigest' | 'assignment' | 'placements'>;
} {
  const reading = parsePlan(request.plan, 'the plan of the load');
  if (reading.kind === 'faults') {
    throw new P4Error('INVALID_ARGUMENT', { what: 'plan', found: faultsText(reading.faults), expected: 'a good plan' });
  }
  const { plan } = reading;
  const digest = planDigest(plan);
  if (plan.ring !== request.ring || digest !== request.planDigest || request.stages.length !== plan.stages.length) {
    throw new P4Error('INVALID_ARGUMENT', {
      what: 'load',
      found: `ring ${request.ring}, digest ${request.planDigest}, ${request.stages.length} placements`,
      expected: `those of its plan: ring ${plan.ring}, digest ${digest}, ${plan.stages.length} placements`,
    });
  }
  const placements = request.stages.map(({ sliceId: id, address, port }) => ({ sliceId: sliceId(id), address, port }));
  const assignment = assignmentText(request.plan, placements);
  return { plan, order: { load: loadId(request.loadId), planDigest: digest, assignment, placements } };
}

interface GenerationAddress {
  readonly ring: RingName;
  readonly generation: Generation;
}

function addressOf(request: { readonly ring: string; readonly generation: string }): GenerationAddress {
  return { ring: ringName(request.ring), generation: generation(request.generation) };
}

/** Whether the generation is that of a load the journal holds and nothing runs of (G4). */
export async function fitsDigest(state: AgentState, at: GenerationAddress): Promise<boolean> {
  const standing = state.rings.get(at.ring);
  if (standing?.kind !== 'claimed') return false;
  return matchesGenerationDigest(at.generation, standing.generationDigest);
}
