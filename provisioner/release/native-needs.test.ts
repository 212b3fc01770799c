import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { glibcNeed, isOlder, missingLibraries, type ReleaseElf } from './native-needs.ts';

const file = (path: string, wants: Readonly<Record<string, readonly string[]>>): ReleaseElf => ({
  path,
  elf: { machine: 'x64', needed: Object.keys(wants), versions: new Map(Object.entries(wants)) },
});

suite('what programs want of a host', () => {
  const files = [
    file('bin/node', { 'libstdc++.so.6': ['GLIBCXX_3.4.9', 'CXXABI_1.3'], 'libc.so.6': ['GLIBC_2.28'] }),
    file('a/libllama.so', {
      'libggml.so': [],
      'libstdc++.so.6': ['GLIBCXX_3.4.29'],
      'libc.so.6': ['GLIBC_2.4', 'GLIBC_2.34'],
    }),
    file('a/libggml.so', { 'libcuda.so.1': [], 'libcublas.so.13': [], 'ld-linux-x86-64.so.2': ['GLIBC_2.3'] }),
  ];

  test('leaves out glibc, CUDA and what the files bring along', () => {
    assert.deepEqual(missingLibraries(files), [{ name: 'libstdc++.so.6', versions: ['CXXABI_1.3', 'GLIBCXX_3.4.29'] }]);
  });

  test('is the newest glibc, compared as numbers', () => {
    assert.deepEqual(glibcNeed(files), { version: { major: 2, minor: 34 }, wantedBy: 'a/libllama.so' });
    assert.deepEqual(glibcNeed([]), { version: { major: 0, minor: 0 }, wantedBy: '' });
  });

  test('knows an older version', () => {
    assert.equal(isOlder({ major: 2, minor: 9 }, { major: 2, minor: 34 }), true);
    assert.equal(isOlder({ major: 2, minor: 34 }, { major: 2, minor: 34 }), false);
    assert.equal(isOlder({ major: 3, minor: 0 }, { major: 2, minor: 34 }), false);
  });
});
