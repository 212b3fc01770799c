import assert from 'node:assert/strict';
import { test } from 'node:test';

import { hostName } from '../../protocol/ids.ts';
import { parseFacts } from './facts.ts';
import { sharedMachines, unfitness } from './host-fitness.ts';
import { gpuHostFacts, plainHostFacts } from './recorded-facts.ts';

const [ant, bee, gpu] = ['ant', 'bee', 'gpu'].map(hostName);
const now = new Date(1_796_000_000_000);

function faultOf(text: string): string | null {
  const error = unfitness(hostName('ant'), parseFacts(hostName('ant'), text), { needs: { architecture: 'x64' }, now });
  return error === null ? null : `${error.code} ${String(error.facts['found'] ?? error.facts['off'])}`;
}

test('a host that can run p4 is let in; others are refused by name', () => {
  assert.equal(faultOf(plainHostFacts), null);
  assert.equal(faultOf(gpuHostFacts), null);
  assert.equal(
    faultOf(plainHostFacts.replace('machine=x86_64', 'machine=aarch64')),
    'HOST_UNSUPPORTED the architecture arm64 (aarch64)',
  );
  assert.equal(
    faultOf(plainHostFacts.replace('booted=systemd\n', '')),
    'HOST_UNSUPPORTED a machine that systemd has not booted',
  );
  assert.equal(faultOf(plainHostFacts.replace('systemd 252', 'systemd 241')), 'HOST_UNSUPPORTED systemd 241');
  assert.equal(
    faultOf(plainHostFacts.replace('glibc 2.36', 'musl libc (x86_64)')),
    'HOST_UNSUPPORTED the C library musl libc (x86_64)',
  );
});

test('a clock is refused only where certificates would not be valid', () => {
  assert.equal(faultOf(plainHostFacts.replace('1796000000', '1795999400')), null, 'ten minutes behind');
  assert.equal(faultOf(plainHostFacts.replace('1796000000', '1795992800')), 'HOST_CLOCK_WRONG 120 minutes behind');
});

test('two entries that are one machine are found', () => {
  const facts = parseFacts(hostName('ant'), plainHostFacts);
  assert.ok(ant !== undefined && bee !== undefined && gpu !== undefined);
  const found = sharedMachines([
    { host: ant, facts },
    { host: gpu, facts: parseFacts(gpu, gpuHostFacts) },
    { host: bee, facts },
  ]);
  assert.deepEqual(
    found.map(({ host, error }) => [host, error.code, error.facts['hosts']]),
    [['bee', 'HOSTS_ARE_ONE_MACHINE', ['ant', 'bee']]],
  );
});
