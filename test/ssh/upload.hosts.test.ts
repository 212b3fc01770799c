/** Files to a host, against a real sshd. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import { failure } from '../fixture/expected-failure.ts';
import { OperatorHome } from '../fixture/operator-home.ts';
import { makeKey, Sshd, type KeyPair } from '../fixture/sshd.ts';
import { openSession } from '../../provisioner/ssh/session-opening.ts';
import type { Session } from '../../provisioner/ssh/session.ts';
import { upload, type UploadOrder, type UploadProgress } from '../../provisioner/ssh/upload.ts';

const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

suite('uploads', () => {
  const home = new OperatorHome();
  const folder = home.path("there's a place");
  const big = randomBytes(40_000_000);
  let key: KeyPair;
  let sshd: Sshd;

  before(async () => {
    mkdirSync(folder);
    key = makeKey(home.path('key'));
    sshd = await Sshd.start({ folder: home.path('sshd'), authorized: [key] });
    home.know(sshd);
    writeFileSync(home.path('big'), big);
  });
  after(async () => {
    await sshd.stop();
    home.remove();
  });

  const orderOf = (bytes: Uint8Array, name: string, more: Partial<UploadOrder> = {}): UploadOrder => ({
    source: { kind: 'bytes', bytes },
    destination: `${folder}/${name}`,
    mode: 0o640,
    owner: 'root:root',
    sha256: sha256Of(bytes),
    bytes: bytes.length,
    ...more,
  });
  const opened = async (): Promise<Session> => {
    const host = home.host({ name: 'ant', sshd, key: { kind: 'file', path: key.path } });
    return openSession(host, await home.context({ hosts: [host] }));
  };
  async function within(work: (session: Session) => Promise<void>): Promise<void> {
    const session = await opened();
    try {
      await work(session);
    } finally {
      await session.close();
    }
  }

  test('small, empty and large files arrive with their mode, and leave nothing else', async () => {
    await within(async (session) => {
      const files: readonly (readonly [string, Buffer])[] = [
        ['empty', Buffer.alloc(0)],
        ["it's small", Buffer.from('text')],
        ['large', randomBytes(3_000_000)],
      ];
      for (const [name, bytes] of files) {
        assert.deepEqual(await upload(session, orderOf(bytes, name)), { sentBytes: bytes.length });
        assert.ok(readFileSync(`${folder}/${name}`).equals(bytes));
        assert.equal(statSync(`${folder}/${name}`).mode & 0o7777, 0o640);
      }
      assert.deepEqual(readdirSync(folder).sort(), ['empty', "it's small", 'large']);
    });
  });

  test('an upload that broke off is gone on with', async () => {
    const session = await opened();
    const source = { kind: 'file', path: home.path('big') } as const;
    const cutAfter = (progress: UploadProgress): void => {
      if (progress.kind === 'sending' && progress.bytes > 20_000_000) sshd.cut();
    };
    await failure(upload(session, orderOf(big, 'big', { source, onProgress: cutAfter })), 'HOST_LOST');
    await session.close();
    const [left = ''] = readdirSync(folder).filter((name) => name.endsWith('.p4-upload'));
    const kept = statSync(`${folder}/${left}`).size;
    assert.ok(kept > 10_000_000 && kept < big.length, `${kept} bytes are kept`);
    await within(async (again) => {
      const seen: UploadProgress[] = [];
      const order = orderOf(big, 'big', { source, onProgress: (progress) => seen.push(progress) });
      const { sentBytes } = await upload(again, order);
      assert.equal(sentBytes, big.length - kept);
      assert.ok(seen.every((progress) => progress.kind === 'checking' || progress.resumedBytes === kept));
      assert.deepEqual(seen.at(-1), { kind: 'checking' });
      assert.ok(readFileSync(`${folder}/big`).equals(big));
      assert.ok(!readdirSync(folder).some((name) => name.endsWith('.p4-upload')));
    });
  });

  test('a damaged rest of a former upload is thrown away, and the file sent whole', async () => {
    await within(async (session) => {
      const bytes = randomBytes(1_000_000);
      const order = orderOf(bytes, 'mended');
      writeFileSync(`${folder}/.mended.${order.sha256}.p4-upload`, Buffer.alloc(400_000));
      assert.deepEqual(await upload(session, order), { sentBytes: 1_600_000 });
      assert.ok(readFileSync(`${folder}/mended`).equals(bytes));
    });
  });

  test('what is not what was announced takes no place and leaves nothing', async () => {
    await within(async (session) => {
      writeFileSync(`${folder}/kept`, 'former');
      for (const size of [100, 1_000_000]) {
        const bytes = randomBytes(size);
        const error = await failure(
          upload(session, orderOf(bytes, 'kept', { sha256: sha256Of(Buffer.from('x')) })),
          'UPLOAD_DAMAGED',
        );
        assert.equal(error.facts['found'], sha256Of(bytes));
        await failure(upload(session, orderOf(bytes, 'kept', { bytes: size + 1 })), 'UPLOAD_DAMAGED');
      }
      assert.equal(readFileSync(`${folder}/kept`, 'utf8'), 'former');
      assert.ok(!readdirSync(folder).some((name) => name.endsWith('.p4-upload')));
    });
  });

  test('a former upload of other contents to the same place is cleared away', async () => {
    await within(async (session) => {
      writeFileSync(`${folder}/.twice.${'0'.repeat(64)}.p4-upload`, 'old');
      writeFileSync(`${folder}/.twice2.${'0'.repeat(64)}.p4-upload`, 'of another file');
      await upload(session, orderOf(randomBytes(10), 'twice'));
      assert.deepEqual(
        readdirSync(folder).filter((name) => name.endsWith('.p4-upload')),
        [`.twice2.${'0'.repeat(64)}.p4-upload`],
      );
    });
  });

  test('a full disk is one clear error, before and while it fills', async () => {
    const small = home.path('small');
    mkdirSync(small);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'p4-test', small]);
    try {
      await within(async (session) => {
        const order = orderOf(big, 'big', { destination: `${small}/big` });
        const error = await failure(upload(session, order), 'HOST_DISK_FULL');
        assert.equal(error.facts['bytesWanted'], big.length);
        const bytes = randomBytes(1_900_000);
        // Somebody else fills the disk while the file is on its way.
        const source = { kind: 'bytes', bytes } as const;
        let isFilled = false;
        const fill = (): void => {
          if (!isFilled) writeFileSync(`${small}/other`, Buffer.alloc(1_500_000));
          isFilled = true;
        };
        await failure(
          upload(session, orderOf(bytes, '', { source, destination: `${small}/file`, onProgress: fill })),
          'HOST_DISK_FULL',
        );
      });
    } finally {
      execFileSync('umount', [small]);
    }
  });

  test('a place that is not there, and a source that is not there, are named', async () => {
    await within(async (session) => {
      const nowhere = orderOf(randomBytes(10), 'x', { destination: `${folder}/no/where` });
      await failure(upload(session, nowhere), 'HOST_SCRIPT_FAILED');
      const source = { kind: 'file', path: home.path('no-file') } as const;
      await failure(upload(session, orderOf(big, 'x', { source })), 'STATE_UNREADABLE');
    });
  });

  test('a signal ends an upload', async () => {
    await within(async (session) => {
      const controller = new AbortController();
      const onProgress = (): void => {
        controller.abort(new P4Error('CANCELLED', { by: 'test' }));
      };
      await failure(upload(session, orderOf(big, 'never', { onProgress, signal: controller.signal })), 'CANCELLED');
      assert.ok(!readdirSync(folder).includes('never'));
    });
  });
});
