/** Commands on a host, against a real sshd and a real sudo. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';

import { P4Error } from '../../protocol/errors.ts';
import type { Become, InventoryHost } from '../../protocol/inventory.ts';
import { eventually } from '../fixture/eventually.ts';
import { failure } from '../fixture/expected-failure.ts';
import { OperatorHome, ScriptedPrompt } from '../fixture/operator-home.ts';
import { makeKey, Sshd, TestUser, type KeyPair } from '../fixture/sshd.ts';
import type { SecretPrompt } from '../../provisioner/ssh/secret-prompt.ts';
import { checkPrivileges, openSession } from '../../provisioner/ssh/session-opening.ts';
import type { Session } from '../../provisioner/ssh/session.ts';

const sudo = (password: Extract<Become, { kind: 'sudo' }>['password']): Become => ({ kind: 'sudo', password });
const asking = sudo({ kind: 'ask' });

const isAlive = (pid: number): boolean =>
  existsSync(`/proc/${pid}`) && !/\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));

suite('commands on a host', () => {
  const home = new OperatorHome();
  let key: KeyPair;
  let sshd: Sshd;
  let narrow: Sshd;
  let user: TestUser;
  let visitor: TestUser;

  before(async () => {
    key = makeKey(home.path('key'));
    sshd = await Sshd.start({ folder: home.path('sshd'), authorized: [key], lines: ['RekeyLimit 8M'] });
    narrow = await Sshd.start({ folder: home.path('narrow'), authorized: [key], lines: ['MaxSessions 2'] });
    home.know(sshd);
    home.know(narrow);
    user = new TestUser('/bin/bash');
    visitor = new TestUser('/bin/sh');
  });
  after(async () => {
    await sshd.stop();
    await narrow.stop();
    user.remove();
    visitor.remove();
    home.remove();
  });

  const hostOf = (name: string, login: string, become: Become = { kind: 'none' }): InventoryHost =>
    home.host({ name, sshd, user: login, key: { kind: 'file', path: key.path }, become });

  async function within(
    host: InventoryHost,
    work: (session: Session) => Promise<void>,
    prompt?: SecretPrompt,
  ): Promise<void> {
    const context = await home.context({ hosts: [host], ...(prompt === undefined ? {} : { prompt }) });
    const session = await openSession(host, context);
    try {
      await work(session);
    } finally {
      await session.close();
    }
  }
  const asRoot = (work: (session: Session) => Promise<void>): Promise<void> => within(hostOf('ant', 'root'), work);

  test('a script has its output, its errors and its status, whatever is in it', async () => {
    await asRoot(async (session) => {
      const script = `printf '%s\\n' "it's \\"quoted\\" \\$HOME" '☃'\necho oops >&2\ncat\nexit 7`;
      const result = await session.run({ script });
      assert.deepEqual(
        [result.status, result.stdout.toString(), result.stderr],
        [7, 'it\'s "quoted" $HOME\n☃\n', 'oops\n'],
      );
      assert.equal((await session.run({ script: 'kill -9 $$' })).status, 137);
      assert.notEqual((await session.run({ script: 'if then' })).status, 0);
      const long = `: '${'x'.repeat(300_000)}'\necho done`;
      assert.equal((await session.run({ script: long })).stdout.toString(), 'done\n');
    });
  });

  test('input is the script’s own, to the last byte', async () => {
    await asRoot(async (session) => {
      const bytes = randomBytes(300_000);
      const { stdout } = await session.run({ script: 'head -c 10 >/dev/null; cat', input: bytes });
      assert.ok(stdout.equals(bytes.subarray(10)));
      const early = await session.run({ script: 'head -c 3; exit 4', input: randomBytes(20_000_000) });
      assert.equal(early.status, 4);
      assert.equal(early.stdout.length, 3);
    });
  });

  test('50 MB go in and out unchanged, over several key exchanges', async () => {
    await asRoot(async (session) => {
      const bytes = randomBytes(50_000_000);
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      const sent = await session.run({ script: 'sha256sum', input: bytes });
      assert.equal(sent.stdout.toString().slice(0, 64), sha256);
      const process = await session.start({ script: 'cat' });
      const hash = createHash('sha256');
      let length = 0;
      const read = (async () => {
        for await (const chunk of process.stdout as AsyncIterable<Buffer>) {
          hash.update(chunk);
          length += chunk.length;
        }
      })();
      process.stdin.end(bytes);
      await read;
      assert.deepEqual(await process.exited, { status: 0, stderr: '' });
      assert.equal(length, bytes.length);
      assert.equal(hash.digest('hex'), sha256);
    });
  });

  test('a login shell that prints is not heard in the output', async () => {
    user.write('.bashrc', 'echo noise; echo more noise >&2\n');
    await within(hostOf('ant', user.name), async (session) => {
      const result = await session.run({ script: 'echo out; echo err >&2' });
      assert.deepEqual([result.stdout.toString(), result.stderr], ['out\n', 'err\n']);
    });
    user.write('.bashrc', '');
  });

  test('a user without a shell is told', async () => {
    const nobody = new TestUser('/usr/sbin/nologin');
    try {
      await within(hostOf('ant', nobody.name), async (session) => {
        await failure(session.run({ script: 'true' }), 'HOST_SHELL_SILENT');
      });
    } finally {
      nobody.remove();
    }
  });

  test('more commands than a connection takes wait for their turn', async () => {
    const many = async (session: Session): Promise<void> => {
      const results = await Promise.all(
        Array.from({ length: 25 }, (_, index) => session.run({ script: `sleep 0.05; echo ${index}` })),
      );
      assert.deepEqual(
        results.map(({ stdout }) => stdout.toString().trim()),
        results.map((_, index) => String(index)),
      );
    };
    await asRoot(many);
    const host = home.host({ name: 'bee', sshd: narrow, key: { kind: 'file', path: key.path } });
    await within(host, many);
  });

  test('root needs nothing; who is not root is refused before anything else', async () => {
    await asRoot((session) => checkPrivileges(session));
    await within(hostOf('ant', user.name), async (session) => {
      const error = await failure(checkPrivileges(session), 'BECOME_REFUSED');
      assert.match(error.message, /become: sudo/);
    });
  });

  test('sudo without a password', async () => {
    user.allowSudo('NOPASSWD:');
    const host = hostOf('ant', user.name, sudo({ kind: 'none' }));
    await within(host, async (session) => {
      await checkPrivileges(session);
      const both = 'id -un; cat';
      assert.equal((await session.run({ script: both, input: Buffer.from('in') })).stdout.toString(), 'root\nin');
      const plain = await session.run({ script: both, asRoot: false, input: Buffer.from('in') });
      assert.equal(plain.stdout.toString(), `${user.name}\nin`);
    });
    // A password that sudo does not ask for is asked of nobody and reaches no script.
    const prompt = new ScriptedPrompt();
    await within(
      hostOf('ant', user.name, asking),
      async (session) => {
        assert.equal((await session.run({ script: 'cat', input: Buffer.from('in') })).stdout.toString(), 'in');
      },
      prompt,
    );
    assert.deepEqual(prompt.questions, []);
  });

  test('sudo that wants a password, and none is there', async () => {
    user.allowSudo('');
    await within(hostOf('ant', user.name, sudo({ kind: 'none' })), async (session) => {
      await failure(checkPrivileges(session), 'BECOME_NEEDS_PASSWORD');
    });
  });

  test('sudo that does not let the user in', async () => {
    for (const become of [sudo({ kind: 'none' }), asking]) {
      const prompt = new ScriptedPrompt([visitor.password]);
      await within(
        hostOf('ant', visitor.name, become),
        async (session) => {
          await failure(checkPrivileges(session), become === asking ? 'BECOME_REFUSED' : 'BECOME_NEEDS_PASSWORD');
        },
        prompt,
      );
    }
  });

  test('a password that is asked for serves every host and every command, and never reaches a script', async () => {
    user.allowSudo('');
    const prompt = new ScriptedPrompt([user.password]);
    const hosts = ['ant', 'bee'].map((name) => hostOf(name, user.name, asking));
    const context = await home.context({ hosts, prompt });
    await Promise.all(
      hosts.map(async (host) => {
        const session = await openSession(host, context);
        try {
          await checkPrivileges(session);
          const results = await Promise.all(
            [1, 2, 3].map(() => session.run({ script: 'id -u; cat', input: Buffer.from('the input') })),
          );
          for (const { stdout } of results) assert.equal(stdout.toString(), '0\nthe input');
          const shown = await session.run({ script: 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\000" " "' });
          assert.ok(!shown.stdout.toString().includes(user.password));
        } finally {
          await session.close();
        }
      }),
    );
    assert.deepEqual(prompt.questions, [`sudo password of ${user.name}`]);
  });

  test('a wrong password is asked for again; a wrong one in a file is refused', async () => {
    user.allowSudo('');
    const prompt = new ScriptedPrompt(['wrong', user.password]);
    await within(hostOf('ant', user.name, asking), (session) => checkPrivileges(session), prompt);
    assert.deepEqual(prompt.questions.length, 2);
    const wrong = sudo({ kind: 'file', path: 'password' });
    home.write('password', 'wrong\n');
    await within(hostOf('ant', user.name, wrong), async (session) => {
      const error = await failure(checkPrivileges(session), 'BECOME_REFUSED');
      assert.equal(error.facts['why'], 'the password is wrong');
    });
    home.write('password', `${user.password}\n`);
    await within(hostOf('ant', user.name, wrong), (session) => checkPrivileges(session));
    home.write('open', `${user.password}\n`, 0o644);
    await within(hostOf('ant', user.name, sudo({ kind: 'file', path: 'open' })), async (session) => {
      await failure(checkPrivileges(session), 'SECRET_FILE_UNUSABLE');
    });
  });

  test('a signal ends the command on the host, and all it started, also under sudo', async () => {
    user.allowSudo('');
    for (const host of [hostOf('ant', 'root'), hostOf('ant', user.name, asking)]) {
      await within(
        host,
        async (session) => {
          const controller = new AbortController();
          const file = home.path('pids');
          const script = `trap '' TERM; sleep 600 & echo "$$ $!" >${file}; wait; wait`;
          const work = session.run({ script, signal: controller.signal });
          work.catch(() => undefined);
          await eventually(() => existsSync(file) && readFileSync(file, 'utf8').endsWith('\n'), {
            what: 'the command runs',
          });
          const pids = readFileSync(file, 'utf8').trim().split(' ').map(Number);
          assert.deepEqual(pids.map(isAlive), [true, true]);
          controller.abort(new P4Error('CANCELLED', { by: 'test' }));
          await failure(work, 'CANCELLED');
          await eventually(() => !pids.some(isAlive), { what: 'the processes have gone' });
          assert.equal((await session.run({ script: `rm ${file}; echo on` })).stdout.toString(), 'on\n');
        },
        new ScriptedPrompt([user.password]),
      );
    }
  });

  test('a command that takes too long is ended', async () => {
    await asRoot(async (session) => {
      await failure(session.run({ script: 'sleep 600', timeoutMs: 200 }), 'HOST_TIMEOUT');
    });
  });

  test('a process that was started can be ended, and says how it ended', async () => {
    await asRoot(async (session) => {
      const process = await session.start({ script: 'echo ready; exec sleep 600' });
      const [line] = (await process.stdout.take(1).toArray()) as readonly Buffer[];
      assert.equal(line?.toString(), 'ready\n');
      process.end();
      assert.equal((await process.exited).status, null);
    });
  });

  test('a connection that is cut fails what runs, and what comes after', async () => {
    const context = await home.context({ hosts: [] });
    const session = await openSession(hostOf('ant', 'root'), context);
    const process = await session.start({ script: 'echo ready; sleep 600' });
    const reading = (async () => {
      let said = '';
      for await (const chunk of process.stdout as AsyncIterable<Buffer>) {
        said += chunk.toString();
        if (said === 'ready\n') sshd.cut();
      }
    })();
    const running = session.run({ script: 'sleep 600' });
    for (const work of [process.exited, reading, running]) {
      const error = await failure(work, 'HOST_LOST');
      assert.equal(error.facts['host'], 'ant');
    }
    await failure(session.run({ script: 'true' }), 'HOST_LOST');
    await failure(session.start({ script: 'true' }), 'HOST_LOST');
    await session.close();
  });
});
