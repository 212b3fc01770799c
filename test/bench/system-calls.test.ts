import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { readTrace, tracedCalls } from './system-calls.ts';

const folder = '/var/lib/p4/agent';
const counted = (lines: readonly string[]) => readTrace(lines, folder);

suite('a trace of system calls', () => {
  test('tells what was done in the folder, each call once however it is written down', () => {
    const found = counted([
      `101 pwrite64(21<${folder}/journal.sqlite-wal>, ""..., 4096, 32) = 4096`,
      `101 fdatasync(21<${folder}/journal.sqlite-wal> <unfinished ...>`,
      `102 write(9<pipe:[31]>, ""..., 4096) = 4096`,
      `101 <... fdatasync resumed>)         = 0`,
      `101 fstat(21<${folder}/journal.sqlite-wal>, {st_mode=S_IFREG|0600, st_size=0, ...}) = 0`,
      `101 newfstatat(21<${folder}/journal.sqlite>, "", {st_mode=S_IFREG|0600, ...}, AT_EMPTY_PATH) = 0`,
      '',
    ]);
    assert.deepEqual(found, {
      calls: 5,
      listings: [],
      looks: [],
      looksAtOpenFiles: 2,
      opened: [],
      writes: 1,
      syncs: 1,
    });
  });

  test('finds looks at the folder and at what is in it, by every call there is for that', () => {
    const lines = [
      `7 stat("${folder}", {st_mode=S_IFDIR|0700, ...}) = 0`,
      `7 newfstatat(AT_FDCWD</>, "${folder}/journal.sqlite-journal", 0x7ffd, 0) = -1 ENOENT (No such file or directory)`,
      `7 statx(AT_FDCWD</>, "${folder}/journal.mark", AT_STATX_SYNC_AS_STAT, STATX_ALL, {...}) = 0`,
      `7 access("${folder}/journal.sqlite-wal", F_OK) = 0`,
      `7 statfs("${folder}", {f_type=EXT2_SUPER_MAGIC, ...}) = 0`,
      `7 newfstatat(12<${folder}>, "journal.sqlite", {...}, 0) = 0`,
      `[pid  7] faccessat2(AT_FDCWD</>, "${folder}", W_OK, AT_EACCESS) = 0`,
    ];
    assert.deepEqual(counted(lines).looks, lines);
  });

  test('finds a listing wherever it is, and what is opened in the folder', () => {
    const listing = '8 getdents64(15</etc>, 0x55 /* 12 entries */, 32768) = 400';
    const opening = `8 openat(AT_FDCWD</>, "${folder}", O_RDONLY|O_DIRECTORY) = 15<${folder}>`;
    const found = counted([listing, opening]);
    assert.deepEqual(found.listings, [listing]);
    assert.deepEqual(found.opened, [opening]);
  });

  test('passes over folders whose names only begin or end alike', () => {
    const found = counted([
      `8 stat("${folder}-2/journal.sqlite", {...}) = 0`,
      `8 stat("/elsewhere${folder}/journal.sqlite", {...}) = 0`,
      `8 write(3</elsewhere/log>, "${folder}", 17) = 17`,
    ]);
    assert.deepEqual([found.looks, found.writes], [[], 1]);
  });

  test('asks for every call that it tells apart, also where the kernel lacks it', () => {
    for (const name of ['getdents', 'getdents64', 'stat', 'newfstatat', 'statx', 'access', 'fdatasync'])
      assert.ok(tracedCalls.includes(`?${name}`), name);
  });
});
