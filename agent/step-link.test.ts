import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { P4Error } from '../protocol/errors.ts';
import { hostName, nodeIndex } from '../protocol/ids.ts';
import {
  alpha,
  call,
  load,
  loadInput,
  planOver,
  right,
  ring,
  stageUp,
  ToyAgent,
  wrong,
} from '../test/simulation/toy-agent.ts';
import type { DialledEdge } from './effects.ts';
import { step } from './step.ts';
import type { AgentState, LiveRing } from './state.ts';
import { edgeFault, edgesToDial } from './step-link.ts';

const beta = hostName('beta');
const edge = { ring, generation: right, source: nodeIndex(1), destination: nodeIndex(0) };

/** Has the head of a ring whose other stage is on another host. */
const loading = (): ToyAgent => new ToyAgent(2).dispatch(loadInput(planOver([alpha, beta])));

function loaded(): ToyAgent {
  const agent = loading();
  stageUp(agent, 0);
  return agent;
}

suite('an edge that another agent opens', () => {
  test('is taken of the ring’s own generation, from the host that the plan names, and no other (G3)', () => {
    const { state } = loaded();
    assert.equal(edgeFault(state, edge, beta), null);
    assert.equal(edgeFault(state, { ...edge, generation: wrong }, beta)?.code, 'GENERATION_MISMATCH');
    assert.equal(edgeFault(state, edge, hostName('gamma'))?.code, 'EDGE_UNKNOWN');
    assert.equal(edgeFault(state, { ...edge, source: nodeIndex(0) }, beta)?.code, 'EDGE_UNKNOWN');
  });

  test('is told whether a stage loads: only that puts a deadline off (R1, R4)', () => {
    assert.equal(edgeFault(loading().state, edge, beta)?.facts['phase'], 'loading');
    const error = new P4Error('LINK_LOST', {});
    const emptied = loaded().dispatch({ kind: 'link-lost', ring, load, error, atMs: 5 });
    assert.equal(edgeFault(emptied.state, edge, beta)?.facts['phase'], 'attaching');
  });
});

suite('an edge that leaves this host', () => {
  const out: DialledEdge = {
    ...{ ring, generation: right, source: nodeIndex(0), destination: nodeIndex(1) },
    ...{ host: beta, address: '127.0.0.1', port: 7400 },
  };
  const live = ({ state }: { readonly state: AgentState }): LiveRing => {
    const standing = state.rings.get(ring);
    assert.ok(standing?.kind === 'live');
    return standing;
  };

  test('is not dialled when its ring was cut since, or it stands already', () => {
    const agent = loaded().dispatch({ kind: 'link', call: call(2), ring, generation: right, atMs: 0 });
    assert.deepEqual(edgesToDial(live(agent), [out]), [out]);
    const cut = { kind: 'link-lost', ring, load, error: new P4Error('LINK_LOST', {}), atMs: 5 } as const;
    assert.deepEqual(edgesToDial(live(step(agent.state, cut)), [out]), []);
    const link = { source: out.source, destination: out.destination, address: out.address, peer: beta };
    assert.deepEqual(edgesToDial({ ...live(agent), links: [link] }, [out]), []);
  });

  test('whose receiver loads is told of to the hosts before, whatever has come of this host’s own loss (R1)', () => {
    const agent = loaded().dispatch({ kind: 'link', call: call(2), ring, generation: right, atMs: 0 });
    const phase = (name: string): P4Error => new P4Error('RING_NOT_READY', { ring, host: beta, phase: name });
    const told = (error: P4Error): readonly string[] => {
      const input = { kind: 'dial-failed', ring, load, source: nodeIndex(0), error, atMs: 5 } as const;
      return step(agent.state, input).effects.map(({ kind }) => kind);
    };
    assert.ok(told(phase('loading')).includes('tell-loading'));
    assert.ok(!told(phase('attaching')).includes('tell-loading'));
    const heard = { kind: 'neighbour-loads', ring, load, source: nodeIndex(0), atMs: 9 } as const;
    const { state, effects } = step(agent.state, heard);
    assert.deepEqual(effects, [{ kind: 'tell-loading', ring, load, source: nodeIndex(0) }]);
    assert.deepEqual(state, agent.state, 'it has no deadline of its own to put off');
  });
});
