import assert from 'node:assert/strict';
import { test } from 'node:test';
import { present } from './assert.ts';
import { readDocument } from './document.ts';
import { faultsText } from './fault.ts';
import { compiledSchema, schemaFaults } from './schema-fault.ts';

const check = compiledSchema<{ readonly name: string }>({
  type: 'object',
  description: 'a thing',
  required: ['name'],
  additionalProperties: false,
  properties: { name: { type: 'string', minLength: 2, description: 'a name of two letters' } },
});

function faultsIn(text: string): string {
  const document = present(readDocument(text, 'f.yaml').document, 'the text is YAML');
  check(document.value);
  return faultsText(schemaFaults(check.errors ?? [], document));
}

test('a value of the schema has no faults', () => {
  assert.equal(faultsIn('name: ab'), '');
});

test('a fault has the words of the schema', () => {
  assert.equal(faultsIn('name: a'), 'f.yaml:1:7 /name: found "a", expected a name of two letters');
  assert.equal(
    faultsIn('name: 7'),
    'f.yaml:1:7 /name: found the number 7 without quotes, expected a name of two letters',
  );
  assert.equal(
    faultsIn('name: true'),
    'f.yaml:1:7 /name: found the boolean true without quotes, expected a name of two letters',
  );
  assert.equal(
    faultsIn('a/b: 1'),
    'f.yaml:1:1 /name: found nothing, expected a name of two letters\n' +
      'f.yaml:1:1 /a~1b: found the unknown key "a/b", expected one of the keys name',
  );
});

test('a schema that does not describe a part is a bug', () => {
  const mute = compiledSchema({ type: 'string' });
  const document = present(readDocument('1', 'f.yaml').document, 'the text is YAML');
  mute(document.value);
  assert.throws(() => schemaFaults(mute.errors ?? [], document), /the schema describes this part/);
});
