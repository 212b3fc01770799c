import assert from 'node:assert/strict';
import { test } from 'node:test';

import { fingerprint, hostKey, type HostKeyVerdict, type KnownHostsEntry } from './known-hosts.ts';
import { keyRefusal, type KeyAcceptance } from './host-trust.ts';

const keyOf = (word: string): Buffer => {
  const type = Buffer.from('ssh-ed25519');
  const length = Buffer.alloc(4);
  length.writeUInt32BE(type.length);
  return Buffer.concat([length, type, Buffer.from(word)]);
};
const shown = hostKey(keyOf('shown'));
const print = fingerprint(shown.blob);
const other = fingerprint(keyOf('other'));
const known: KnownHostsEntry = {
  names: { kind: 'patterns', patterns: ['ant'] },
  mark: 'none',
  key: hostKey(keyOf('known')),
  place: '/known_hosts:3',
};
const verdicts: readonly Exclude<HostKeyVerdict, { kind: 'known' }>[] = [
  { kind: 'unknown' },
  { kind: 'changed', known: [known] },
  { kind: 'revoked', by: known },
];
/** The code of the refusal for each verdict: unknown, changed, revoked. */
const codes = (prints: readonly string[], isNewAccepted = false, host = 'ant'): readonly (string | null)[] => {
  const acceptance: KeyAcceptance = {
    fingerprints: prints.map((each) => ({ host, fingerprint: each })),
    isNewAccepted,
  };
  return verdicts.map(
    (verdict) => keyRefusal({ hop: { label: 'ant', knownAs: 'ant' }, shown, verdict, acceptance })?.code ?? null,
  );
};

test('a key is accepted by its fingerprint, or as a new one; a revoked one never is', () => {
  const refused = ['HOST_KEY_UNKNOWN', 'HOST_KEY_CHANGED', 'HOST_KEY_REVOKED'];
  assert.deepEqual(codes([]), refused);
  assert.deepEqual(codes([print]), [null, null, 'HOST_KEY_REVOKED']);
  assert.deepEqual(codes([other, print]), [null, null, 'HOST_KEY_REVOKED'], 'one of several that were named');
  assert.deepEqual(codes([], true), [null, 'HOST_KEY_CHANGED', 'HOST_KEY_REVOKED']);
  assert.deepEqual(codes([other], false, 'bee'), refused, 'what is said of another host says nothing');
});

test('a key that is not the accepted one is told with both, also where new ones are accepted', () => {
  const wrong = ['HOST_KEY_NOT_ACCEPTED', 'HOST_KEY_NOT_ACCEPTED', 'HOST_KEY_REVOKED'];
  assert.deepEqual(codes([other]), wrong);
  assert.deepEqual(codes([other], true), wrong);
  const [unknown, changed] = verdicts.map(
    (verdict) =>
      keyRefusal({
        hop: { label: 'ant', knownAs: '[192.0.2.1]:2222' },
        shown,
        verdict,
        acceptance: { fingerprints: [{ host: 'ant', fingerprint: other }], isNewAccepted: false },
      })?.facts,
  );
  const facts = {
    ...{ host: 'ant', address: '[192.0.2.1]:2222', type: 'ssh-ed25519', shown: print, accepted: [other] },
    accept: `--accept-host-key ant=${print}`,
  };
  assert.deepEqual(unknown, facts);
  assert.deepEqual(changed, {
    ...facts,
    known: [`${fingerprint(known.key.blob)} ssh-ed25519 in /known_hosts:3`],
  });
});
