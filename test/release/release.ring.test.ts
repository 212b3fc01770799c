/**
 * The release itself: sent to a folder of this machine, and run from there by a shell that has nothing in its environment.
 * Agents and stages are the release's own; they serve a ring of a real model.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readlinkSync, realpathSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { suite, test, type TestContext } from 'node:test';

import type { AgentConfig, AgentReady } from '../../protocol/agent-config.ts';
import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import { hostName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { makeOwnerFolder } from '../../provisioner/durable-file.ts';
import { FleetConnection } from '../../provisioner/fleet-connection.ts';
import { changeFleet } from '../../provisioner/fleet-file.ts';
import { openPlan } from '../../provisioner/opened-plan.ts';
import { ensureCertificate } from '../../provisioner/pki.ts';
import { slicesFolderIn } from '../../provisioner/prepared-slices.ts';
import { FileHashes } from '../../provisioner/release/file-hashes.ts';
import { askLibraries, chooseLibraries } from '../../provisioner/release/host-libraries.ts';
import { assembleRelease } from '../../provisioner/release/release-assembly.ts';
import { releaseBytes, withoutLibraries, type Release } from '../../provisioner/release/release.ts';
import { sendRelease } from '../../provisioner/release/release-sending.ts';
import { verifyRelease } from '../../provisioner/release/host-releases.ts';
import { RingCalls } from '../../provisioner/ring-calls.ts';
import { loadRing } from '../../provisioner/ring-load.ts';
import { stateFolder, type StateFolder } from '../../provisioner/state-folder.ts';
import { eventually } from '../fixture/eventually.ts';
import { LoadedRing } from '../fixture/loaded-ring.ts';
import { LocalAgents, quiet, storiesModel } from '../fixture/local-agents.ts';
import { LocalSession } from '../fixture/local-session.ts';
import { temporaryFolder } from '../fixture/temporary-folder.ts';
import { useRelease } from './current-release.ts';

const checkout = join(import.meta.dirname, '../../..');
const loopback = '127.0.0.1';
const architecture = process.arch === 'arm64' ? 'arm64' : 'x64';
const nothing = ['-i', 'PATH=/usr/bin:/bin'];
const question = { prompt: 'Once upon a time', maxTokens: 24 };
const twoStages = (host: string) =>
  [
    [host, '0-3'],
    [host, '4-7'],
  ] as const;

const assembled = (): Promise<Release> =>
  assembleRelease({ root: checkout, target: { architecture }, gpu: 'none', hashes: FileHashes.forgetful() });

suite('a release on a host', () => {
  test('runs agents and stages that serve a ring, out of nothing but itself', async (context) => {
    const folder = temporaryFolder(context);
    const [session, root] = [new LocalSession(), join(folder, 'p4')];
    const release = await assembled();
    const startedMs = performance.now();
    await sendRelease(session, release, { root, signal: new AbortController().signal });
    await useRelease({ session, root }, release.id);
    const sentMs = performance.now();
    assert.deepEqual(await verifyRelease({ session, root }, release), []);
    const verifiedMs = performance.now();
    context.diagnostic(
      `${release.files.length} files, ${(releaseBytes(release) / 1e6).toFixed(1)} MB: sent in ${(sentMs - startedMs).toFixed(0)} ms, verified in ${(verifiedMs - sentMs).toFixed(0)} ms`,
    );
    assert.ok(verifiedMs - sentMs < 1000, 'a look at an unchanged host');

    const agent = await ReleasedAgent.start({ folder, release: join(root, 'current') });
    try {
      const answer = await agent.answer(context);
      assert.equal(answer, await answerFromCheckout());
      // Nothing but glibc from elsewhere, and no program that is not the release's.
      for (const { pid, programs } of agent.processes()) {
        const home = realpathSync(join(root, 'current'));
        const outside = programs.filter((path) => !path.startsWith(home) && !isGlibc(path));
        assert.deepEqual(outside, [], `process ${pid} uses what only this machine may have`);
      }
    } finally {
      await agent.stop();
    }
    await eventually(() => agent.processes().length === 0, { what: 'no process of the release is left' });
  });

  test('takes the libraries of a host that has them', async (context) => {
    const [session, root] = [new LocalSession(), join(temporaryFolder(context), 'p4')];
    const release = await assembled();
    const found = await askLibraries({ session, root }, release.needs);
    // Those that are sent along are this machine's own.
    assert.equal(chooseLibraries(session.host, release.needs, found), 'own');
    const own = withoutLibraries(release);
    assert.notEqual(own.id, release.id);
    await sendRelease(session, own, { root, signal: new AbortController().signal });
    const node = join(root, 'releases', own.id, 'runtime/bin/node');
    const print = 'process.stdout.write(String(process.env.LD_LIBRARY_PATH))';
    const { stdout, stderr } = spawnSync('env', [...nothing, node, '-e', print], { encoding: 'utf8' });
    assert.deepEqual({ stdout, stderr }, { stdout: 'undefined', stderr: '' });
  });
});

/** The same ring from the checkout's own program. */
async function answerFromCheckout(): Promise<string> {
  const agents = await LocalAgents.start();
  try {
    const ring = await agents.load({ ring: 'twin', stages: twoStages('local') });
    return (await ring.askAlone(question)).text;
  } finally {
    await agents.stop();
  }
}

const isGlibc = (path: string): boolean =>
  /\/(ld-linux[^/]*|lib(c|m|dl|pthread|rt|resolv|nss_\w+)[.-][^/]*)$/.test(path) ||
  path.endsWith('/gconv-modules.cache');

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** An agent started as a unit would start it, but with an environment of nothing. */
class ReleasedAgent {
  readonly #child: Child;
  readonly #state: StateFolder;
  readonly #release: string;
  readonly #folder: string;

  private constructor(parts: { child: Child; state: StateFolder; release: string; folder: string }) {
    this.#child = parts.child;
    this.#state = parts.state;
    this.#release = realpathSync(parts.release);
    this.#folder = parts.folder;
  }

  static async start({ folder, release }: { folder: string; release: string }): Promise<ReleasedAgent> {
    const state = stateFolder({ option: join(folder, 'state'), environment: {}, workingFolder: folder });
    const host = hostName('released');
    const { paths } = await ensureCertificate(state, { role: 'agent', host, addresses: [loopback] }, new Date());
    const config: AgentConfig = {
      host,
      listen: [{ address: loopback, port: 0 }],
      stateFolder: join(folder, 'agent'),
      slicesFolder: slicesFolderIn(state),
      runtimeFolder: join(folder, 'run'),
      pki: paths,
      journalLimitBytes: limits.journalLeastBytes,
      stages: 'child-processes',
      endsWithInput: true,
    };
    for (const path of [config.stateFolder, config.slicesFolder]) await makeOwnerFolder(path);
    mkdirSync(config.runtimeFolder, { mode: 0o700 });
    const configPath = join(config.stateFolder, 'agent.json');
    writeFileSync(configPath, JSON.stringify(config), { mode: 0o600 });
    const program = ['runtime/bin/node', 'dist/agent/main.js', '--config', configPath];
    const child = spawn('env', [...nothing, ...program], { cwd: release, stdio: ['pipe', 'pipe', 'pipe'] });
    child.stdin.on('error', () => undefined);
    let log = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
    const [line] = (await Promise.race([
      once(createInterface({ input: child.stdout }), 'line'),
      once(child, 'exit'),
    ])) as unknown[];
    assert.equal(typeof line, 'string', `the agent starts: ${log}`);
    const ready = JSON.parse(String(line)) as AgentReady;
    assert.equal(ready.event, 'ready', String(line));
    const { port } = present(ready.listen[0], 'it listens');
    const since = new Date().toISOString();
    const entry = {
      name: host,
      address: loopback,
      port,
      certificateName: host,
      since,
      why: 'a test',
      network: null,
      ssh: null,
    };
    await changeFleet(state, () => [entry]);
    return new ReleasedAgent({ child, state, release, folder });
  }

  async answer(context: TestContext): Promise<string> {
    const path = join(this.#folder, 'plan.yaml');
    const stages = twoStages('released').map(([host, layers]) => ({ host, layers }));
    writeFileSync(path, JSON.stringify({ ring: 'sent', model: storiesModel, context: 1024, sessions: 4, stages }));
    const opened = await openPlan(path);
    const fleet = await FleetConnection.open(this.#state);
    context.after(() => fleet.close());
    const { outcome } = await loadRing({ opened, state: this.#state, fleet }, quiet());
    if (outcome.kind === 'failed') throw new P4Error(outcome.failure.code, outcome.failure.facts);
    const { generation } = outcome.load;
    const calls = new RingCalls(fleet.client(hostName('released')), opened.plan.ring, generation);
    return (await new LoadedRing({ plan: opened, generation, calls, fleet }).askAlone(question)).text;
  }

  /** The agent and its stages, and the programs and libraries that each has mapped. */
  processes(): readonly { pid: number; programs: readonly string[] }[] {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((name) => {
        try {
          if (!readlinkSync(`/proc/${name}/exe`).startsWith(this.#release)) return [];
          const maps = readFileSync(`/proc/${name}/maps`, 'utf8').matchAll(/ r-xp .* (\/\S+)$/gm);
          return [{ pid: Number(name), programs: [...new Set([...maps].map(([, path = '']) => path))] }];
        } catch {
          // It has ended meanwhile, or is another user's.
          return [];
        }
      });
  }

  async stop(): Promise<void> {
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGTERM');
    assert.deepEqual(await exit, [0, null]);
    rmSync(join(this.#folder, 'run'), { recursive: true });
  }
}
