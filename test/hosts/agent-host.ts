/**
 * For tests: an agent on a real host, installed from this checkout without `deploy`: the program, the units as `deploy` has
 * them, a certificate and a configuration. What `deploy` itself does is tested elsewhere.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import type { AgentConfig } from '../../protocol/agent-config.ts';
import { present } from '../../protocol/assert.ts';
import { hostName, type HostName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { changeFleet } from '../../provisioner/fleet-file.ts';
import { ensureCertificate } from '../../provisioner/pki.ts';
import type { StateFolder } from '../../provisioner/state-folder.ts';
import { stageSupervision, startedUnits, unitFiles, type StagePrivileges } from '../../provisioner/units/unit-files.ts';
import { eventually } from '../fixture/eventually.ts';
import { attempt } from './command.ts';
import type { TestHost } from './test-host.ts';

const checkout = join(import.meta.dirname, '../../..');
const port = 7400;
const stateOnHost = '/var/lib/p4';
/** What a host needs of the checkout, without what only other machines and builds need. */
const left = [
  'node_modules/@node-llama-cpp/*-cuda*',
  'node_modules/@node-llama-cpp/*-vulkan',
  'node_modules/typescript',
];
const taken = ['dist', 'package.json', 'protocol/p4.proto', 'node_modules'];

export interface AgentHostOptions {
  readonly host: TestHost;
  readonly address: string;
  readonly privileges: StagePrivileges;
  readonly state: StateFolder;
}

export class AgentHost {
  readonly name: HostName;
  readonly privileges: StagePrivileges;
  readonly #host: TestHost;

  private constructor({ host, privileges }: AgentHostOptions) {
    this.name = hostName(host.name);
    this.privileges = privileges;
    this.#host = host;
  }

  /** Installs and starts it; returns when systemd calls it ready. */
  static async install(options: AgentHostOptions): Promise<AgentHost> {
    const { host, privileges } = options;
    await host.run(`useradd --system --user-group --no-create-home --shell /usr/sbin/nologin p4
      mkdir -p /opt/p4/releases/test/runtime/bin && ln -s releases/test /opt/p4/current
      install -d -o p4 -g p4 -m 700 ${stateOnHost} ${stateOnHost}/slices`);
    await host.run('tar -x -C /opt/p4/current', { input: await program() });
    await host.putFile('/opt/p4/current/runtime/bin/node', await readFile(process.execPath), { mode: '755' });
    await configure(options);
    const files = unitFiles({
      stateFolder: stateOnHost,
      cpus: [{ first: 0, last: 0 }],
      gpus: { kind: 'all' },
      hasGpus: false,
      ports: { agent: port, metrics: port + 1 },
      privileges,
    });
    for (const { path, text, mode } of files) await host.putFile(path, text, { mode: mode.toString(8) });
    const agent = new AgentHost(options);
    await agent.run(`systemctl daemon-reload && systemctl enable --now ${startedUnits(privileges).join(' ')}`);
    return agent;
  }

  /** As `TestHost.run`. */
  run(script: string): Promise<string> {
    return this.#host.run(script, { timeoutMs: 120_000 });
  }

  /** Whether a script of user `p4`, with the rights of its agent and no others, ends well. */
  async mayRun(script: string): Promise<boolean> {
    const { status } = await this.#host.exec('setpriv --reuid=p4 --regid=p4 --clear-groups sh -e', { input: script });
    return status === 0;
  }

  /** Names of stage units that run, with the numbers of their processes. */
  async stages(): Promise<ReadonlyMap<string, number>> {
    const listed = await this.run(`systemctl list-units --plain --no-legend --state=active 'p4-stage@*'`);
    const names = listed.split('\n').flatMap((line) => /^p4-stage@\S+/.exec(line)?.[0] ?? []);
    const pids = await Promise.all(names.map((name) => this.mainPid(name)));
    return new Map(names.map((name, index) => [name, present(pids[index], 'one for each')]));
  }

  async mainPid(unit: string): Promise<number> {
    return Number(await this.run(`systemctl show --property=MainPID --value ${unit}`));
  }

  /** Command lines of all processes of user `p4`. */
  async processes(): Promise<readonly string[]> {
    const listed = await this.run('ps -o args= -u p4 || true');
    return listed.split('\n').filter((line) => line !== '');
  }

  /** Lines that the agent logged of an event, over all its starts. */
  async logged(event: string): Promise<readonly string[]> {
    const log = await this.run('journalctl --unit=p4-agent --output=cat --no-pager');
    return log.split('\n').filter((line) => line.includes(`"event":"${event}"`));
  }

  async awaitAgent(withinMs: number): Promise<void> {
    const isActive = async (): Promise<boolean> =>
      (await this.run('systemctl is-active p4-agent || true')).trim() === 'active';
    await eventually(isActive, { what: `the agent of ${this.name} is ready`, withinMs });
  }
}

async function program(): Promise<Buffer> {
  const words = [...left.map((pattern) => `--exclude=${pattern}`), '--exclude=dist/test', ...taken];
  const { status, stdout, stderr } = await attempt(['tar', '-C', checkout, '-c', ...words]);
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

async function configure({ host, address, privileges, state }: AgentHostOptions): Promise<void> {
  const name = hostName(host.name);
  const { paths } = await ensureCertificate(state, { role: 'agent', host: name, addresses: [address] }, new Date());
  const pki = { authority: '/etc/p4/pki/a.crt', certificate: '/etc/p4/pki/b.crt', key: '/etc/p4/pki/b.key' };
  const config: AgentConfig = {
    host: name,
    listen: [{ address, port }],
    stateFolder: stateOnHost,
    slicesFolder: `${stateOnHost}/slices`,
    pki,
    journalLimitBytes: limits.journalLeastBytes,
    endsWithInput: false,
    ...stageSupervision(privileges),
  };
  const agentOnly = { mode: '640', group: 'p4' };
  await host.putFile('/etc/p4/agent.json', JSON.stringify(config), agentOnly);
  await host.putFile(pki.authority, await readFile(paths.authority));
  await host.putFile(pki.certificate, await readFile(paths.certificate));
  await host.putFile(pki.key, await readFile(paths.key), agentOnly);
  const since = new Date().toISOString();
  const entry = { name, address, port, certificateName: name, since, why: 'a test', network: null, ssh: null };
  await changeFleet(state, (hosts) => [...hosts, entry]);
}
