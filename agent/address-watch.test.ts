import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AddressWatch, interfaceAddresses } from './address-watch.ts';

test('an address that goes and comes back is told once each', () => {
  const said: string[] = [];
  let own = ['127.0.0.1', '2001:db8:0::1', 'fe80::1'];
  const watch = new AddressWatch(
    '2001:DB8::1',
    ({ event }) => said.push(event),
    () => own,
  );
  watch.look();
  assert.equal(watch.missing, '');
  own = ['127.0.0.1'];
  watch.look();
  watch.look();
  assert.equal(watch.missing, '2001:DB8::1');
  own = ['2001:db8::1'];
  watch.look();
  assert.equal(watch.missing, '');
  assert.deepEqual(said, ['address-missing', 'address-back']);
  watch.stop();
});

test('a zone is no part of an address, and loopback is this host', () => {
  const said: string[] = [];
  const log = ({ event }: { readonly event: string }): void => void said.push(event);
  const zoned = new AddressWatch('fe80::1%eth0', log, () => ['fe80::1']);
  const loopback = new AddressWatch('127.0.0.1', log, interfaceAddresses);
  for (const watch of [zoned, loopback]) {
    watch.look();
    assert.equal(watch.missing, '');
    watch.stop();
  }
  assert.deepEqual(said, []);
});
