import assert from 'node:assert/strict';
import { test } from 'node:test';
import { faultsText } from './fault.ts';
import { hostName } from './ids.ts';
import { parsePlan, type PlanDocument } from './plan-document.ts';
import { checkPlanHosts, checkPlanLayers, type ModelLayers } from './plan-fit.ts';

function documentWith(...stages: string[]): PlanDocument {
  const lines = stages.map((stage) => `  - { ${stage} }`).join('\n');
  const reading = parsePlan(`ring: r\nmodel: m\ncontext: 2048\nsessions: 1\nstages:\n${lines}\n`, 'p.yaml');
  assert(reading.kind === 'plan');
  return reading;
}

const eightLayers: ModelLayers = {
  layerCount: 8,
  legalCuts: [1, 2, 3, 4, 5, 6, 7],
  reason: null,
  trainedContextTokens: 4096,
};

test('a plan that fits its model has no fault', () => {
  const document = documentWith('host: ant, layers: 0-3', 'host: bee, layers: 4-7');
  assert.deepEqual(checkPlanLayers(document, eightLayers), []);
});

test('a layer past the end is named', () => {
  const document = documentWith('host: ant, layers: 0-3', 'host: bee, layers: 4-8');
  assert.equal(
    faultsText(checkPlanLayers(document, eightLayers)),
    'p.yaml:7:26 /stages/1/layers: found 4-8, expected layers up to 7: the model has 8',
  );
});

test('layers that no stage has are named', () => {
  const document = documentWith('host: ant, layers: 0-3', 'host: bee, layers: 4-5');
  assert.equal(
    faultsText(checkPlanLayers(document, eightLayers)),
    'p.yaml:7:26 /stages/1/layers: found 4-5, expected the last stage to end with layer 7: layers 6-7 are on no stage',
  );
});

test('an illegal cut is named with the legal ones and the reason', () => {
  const model = { ...eightLayers, legalCuts: [4], reason: 'the attention pattern repeats every 4 layers' };
  const document = documentWith('host: ant, layers: 0-1', 'host: bee, layers: 2-3', 'host: bee, layers: 4-7');
  assert.equal(
    faultsText(checkPlanLayers(document, model)),
    'p.yaml:7:26 /stages/1/layers: found 2-3, expected a cut before one of the layers 4: the attention pattern repeats every 4 layers',
  );
  assert.equal(
    faultsText(checkPlanLayers(document, { ...model, legalCuts: [], reason: null })),
    [
      'p.yaml:7:26 /stages/1/layers: found 2-3, expected no cut',
      'p.yaml:8:26 /stages/2/layers: found 4-7, expected no cut',
    ].join('\n'),
  );
});

test('a context longer than the trained one is named; where it is not known, nothing is said', () => {
  const document = documentWith('host: ant, layers: 0-7');
  const model = { ...eightLayers, trainedContextTokens: 1024 };
  assert.equal(
    faultsText(checkPlanLayers(document, model)),
    'p.yaml:3:10 /context: found 2048, expected at most 1024, the context that the model was trained with',
  );
  assert.deepEqual(checkPlanLayers(document, { ...model, trainedContextTokens: null }), []);
});

test('an unknown host is named at each stage that wants it', () => {
  const document = documentWith('host: ant, layers: 0-3', 'host: cow, layers: 4-7');
  assert.equal(
    faultsText(checkPlanHosts(document, [hostName('ant'), hostName('bee')])),
    'p.yaml:7:13 /stages/1/host: found the unknown host cow, expected one of ant, bee',
  );
  assert.equal(checkPlanHosts(document, []).length, 2);
});
