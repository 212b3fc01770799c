import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { Metadata, status } from '@grpc/grpc-js';

import { errorCodes, P4Error, type ErrorCode } from './errors.ts';
import { limits } from './limits.ts';
import { errorOf, printable, statusFacts, statusOf } from './rpc-error.ts';

const facts = (text: string | Buffer, code = 'RING_LOADED'): P4Error | null => {
  const metadata = new Metadata();
  metadata.set('p4-code', code);
  metadata.set('p4-facts-bin', Buffer.from(text));
  return errorOf({ metadata });
};

suite('errors on their way through gRPC', () => {
  test('every code has its status and comes back as itself', () => {
    for (const [code, rule] of Object.entries(errorCodes) as [ErrorCode, (typeof errorCodes)[ErrorCode]][]) {
      const sent = new P4Error(code, { ring: 'story', node: 2, isHead: false, hosts: ['a', 'b'] });
      const end = statusOf(sent);
      assert.equal(end.code, status[rule.status]);
      assert.notEqual(end.code, status.OK);
      const back = errorOf(end);
      assert.deepEqual([back?.code, back?.facts, back?.message], [code, sent.facts, sent.message]);
    }
  });

  test('the status text tells nothing but the code', () => {
    assert.doesNotMatch(statusOf(new P4Error('RING_LOADED', { ring: 'secret' })).details, /secret/);
  });

  test('facts of any size fit a header', () => {
    const long = new P4Error('PLAN_INVALID', {
      file: 'f'.repeat(50_000),
      faults: Array.from({ length: 5000 }, () => 'x'.repeat(500)),
    });
    const [bytes] = statusOf(long).metadata.get('p4-facts-bin');
    assert.ok(bytes instanceof Buffer && bytes.length <= limits.rpcFactsBytes);
    assert.ok(String(errorOf(statusOf(long))?.facts['file']).startsWith('fff'));
    const many = new P4Error(
      'PLAN_INVALID',
      Object.fromEntries(Array.from({ length: 2000 }, (_, index) => [`key${index}`, 'x'.repeat(100)])),
    );
    assert.ok((statusOf(many).metadata.get('p4-facts-bin')[0]?.length ?? 0) <= limits.rpcFactsBytes);
  });

  test('an unknown or absent code is no error of ours', () => {
    assert.equal(facts('{}', 'NO_SUCH_CODE'), null);
    assert.equal(facts('{}', 'constructor'), null);
    assert.equal(errorOf({ metadata: new Metadata() }), null);
  });

  test('hostile facts are dropped, and the code stays', () => {
    for (const text of ['', 'no json', '[]', 'null', '7', '{"a":', 'x'.repeat(limits.rpcFactsBytes + 1)])
      assert.deepEqual(facts(text)?.facts, {}, text.slice(0, 20));
    assert.deepEqual(facts(Buffer.of(0xff, 0xfe))?.facts, {});
    const mixed = '{"good":1,"__proto__":{"x":1},"no name":2,"nested":{"a":1},"none":null,"list":["a",1,null,"b"]}';
    assert.deepEqual(facts(mixed)?.facts, { good: 1, list: ['a', 'b'] });
    const many = JSON.stringify(Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`k${index}`, 1])));
    assert.equal(Object.keys(facts(many)?.facts ?? {}).length, 64);
  });

  test('foreign text does not move a terminal’s cursor', () => {
    const escape = '\u001b[2J';
    assert.ok(!facts(JSON.stringify({ why: `a${escape}b`, list: [escape] }))?.message.includes('\u001b'));
    assert.equal(facts(JSON.stringify({ why: 'two\nlines' }))?.facts['why'], 'two\nlines');
    assert.equal(printable(`a${escape}\u202eb`), 'a [2J b');
    assert.equal(printable('x'.repeat(1000)).length, limits.rpcDetailsLength + 1);
  });

  test('a foreign status is told as it is', () => {
    const metadata = new Metadata();
    metadata.set('p4-code', 'NEW_CODE');
    assert.deepEqual(statusFacts({ code: status.RESOURCE_EXHAUSTED, details: 'too\nlarge', metadata }), {
      status: 'RESOURCE_EXHAUSTED',
      unknownCode: 'NEW_CODE',
      details: 'too large',
    });
  });
});
