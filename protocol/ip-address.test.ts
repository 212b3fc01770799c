import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalIp, isDnsName, isIpAddress, isLoopback, isZonedIpv6 } from './ip-address.ts';

test('addresses and names are told apart', () => {
  for (const text of ['192.0.2.1', '::1', '2001:db8::7']) assert(isIpAddress(text), text);
  for (const text of ['192.0.2.300', '192.0.2', 'ant', '', '[::1]', 'fe80::1%eth0']) assert(!isIpAddress(text), text);
  for (const text of ['ant', 'ant.example.net', 'ant.example.net.', 'a_b', 'xn--bcher-kva'])
    assert(isDnsName(text), text);
  for (const text of ['192.0.2.300', '', '-a', 'a..b', 'a b', 'x'.repeat(64), '::1']) assert(!isDnsName(text), text);
  assert(isZonedIpv6('fe80::1%eth0'));
  assert(!isZonedIpv6('fe80::1') && !isZonedIpv6('192.0.2.1%eth0') && !isZonedIpv6('fe80::1%'));
});

test('an address has one spelling', () => {
  assert.equal(canonicalIp('2001:DB8:0:0::1'), '2001:db8::1');
  assert.equal(canonicalIp('::ffff:192.0.2.1'), '192.0.2.1');
  assert.equal(canonicalIp('192.0.2.1'), '192.0.2.1');
  assert.equal(canonicalIp('Ant.Example.net'), 'ant.example.net');
});

test('loopback is known in every spelling', () => {
  for (const text of ['127.0.0.1', '127.8.9.1', '::1', '0:0::1', '::ffff:127.0.0.1', 'localhost'])
    assert(isLoopback(text), text);
  for (const text of ['192.0.2.127', '::', '2001:db8::127']) assert(!isLoopback(text), text);
});
