/** The digest that tells one plan from another (G2, G6). */
import { createHash } from 'node:crypto';
import { canonicalJson } from './canonical-json.ts';
import { defaultKeptPrefixes, type Plan } from './plan.ts';

/**
 * 64 hexadecimal digits: sha256 over the canonical JSON of the plan after defaults.
 *
 * Threads, confinement and the deadline are left out: they say how a stage runs, not what it computes, and may change
 * between two loads that are the same one. The model counts by the path written in the plan; its content is told apart by its slices' names.
 */
export function planDigest(plan: Plan): string {
  const counted = {
    ring: plan.ring,
    model: plan.modelOn === 'hosts' ? { path: plan.model, on: plan.modelOn } : plan.model,
    contextTokens: plan.contextTokens,
    sessions: plan.sessions,
    ...(plan.keptPrefixes === defaultKeptPrefixes(plan.sessions) ? {} : { keptPrefixes: plan.keptPrefixes }),
    kv: { keys: plan.kv.keys, values: plan.kv.values },
    decode: plan.decode,
    ...(plan.wire === 'f32' ? {} : { wire: plan.wire }),
    stages: plan.stages.map(({ index, host, layers, device }) => ({
      index,
      host,
      layers: { first: layers.first, last: layers.last },
      device: device.kind === 'cpu' ? { kind: 'cpu' } : { kind: 'gpu', index: device.index, layers: device.layers },
    })),
  };
  return createHash('sha256').update(canonicalJson(counted)).digest('hex');
}
