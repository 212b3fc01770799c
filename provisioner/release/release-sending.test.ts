import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';

import { LocalSession } from '../../test/fixture/local-session.ts';
import { temporaryFolder } from '../../test/fixture/temporary-folder.ts';
import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { FileHashes } from './file-hashes.ts';
import { releaseBytes, releaseOf, type Release, type ReleaseFile } from './release.ts';
import { partEnd, pays, sendRelease, type SendProgress, type SendReport } from './release-sending.ts';
import { activateRelease, currentRelease, installedReleases, pruneReleases, verifyRelease } from './release-switch.ts';

const needs = {
  glibc: { version: { major: 2, minor: 17 }, wantedBy: '' },
  libraries: [],
  shippedGlibc: { version: { major: 2, minor: 17 }, wantedBy: '' },
};
const largeBytes = limits.loneObjectBytes + 12_345;
const smallBytes = 400_000;

/** A checkout of a few files, one of them large, and a host. */
class Bench {
  readonly root: string;
  readonly session = new LocalSession();
  readonly contents = new Map<string, Buffer>();
  readonly #folder: string;

  constructor(context: TestContext, runtimeBytes = largeBytes) {
    const folder = temporaryFolder(context);
    this.root = join(folder, "host's", 'p4');
    this.#folder = join(folder, 'checkout');
    this.contents.set('runtime/bin/node', randomBytes(runtimeBytes));
    for (let file = 0; file < 40; file += 1) {
      this.contents.set(`dist/part-${file % 4}/file-${file}.js`, Buffer.from(`${'x'.repeat(file * 100)}\n`));
    }
    this.contents.set('dist/empty.js', Buffer.alloc(0));
    this.contents.set('node_modules/@scope/twin.js', Buffer.from('x\n'.repeat(3)));
    this.contents.set('node_modules/@scope/other-twin.js', Buffer.from('x\n'.repeat(3)));
  }

  get place(): { session: LocalSession; root: string } {
    return { session: this.session, root: this.root };
  }

  async release(): Promise<Release> {
    const hashes = FileHashes.forgetful();
    const files = [...this.contents].map(async ([path, content]): Promise<ReleaseFile> => {
      const source = join(this.#folder, path);
      mkdirSync(dirname(source), { recursive: true });
      writeFileSync(source, content);
      const mode = path.startsWith('runtime/') ? 0o755 : 0o644;
      return { path, mode, ...(await hashes.hash(source)), source: { kind: 'file', path: source } };
    });
    return releaseOf(await Promise.all(files), needs);
  }

  send(
    release: Release,
    more: { onProgress?: (progress: SendProgress) => void; signal?: AbortSignal } = {},
  ): Promise<SendReport> {
    return sendRelease(this.session, release, { root: this.root, signal: new AbortController().signal, ...more });
  }

  at(release: Release, path: string): string {
    return join(this.root, 'releases', release.id, path);
  }

  /** Whether every file is there, with its content and mode, and nothing else. */
  expectWhole(release: Release): void {
    const folder = this.at(release, '');
    const found = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => !entry.isDirectory());
    assert.equal(found.length, release.files.length);
    for (const { path, mode } of release.files) {
      assert.ok(
        readFileSync(this.at(release, path)).equals(present(this.contents.get(path), 'the bench made it')),
        path,
      );
      const { mode: foundMode, ino } = statSync(this.at(release, path));
      assert.equal(foundMode & 0o7777, mode, path);
      const { sha256 } = present(
        release.files.find((file) => file.path === path),
        'it is in the release',
      );
      assert.equal(statSync(join(this.root, 'objects', sha256)).ino, ino, `${path} is a link to its object`);
    }
    assert.deepEqual(readdirSync(join(this.root, 'incoming')), [], 'nothing is on its way');
    assert.deepEqual(
      readdirSync(join(this.root, 'releases')).filter((name) => name.includes('.')),
      [],
    );
  }
}

const code = (expected: string) => (error: unknown) => error instanceof P4Error && error.code === expected;

suite('sending a release', () => {
  test('puts it together on a bare host, tells its progress, and a second time does nothing', async (context) => {
    const bench = new Bench(context);
    const release = await bench.release();
    const told: SendProgress[] = [];
    const report = await bench.send(release, { onProgress: (progress) => told.push(progress) });
    const unique = new Map(release.files.map(({ sha256, bytes }) => [sha256, bytes]));
    const totalBytes = [...unique.values()].reduce((sum, bytes) => sum + bytes, 0);
    assert.ok(totalBytes < releaseBytes(release), 'twins go once');
    assert.deepEqual(report, { kind: 'installed', sentBytes: totalBytes });
    assert.deepEqual(told.at(0), { sentBytes: 0, totalBytes });
    assert.deepEqual(told.at(-1), { sentBytes: totalBytes, totalBytes });
    bench.expectWhole(release);
    assert.deepEqual(await verifyRelease(bench.place, release), []);

    const [bytes, orders] = [bench.session.sentBytes, bench.session.orders];
    assert.deepEqual(await bench.send(release), { kind: 'unchanged', sentBytes: 0 });
    assert.equal(bench.session.sentBytes, bytes, 'not a byte');
    assert.equal(bench.session.orders, orders + 1, 'one look');
  });

  test('sends kilobytes when one line of the program changes', async (context) => {
    const bench = new Bench(context);
    await bench.send(await bench.release());
    bench.contents.set('dist/part-1/file-5.js', Buffer.from('another line\n'));
    const release = await bench.release();
    const before = bench.session.sentBytes;
    assert.deepEqual(await bench.send(release), { kind: 'installed', sentBytes: 13 });
    assert.ok(
      bench.session.sentBytes - before < 32 * 1024,
      `${bench.session.sentBytes - before} bytes, scripts and all`,
    );
    bench.expectWhole(release);
    assert.equal((await installedReleases(bench.place)).length, 2);
  });

  test('goes on where it was when the link was lost', async (context) => {
    const bench = new Bench(context);
    const release = await bench.release();
    bench.session.losesLinkAfterBytes = 9_000_000;
    await assert.rejects(bench.send(release), code('HOST_LOST'));
    assert.equal(existsSync(bench.at(release, '')), false, 'no release yet');
    assert.deepEqual(await installedReleases({ session: new LocalSession(), root: bench.root }), []);
    assert.deepEqual(readdirSync(join(bench.root, 'incoming')).length, 1);

    bench.session.losesLinkAfterBytes = Infinity;
    const report = await bench.send(release);
    assert.equal(report.kind, 'installed');
    const large = statSync(bench.at(release, 'runtime/bin/node')).size;
    assert.ok(report.sentBytes < large - 8_000_000, `${report.sentBytes} bytes the second time`);
    bench.expectWhole(release);
  });

  test('is cancelled, and starts anew with other contents: what was left of the former goes', async (context) => {
    const bench = new Bench(context);
    const controller = new AbortController();
    const onProgress = ({ sentBytes }: SendProgress): void => {
      if (sentBytes > 1_000_000) controller.abort();
    };
    await assert.rejects(
      bench.send(await bench.release(), { onProgress, signal: controller.signal }),
      code('CANCELLED'),
    );
    assert.equal(readdirSync(join(bench.root, 'incoming')).length, 1);
    bench.contents.set('runtime/bin/node', randomBytes(largeBytes));
    const release = await bench.release();
    await bench.send(release);
    bench.expectWhole(release);
  });

  test('sends again what arrived damaged, and says so when that does not help', async (context) => {
    const bench = new Bench(context);
    const release = await bench.release();
    bench.session.losesLinkAfterBytes = 9_000_000;
    await assert.rejects(bench.send(release), code('HOST_LOST'));
    bench.session.losesLinkAfterBytes = Infinity;
    const [partial = ''] = readdirSync(join(bench.root, 'incoming'));
    writeFileSync(join(bench.root, 'incoming', partial), randomBytes(1_000_000));
    await bench.send(release);
    bench.expectWhole(release);
  });

  test('refuses a file that changed after it was looked at', async (context) => {
    const bench = new Bench(context);
    const release = await bench.release();
    const { source } = present(
      release.files.find(({ path }) => path === 'dist/part-1/file-9.js'),
      'the bench made it',
    );
    assert.ok(source.kind === 'file');
    const text = readFileSync(source.path);
    writeFileSync(source.path, text.fill('y'));
    await assert.rejects(bench.send(release), code('RELEASE_ARRIVED_DAMAGED'));
    writeFileSync(source.path, '');
    await assert.rejects(bench.send(release), code('RELEASE_SOURCE_CHANGED'));
    rmSync(source.path);
    await assert.rejects(bench.send(release), code('RELEASE_SOURCE_CHANGED'));
    assert.equal(existsSync(bench.at(release, '')), false);
  });

  test('refuses a host without room before it sends anything', async (context) => {
    const bench = new Bench(context);
    const files = (await bench.release()).files.map((file) => ({ ...file, bytes: file.bytes + 2 ** 45 }));
    await assert.rejects(bench.send(releaseOf(files, needs)), code('HOST_DISK_FULL'));
    assert.equal(bench.session.sentBytes, 0);
  });

  test('compresses where the line is slow, and sends a sample first', () => {
    assert.equal(pays(null), false);
    assert.equal(pays(12_000_000), true);
    assert.equal(pays(110_000_000), false);
    assert.equal(partEnd(0, 1e9, null), limits.paceSampleBytes);
    assert.equal(partEnd(1000, 2000, null), 2000);
    assert.equal(partEnd(1000, 1e9, 110_000_000), 1e9);
  });
});

suite('a release that was changed on the host', () => {
  type Change = (path: (name: string) => string, bench: Bench, release: Release) => void;
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
      (at, bench, release) => {
        rmSync(at(file));
        const { sha256 } = present(
          release.files.find(({ path }) => path === file),
          'it is in the release',
        );
        rmSync(join(bench.root, 'objects', sha256));
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
      const bench = new Bench(context, smallBytes);
      const release = await bench.release();
      await bench.send(release);
      await activateRelease(bench.place, release.id);
      const before = bench.session.sentBytes;
      change((path) => bench.at(release, path), bench, release);
      assert.deepEqual(await verifyRelease(bench.place, release), expected);
      assert.equal((await bench.send(release)).kind, 'mended');
      assert.ok(bench.session.sentBytes - before < 64 * 1024, 'the large file stays');
      assert.deepEqual(await verifyRelease(bench.place, release), []);
      bench.expectWhole(release);
      assert.equal(await currentRelease(bench.place), release.id);
    });
  }

  test('as a whole missing is told file by file', async (context) => {
    const bench = new Bench(context, smallBytes);
    const release = await bench.release();
    const drifts = await verifyRelease(bench.place, release);
    assert.ok(drifts.every(({ how }) => how === 'missing'));
    assert.ok(release.files.every(({ path }) => drifts.some((drift) => drift.path === path)));
    assert.equal(existsSync(bench.root), false, 'a look changes nothing');
  });
});

suite('the release in use', () => {
  test('is switched at once, and says which was before it', async (context) => {
    const bench = new Bench(context, smallBytes);
    await assert.rejects(activateRelease(bench.place, '0123456789abcdef'), code('RELEASE_NOT_SENT'));
    const first = await bench.release();
    await bench.send(first);
    assert.equal(await currentRelease(bench.place), null);
    assert.deepEqual(await activateRelease(bench.place, first.id), { former: null, isChanged: true });
    assert.deepEqual(await activateRelease(bench.place, first.id), { former: first.id, isChanged: false });
    bench.contents.set('dist/empty.js', Buffer.from('no longer'));
    const second = await bench.release();
    await bench.send(second);
    assert.equal(readFileSync(join(bench.root, 'current/dist/empty.js'), 'utf8'), '');
    assert.deepEqual(await activateRelease(bench.place, second.id), { former: first.id, isChanged: true });
    assert.equal(readFileSync(join(bench.root, 'current/dist/empty.js'), 'utf8'), 'no longer');
    await assert.rejects(activateRelease(bench.place, '0123456789abcdef'), code('RELEASE_NOT_SENT'));
    assert.equal(await currentRelease(bench.place), second.id);
  });

  test('and the newest stay when old ones go, with the objects that they have', async (context) => {
    const bench = new Bench(context, smallBytes);
    const releases: Release[] = [];
    for (let round = 0; round < 4; round += 1) {
      bench.contents.set('dist/round.js', Buffer.from(`round ${round}\n`));
      const release = await bench.release();
      await bench.send(release);
      utimesSync(bench.at(release, ''), 1_700_000_000 + round, 1_700_000_000 + round);
      releases.push(release);
    }
    const [first, second, third, fourth] = releases.map(({ id }) => id);
    await activateRelease(bench.place, present(first, 'there are four'));
    mkdirSync(join(bench.root, 'releases', `${String(first)}.new`));
    writeFileSync(join(bench.root, 'incoming', 'left'), 'x');
    linkSync(join(bench.root, 'incoming', 'left'), join(bench.root, 'objects', 'f'.repeat(64)));

    assert.deepEqual(await pruneReleases(bench.place, { keep: 1, inUse: [present(second, 'there are four')] }), [
      third,
    ]);
    assert.deepEqual(readdirSync(join(bench.root, 'releases')).sort(), [first, second, fourth].sort());
    assert.deepEqual(readdirSync(join(bench.root, 'incoming')), []);
    const kept = new Set(
      releases.filter(({ id }) => id !== third).flatMap(({ files }) => files.map(({ sha256 }) => sha256)),
    );
    assert.deepEqual(readdirSync(join(bench.root, 'objects')).sort(), [...kept].sort());
    assert.deepEqual(await verifyRelease(bench.place, present(releases[3], 'there are four')), []);
  });
});
