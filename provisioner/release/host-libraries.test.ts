import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { LocalSession } from '../../test/fixture/local-session.ts';
import { P4Error } from '../../protocol/errors.ts';
import { hostName } from '../../protocol/ids.ts';
import {
  askLibraries,
  chooseLibraries,
  parseLibraries,
  type HostLibraries,
  type LibraryState,
} from './host-libraries.ts';
import type { NativeNeeds } from './native-needs.ts';

const host = hostName('gpu-1');
const needs: NativeNeeds = {
  glibc: { version: { major: 2, minor: 34 }, wantedBy: 'node_modules/x/libllama.so' },
  libraries: [
    { name: 'libgcc_s.so.1', versions: ['GCC_4.2.0'] },
    { name: 'libstdc++.so.6', versions: ['CXXABI_1.3.13', 'GLIBCXX_3.4.29'] },
  ],
  shippedGlibc: { version: { major: 2, minor: 36 }, wantedBy: 'lib/libstdc++.so.6' },
};

function found(glibcMinor: number, gcc: LibraryState, cxx: LibraryState): HostLibraries {
  const libraries = new Map([
    ['libgcc_s.so.1', gcc],
    ['libstdc++.so.6', cxx],
  ]);
  return { glibc: { major: 2, minor: glibcMinor }, libraries };
}

const refusal = (libraries: HostLibraries): P4Error => {
  try {
    chooseLibraries(host, needs, libraries);
  } catch (error) {
    assert.ok(error instanceof P4Error && error.code === 'HOST_LIBRARIES_OLD');
    return error;
  }
  assert.fail('the host is refused');
};

suite("a host's libraries", () => {
  test('are used where they are new enough, also when those to send along are too new for it', () => {
    assert.equal(chooseLibraries(host, needs, found(34, 'own', 'own')), 'own');
    assert.equal(chooseLibraries(host, needs, found(41, 'own', 'own')), 'own');
  });

  test('are replaced where one lacks or is old, and the C library is new enough for ours', () => {
    assert.equal(chooseLibraries(host, needs, found(36, 'own', 'absent')), 'shipped');
    assert.equal(chooseLibraries(host, needs, found(36, 'own', 'old')), 'shipped');
  });

  test('are refused by name where nothing fits', () => {
    assert.deepEqual(refusal(found(31, 'own', 'own')).facts, {
      host,
      needed: 'glibc 2.34 (node_modules/x/libllama.so)',
      found: 'glibc 2.31',
    });
    assert.deepEqual(refusal(found(35, 'own', 'absent')).facts['needed'], ['libstdc++.so.6 (not there)']);
    assert.equal(refusal({ glibc: null, libraries: new Map() }).facts['found'], 'no glibc');
  });

  test('are parsed from what the host says', () => {
    const text = 'glibc 2.36\nlibgcc_s.so.1 own\nlibstdc++.so.6 old\n';
    assert.deepEqual(parseLibraries(text), found(36, 'own', 'old'));
    assert.equal(parseLibraries('libgcc_s.so.1 own\n').glibc, null);
  });

  test('are told by this machine: what is there, what is too old, what is not there', async () => {
    const place = { session: new LocalSession(), root: '/' };
    const libraries = [
      { name: 'libstdc++.so.6', versions: ['GLIBCXX_3.4.21'] },
      { name: 'libgcc_s.so.1', versions: ['GCC_999.0'] },
      { name: 'libnobody.so.7', versions: [] },
    ];
    const told = await askLibraries(place, { ...needs, libraries });
    assert.deepEqual(
      [...told.libraries],
      [
        ['libstdc++.so.6', 'own'],
        ['libgcc_s.so.1', 'old'],
        ['libnobody.so.7', 'absent'],
      ],
    );
    assert.ok((told.glibc?.minor ?? 0) > 0);
  });
});
