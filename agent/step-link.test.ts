import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { P4Error } from '../protocol/errors.ts';
import { hostName, nodeIndex } from '../protocol/ids.ts';
import {
  alpha,
  load,
  loadInput,
  planOver,
  right,
  ring,
  stageUp,
  ToyAgent,
  wrong,
} from '../test/simulation/toy-agent.ts';
import { edgeFault } from './step-link.ts';

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
