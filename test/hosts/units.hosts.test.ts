import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { present } from '../../protocol/assert.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { Generation } from '../../protocol/ids.ts';
import { FleetConnection } from '../../provisioner/fleet-connection.ts';
import { openPlan } from '../../provisioner/opened-plan.ts';
import { RingCalls } from '../../provisioner/ring-calls.ts';
import { loadRing } from '../../provisioner/ring-load.ts';
import { stateFolder } from '../../provisioner/state-folder.ts';
import type { StagePrivileges } from '../../provisioner/units/unit-files.ts';
import { eventually } from '../fixture/eventually.ts';
import { quiet, storiesModel } from '../fixture/local-agents.ts';
import { LoadedRing } from '../fixture/loaded-ring.ts';
import { AgentHost } from './agent-host.ts';
import { TestHosts } from './test-hosts.ts';

/** By how an agent may start stages. */
const hosts: Readonly<Record<StagePrivileges, string>> = { polkit: 'bee', 'request-folder': 'ant' };
interface RingWords {
  readonly ring?: string;
  readonly sessions?: number;
  /** As a plan has it. */
  readonly confinement?: { readonly cpus?: string; readonly memory?: { readonly limitMiB: number } };
}

const greedy = { prompt: 'Once upon a time', maxTokens: 16, sampling: { temperature: 0 } };

for (const privileges of ['request-folder', 'polkit'] as const) {
  suite(`units of a host, stages started through ${privileges}`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'p4-units-'));
    const state = stateFolder({ option: join(folder, 'state'), environment: {}, workingFolder: folder });
    const name = hosts[privileges];
    let machines: TestHosts | null = null;
    let agent: AgentHost;
    let fleet: FleetConnection;
    let text = '';

    before(async () => {
      machines = await TestHosts.start({
        hosts: [{ name, hasPolkit: privileges === 'polkit' }],
        networks: [{ name: 'net', hasOperator: true }],
      });
      const host = machines.host(name);
      agent = await AgentHost.install({ host, address: host.address('net'), privileges, state });
      fleet = await FleetConnection.open(state);
    });
    after(async () => {
      await fleet.close();
      await machines?.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    /** Two stages; what stands of it is loaded again. @param confinement of the second */
    async function load({ ring = 'tale', sessions = 2, confinement = {} }: RingWords = {}): Promise<LoadedRing> {
      const path = join(folder, `${ring}.yaml`);
      const stages = [
        { host: name, layers: '0-3' },
        { host: name, layers: '4-7', ...confinement },
      ];
      writeFileSync(path, JSON.stringify({ ring, model: storiesModel, context: 1024, sessions, stages }));
      const opened = await openPlan(path);
      const { outcome } = await loadRing({ opened, state, fleet }, quiet());
      if (outcome.kind === 'failed') throw new P4Error(outcome.failure.code, outcome.failure.facts);
      const { generation } = outcome.load;
      const calls = new RingCalls(fleet.client(agent.name), opened.plan.ring, generation);
      return new LoadedRing({ plan: opened, generation, calls, fleet });
    }

    const told = async (ring: LoadedRing): Promise<string> => (await ring.askAlone(greedy)).text;

    test('systemd finds no fault in them, and little that they leave open', async (t) => {
      const units = ['p4-agent.service', 'p4-stage@0123abcd.0.1.service'];
      if (privileges === 'request-folder') units.push('p4-stage-request.path', 'p4-stage-request.service');
      assert.equal(await agent.run(`systemd-analyze verify ${units.join(' ')} 2>&1`), '');
      for (const [unit, most] of [
        ['p4-agent.service', 3],
        ['p4-stage@0123abcd.0.1.service', 1.5],
      ] as const) {
        const said = await agent.run(`systemd-analyze security --no-pager ${unit} | tail -n 1`);
        const exposure = Number(/exposure level for \S+: ([0-9.]+)/.exec(said)?.[1]);
        t.diagnostic(`${unit}: exposure ${exposure}`);
        assert.ok(exposure <= most, said);
      }
    });

    test('the agent is ready when it answers, and says how it fares', async () => {
      assert.equal(await agent.run('systemctl show --property=StatusText --value p4-agent'), 'no ring\n');
      assert.match(present((await agent.logged('service-manager'))[0], 'it logs it'), /libsystemd\.so\.0.*30000/);
    });

    test('a ring’s stages are units with processes of their own, on the host’s CPUs', async () => {
      const ring = await load();
      const units = await agent.stages();
      const nodes = await ring.nodes();
      assert.deepEqual([...units.values()].sort(), nodes.map(({ pid }) => pid).sort());
      for (const pid of units.values()) {
        const script = `grep Cpus_allowed_list /proc/${pid}/status; grep -z '^GOMP_SPINCOUNT=' /proc/${pid}/environ`;
        assert.equal(await agent.run(script), 'Cpus_allowed_list:\t0\nGOMP_SPINCOUNT=0\0');
        assert.match(await agent.run(`grep 'core file' /proc/${pid}/limits`), /\s0\s+0\s/);
      }
      text = await told(ring);
      assert.ok(text.length > 20, text);
    });

    test('the generation is in no file, unit, environment or log of the host (G4)', async () => {
      const { generation } = await load();
      // Written as a text, and as a database would have it: the search has to find just these two.
      await agent.run(`printf '<%s>' ${generation} > /run/as-text
        perl -e 'print "\\n", pack("Q>", "${generation}")' > /var/tmp/as-number`);
      const found = await agent.run(searchScript(generation));
      await agent.run('rm /run/as-text /var/tmp/as-number');
      assert.deepEqual(found.split('\n').sort(), ['', '/run/as-text', '/var/tmp/as-number']);
      const heard = await agent.run(`
        for pid in $(pgrep -u p4); do grep -laF ${generation} /proc/$pid/environ /proc/$pid/cmdline; done
        journalctl --no-pager --output=export --all | grep -aF ${generation}
        true`);
      assert.equal(heard, '');
    });

    const untilReady = (ring: LoadedRing): Promise<void> =>
      eventually(async () => (await ring.status(agent.name)).phase === 'ready', {
        what: 'the ring is ready',
        withinMs: 30_000,
      });

    test('a stage that is killed is told of as such, and started again', async () => {
      const ring = await load();
      const before = await agent.stages();
      const [unit, pid] = present([...before][1], 'the second stage');
      await agent.run(`kill -KILL ${pid}`);
      // Another start has another name. Until it is there, the agent may not have heard of the loss and call the ring ready.
      const startedAgain = async (): Promise<boolean> => {
        const now = await agent.stages();
        return now.size === before.size && !now.has(unit);
      };
      await eventually(startedAgain, { what: 'the stage is started again', withinMs: 30_000 });
      await untilReady(ring);
      assert.match((await agent.logged('stage-lost')).join('\n'), /STAGE_LOST/);
      assert.equal(await told(ring), text);
    });

    test('stages live on without their agent, and the next one takes them up with their weights (R2)', async () => {
      const ring = await load();
      const former = await agent.stages();
      for (const script of ['systemctl stop p4-agent', 'systemctl start p4-agent']) {
        await agent.run(script);
        assert.deepEqual(await agent.stages(), former);
      }
      await untilReady(ring);
      assert.equal((await agent.logged('stage-taken-up')).length, former.size);
      assert.equal(await told(ring), text);
    });

    test('an agent that is killed is started again, and takes its stages up', async () => {
      const ring = await load();
      const former = await agent.stages();
      const pid = await agent.mainPid('p4-agent');
      await agent.run(`kill -KILL ${pid}`);
      const isNew = async (): Promise<boolean> => ![0, pid].includes(await agent.mainPid('p4-agent'));
      await eventually(isNew, { what: 'another agent runs', withinMs: 20_000 });
      await agent.awaitAgent(30_000);
      await untilReady(ring);
      assert.deepEqual(await agent.stages(), former);
      assert.equal(await told(ring), text);
    });

    test('stages that no journal knows are orphans: the next agent ends them, and says so', async () => {
      await load();
      const former = await agent.stages();
      await agent.run('systemctl stop p4-agent && rm /var/lib/p4/journal*');
      await agent.run('systemctl start p4-agent');
      assert.equal((await agent.stages()).size, 0);
      assert.equal((await agent.logged('orphan-ending')).length, former.size);
      assert.equal(await agent.run('find /run/p4/stages -mindepth 1 -type d'), '');
      assert.equal(await told(await load()), text);
    });

    test('user p4 starts stages, and nothing else', async () => {
      const attempts =
        privileges === 'polkit'
          ? [
              'systemctl --no-ask-password restart dbus.service',
              'systemctl --no-ask-password start p4-stage@evil.service',
              'systemctl --no-ask-password set-property --runtime p4-stage@0123abcd.0.1.service MemoryMax=1M',
              'systemd-run --no-ask-password --unit=p4-stage@0123abcd.0.1.service touch /root/owned',
            ]
          : ['systemctl --no-ask-password start p4-stage@0123abcd.0.1.service', 'touch /opt/p4/libexec/stage-request'];
      for (const script of attempts) assert.equal(await agent.mayRun(script), false, script);
      assert.equal(await agent.run('ls -A /root | grep owned || true'), '');
    });

    if (privileges === 'request-folder') {
      test('a request is a name of one form; all else is removed, and followed nowhere', async () => {
        await agent.run(
          'mkdir /etc/kept && touch /etc/kept/start.0123abcd.0.1 && systemctl stop p4-stage-request.path',
        );
        const rubbish = `cd /run/p4/requests
          ln -s /etc/kept linked; ln -s /etc/passwd start.0123abcd.0.2; mkdir -p start.0123abcd.0.3/deep; mkfifo stop.0123abcd.0.4
          touch -- stop.dbus.service 'start.x;reboot' -rf .hidden 'a*' restart.0123abcd.0.1 start.0123abcd.0.1.service
          touch -- 'start.0123abcd.0.1
0123abcd.0.1'`;
        assert.ok(await agent.mayRun(rubbish));
        await agent.run('systemctl start p4-stage-request.path');
        const isEmpty = async (): Promise<boolean> => (await agent.run('ls -A /run/p4/requests')) === '';
        await eventually(isEmpty, { what: 'nothing is left in the folder' });
        assert.equal(
          await agent.run('ls /etc/kept && systemctl is-active ssh && test -s /etc/passwd'),
          ['start.0123abcd.0.1', 'active', ''].join('\n'),
        );
        const served = await agent.run('journalctl --unit=p4-stage-request --output=cat --no-pager');
        assert.doesNotMatch(served, /^(start|stop) p4-stage@(?![0-9a-f]{8}\.[0-9]+\.[0-9]+\.service$)/m);
      });
    }

    test('a stage keeps to the CPUs that its plan gives it, and to the memory', async () => {
      // The host gives all of its CPUs, so that what a stage has less is by its plan.
      const dropIn = '/run/systemd/system/p4-stage@.service.d/60-all-cpus.conf';
      await agent.run(`mkdir -p $(dirname ${dropIn}) && printf '[Service]\\nCPUAffinity=\\nAllowedCPUs=\\n' > ${dropIn}
        systemctl daemon-reload`);
      const ring = await load({ ring: 'kept', confinement: { cpus: '0', memory: { limitMiB: 256 } } });
      const [free, kept] = await ring.nodes();
      const cpusOf = async (pid: number | undefined): Promise<readonly string[]> => {
        const lists = await agent.run(`grep -h Cpus_allowed_list /proc/${pid}/status /proc/${pid}/task/*/status`);
        return [...new Set(lists.split('\n').flatMap((line) => line.split('\t')[1] ?? []))];
      };
      assert.deepEqual(await cpusOf(kept?.pid), ['0']);
      assert.deepEqual(await cpusOf(free?.pid), await cpusOf(1));
      const limitOf = (pid: number | undefined): Promise<string> =>
        agent.run(`awk '/^Max data size/ { print $4, $5 }' /proc/${pid}/limits`);
      assert.equal(await limitOf(kept?.pid), `${256 * 2 ** 20} ${256 * 2 ** 20}\n`);
      assert.equal(await limitOf(free?.pid), 'unlimited unlimited\n');
      assert.equal(await told(ring), text);
    });

    test('a limit of memory that is too small fails the load, and says so', async () => {
      const former = await agent.stages();
      const memory = { limitMiB: 256 };
      // What cannot be is known before anything is started.
      for (const sessions of [64, 128])
        await assert.rejects(load({ ring: 'tight', sessions, confinement: { memory } }), (error) => {
          assert.ok(error instanceof P4Error && error.code === 'PLAN_DOES_NOT_FIT', String(error));
          assert.match(error.message, new RegExp(`stage 1 on ${name}: memory of its limit short by `));
          return true;
        });
      assert.deepEqual(await agent.stages(), former);
      assert.equal(await told(await load()), text);
    });

    test('all of it ends with its slice', async () => {
      await load();
      await agent.run('systemctl stop p4.slice');
      assert.deepEqual(await agent.processes(), []);
    });
  });
}

/**
 * Names the files of a host, but for the program itself, that were written since it was set up and have the generation in
 * them: in decimal or hexadecimal digits, or as a number of eight bytes.
 */
const searchScript = (generation: Generation): string => `
  find $(findmnt -rno TARGET -t overlay,tmpfs) -xdev -path /opt/p4 -prune -o -type f -cnewer /etc/machine-id -print0 |
    xargs -0 perl -0777 -ne '
      BEGIN { my $n = "${generation}"; @forms = ($n, sprintf("%x", $n), pack("Q<", $n), pack("Q>", $n)) }
      for my $form (@forms) { if (index($_, $form) >= 0) { print "$ARGV\\n"; last } }'`;
