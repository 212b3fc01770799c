import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import { hostName } from '../../protocol/ids.ts';
import { factsScript } from './facts-script.ts';
import { parseFacts } from './facts.ts';
import { gpuHostFacts, plainHostFacts } from './recorded-facts.ts';

const ant = hostName('ant');

test('a plain host says what it is', () => {
  const facts = parseFacts(ant, plainHostFacts);
  assert.deepEqual(facts.os, { id: 'debian', version: '12', name: 'Debian GNU/Linux 12 (bookworm)' });
  assert.deepEqual(facts.libc, { kind: 'glibc', version: { major: 2, minor: 36 } });
  assert.equal(facts.systemdVersion, 252);
  assert.equal(facts.memoryBytes, 25165824 * 1024);
  assert.equal(facts.freeBytes.get('/var/lib/p4'), 52428800 * 1024);
  assert.deepEqual(facts.addresses, ['127.0.0.1', '198.18.18.11', 'fe80::1']);
  assert.deepEqual([facts.hasPolkit, facts.stageUnits], [false, []]);
  assert.deepEqual(facts.nvidia, { driver: null, hasDevice: false, libraries: [], gpus: [] });
});

test('a host with GPUs says which, and what CUDA finds there', () => {
  const { nvidia, hasPolkit, stageUnits } = parseFacts(ant, gpuHostFacts);
  assert.deepEqual(nvidia.gpus[1], {
    index: 1,
    name: 'NVIDIA RTX 6000 Ada Generation',
    memoryBytes: 49140 * 1024 ** 2,
  });
  assert.deepEqual([nvidia.driver, nvidia.libraries.length], ['580.95.05', 4]);
  assert.deepEqual([hasPolkit, stageUnits], [true, ['p4-stage@0123abcd.0.1.service']]);
});

test('an answer that is cut off, or is none, is refused', () => {
  const refused = (text: string): void => {
    assert.throws(
      () => parseFacts(ant, text),
      (error) => error instanceof P4Error && error.code === 'HOST_FACTS_UNREADABLE',
    );
  };
  refused(plainHostFacts.replace(/end\n$/, ''));
  refused(`Welcome!\n${plainHostFacts}`);
  refused(plainHostFacts.replace('cpus=2', 'cpus=many'));
  refused(plainHostFacts.replace(/^machine-id=.*$/m, 'machine-id=short'));
});

test('the script runs in a plain shell, and its answer is read', () => {
  const text = execFileSync('sh', ['-c', factsScript(['/opt/p4', "/a folder's/not there"])], { encoding: 'utf8' });
  const facts = parseFacts(ant, text.replace(/^machine-id=$/m, `machine-id=${'0'.repeat(32)}`));
  assert.equal(facts.kernel.name, 'Linux');
  assert.ok(facts.cpus > 0 && facts.memoryBytes > 0 && (facts.freeBytes.get('/opt/p4') ?? 0) > 0);
});
