import assert from 'node:assert/strict';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';

import { present } from '../../protocol/assert.ts';
import { type Release } from '../../provisioner/release/release.ts';
import { pruneReleases, verifyRelease } from '../../provisioner/release/host-releases.ts';
import { releaseInUse, useRelease } from './current-release.ts';
import { ReleaseStore, smallBytes } from './release-store.ts';

suite('a release that was changed on the host', () => {
  type Change = (path: (name: string) => string, store: ReleaseStore, release: Release) => void;
  const file = 'dist/part-2/file-6.js';
  const cases: Readonly<Record<string, readonly [Change, readonly { path: string; how: string }[]]>> = {
    'text appended to a file': [
      (at) => {
        appendFileSync(at(file), 'more');
      },
      [{ path: file, how: 'content' }],
    ],
    'text of the same length': [
      (at) => {
        writeFileSync(at(file), 'y'.repeat(601));
      },
      [{ path: file, how: 'content' }],
    ],
    'a file touched': [
      (at) => {
        utimesSync(at(file), 1, 1);
      },
      [{ path: file, how: 'content' }],
    ],
    'a mode': [
      (at) => {
        chmodSync(at(file), 0o600);
      },
      [{ path: file, how: 'mode' }],
    ],
    'the mode of the runtime': [
      (at) => {
        chmodSync(at('runtime/bin/node'), 0o644);
      },
      [{ path: 'runtime/bin/node', how: 'mode' }],
    ],
    'a file removed': [
      (at) => {
        rmSync(at(file));
      },
      [{ path: file, how: 'missing' }],
    ],
    'a file removed with its object': [
      (at, store, release) => {
        rmSync(at(file));
        const { sha256 } = present(
          release.files.find(({ path }) => path === file),
          'it is in the release',
        );
        rmSync(join(store.root, 'objects', sha256));
      },
      [{ path: file, how: 'missing' }],
    ],
    'files added': [
      (at) => {
        writeFileSync(at("dist/it's new.js"), '');
        mkdirSync(at('more/and/more'), { recursive: true });
      },
      ["dist/it's new.js", 'more', 'more/and', 'more/and/more'].map((path) => ({ path, how: 'extra' })),
    ],
    'a link in place of a file': [
      (at) => {
        rmSync(at(file));
        symlinkSync('/etc', at(file));
      },
      [{ path: file, how: 'content' }],
    ],
    'another file of the same size and time in place of one': [
      (at) => {
        const text = readFileSync(at(file));
        rmSync(at(file));
        writeFileSync(at(file), text.fill('y'));
        utimesSync(at(file), 1_000_000_000, 1_000_000_000);
      },
      [{ path: file, how: 'content' }],
    ],
    "a folder's mode": [
      (at) => {
        chmodSync(at('dist'), 0o700);
      },
      [{ path: 'dist', how: 'mode' }],
    ],
    'a file in place of a folder': [
      (at) => {
        rmSync(at('node_modules/@scope'), { recursive: true });
        writeFileSync(at('node_modules/@scope'), '');
      },
      [
        { path: 'node_modules/@scope', how: 'content' },
        { path: 'node_modules/@scope/other-twin.js', how: 'missing' },
        { path: 'node_modules/@scope/twin.js', how: 'missing' },
      ],
    ],
  };
  for (const [name, [change, expected]] of Object.entries(cases)) {
    test(`is told and mended: ${name}`, async (context) => {
      const store = new ReleaseStore(context, smallBytes);
      const release = await store.release();
      await store.send(release);
      await useRelease(store.place, release.id);
      const before = store.session.sentBytes;
      change((path) => store.at(release, path), store, release);
      assert.deepEqual(await verifyRelease(store.place, release), expected);
      assert.equal((await store.send(release)).kind, 'mended');
      assert.ok(store.session.sentBytes - before < 64 * 1024, 'the large file stays');
      assert.deepEqual(await verifyRelease(store.place, release), []);
      store.expectWhole(release);
      assert.equal(releaseInUse(store.place), `releases/${release.id}`);
    });
  }

  test('as a whole missing is told file by file', async (context) => {
    const store = new ReleaseStore(context, smallBytes);
    const release = await store.release();
    const drifts = await verifyRelease(store.place, release);
    assert.ok(drifts.every(({ how }) => how === 'missing'));
    assert.ok(release.files.every(({ path }) => drifts.some((drift) => drift.path === path)));
    assert.equal(existsSync(store.root), false, 'a look changes nothing');
  });
});

suite('the release in use', () => {
  test('is switched at once, and says which was before it', async (context) => {
    const store = new ReleaseStore(context, smallBytes);
    const first = await store.release();
    await store.send(first);
    assert.equal(existsSync(join(store.root, 'current')), false);
    const link = join(store.root, 'current');
    assert.deepEqual(await useRelease(store.place, first.id), [`link ${link}: releases/${first.id}`]);
    assert.deepEqual(await useRelease(store.place, first.id), []);
    store.contents.set('dist/empty.js', Buffer.from('no longer'));
    const second = await store.release();
    await store.send(second);
    assert.equal(readFileSync(join(store.root, 'current/dist/empty.js'), 'utf8'), '');
    assert.deepEqual(await useRelease(store.place, second.id), [
      `link ${link}: releases/${first.id} -> releases/${second.id}`,
    ]);
    assert.equal(readFileSync(join(store.root, 'current/dist/empty.js'), 'utf8'), 'no longer');
    assert.equal(releaseInUse(store.place), `releases/${second.id}`);
    rmSync(link);
    mkdirSync(join(link, 'dist'), { recursive: true });
    assert.deepEqual(await useRelease(store.place, second.id), [`link ${link}: releases/${second.id}`]);
    assert.equal(releaseInUse(store.place), `releases/${second.id}`, 'also where a folder stood');
  });

  test('and the newest stay when old ones go, with the objects that they have', async (context) => {
    const store = new ReleaseStore(context, smallBytes);
    const releases: Release[] = [];
    for (let round = 0; round < 4; round += 1) {
      store.contents.set('dist/round.js', Buffer.from(`round ${round}\n`));
      const release = await store.release();
      await store.send(release);
      utimesSync(store.at(release, ''), 1_700_000_000 + round, 1_700_000_000 + round);
      releases.push(release);
    }
    const [first, second, third, fourth] = releases.map(({ id }) => id);
    await useRelease(store.place, present(first, 'there are four'));
    mkdirSync(join(store.root, 'releases', `${String(first)}.new`));
    writeFileSync(join(store.root, 'incoming', 'left'), 'x');
    linkSync(join(store.root, 'incoming', 'left'), join(store.root, 'objects', 'f'.repeat(64)));

    assert.deepEqual(await pruneReleases(store.place, 1), [third, second]);
    assert.deepEqual(readdirSync(join(store.root, 'releases')).sort(), [first, fourth].sort());
    assert.deepEqual(readdirSync(join(store.root, 'incoming')), []);
    const kept = new Set(
      releases
        .filter(({ id }) => id === first || id === fourth)
        .flatMap(({ files }) => files.map(({ sha256 }) => sha256)),
    );
    assert.deepEqual(readdirSync(join(store.root, 'objects')).sort(), [...kept].sort());
    assert.deepEqual(await verifyRelease(store.place, present(releases[3], 'there are four')), []);
  });
});
