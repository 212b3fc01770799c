/**
 * How commands come to the agents of hosts that deploy reached over jump hosts: by ssh, the same way, from what fleet.json
 * keeps of it. Connections are made when a host's agent is first called, shared up to the jump hosts, and made anew where
 * they were lost.
 */
import { once } from 'node:events';
import type { Duplex } from 'node:stream';

import { P4Error } from '../protocol/errors.ts';
import type { AgentWay } from './agent-client.ts';
import type { FleetHost } from './fleet-file.ts';
import type { AgentWays } from './fleet-ways.ts';
import { interruption, unlessAborted } from './interrupt.ts';
import { SocketFolder } from './socket-folder.ts';
import { AgentTunnel, type TunnelEnd } from './ssh/agent-tunnel.ts';
import { ClientKeys } from './ssh/client-keys.ts';
import { forwardTo } from './ssh/forwarding.ts';
import { HostTrust } from './ssh/host-trust.ts';
import { LinkPool } from './ssh/link-pool.ts';
import type { Link } from './ssh/link.ts';
import { OperatorConfig, type Operator } from './ssh/operator-config.ts';
import { routeOf, type Hop } from './ssh/route.ts';
import type { SecretPrompt } from './ssh/secret-prompt.ts';
import { openRoute, type LinkContext } from './ssh/session-opening.ts';
import type { SshWay } from './ssh/ssh-way.ts';
import type { StateFolder } from './state-folder.ts';

export interface SshWaysNeeds {
  readonly state: StateFolder;
  readonly operator: Operator;
  readonly prompt: SecretPrompt;
  /** Ends what is still being opened. */
  readonly signal: AbortSignal;
}

export class SshWays implements AgentWays {
  readonly #needs: SshWaysNeeds;
  readonly #folder: SocketFolder;
  readonly #context: LinkContext;
  readonly #ends: HostEnd[] = [];
  readonly #tunnels: AgentTunnel[] = [];
  #config: Promise<OperatorConfig> | null = null;

  private constructor(needs: SshWaysNeeds, folder: SocketFolder) {
    this.#needs = needs;
    this.#folder = folder;
    this.#context = {
      pool: new LinkPool(),
      trust: new HostTrust(needs.state.knownHostsFile, { fingerprints: [], isNewAccepted: false }),
      keys: new ClientKeys(needs.prompt),
      signal: needs.signal,
    };
  }

  static async prepare(needs: SshWaysNeeds): Promise<SshWays> {
    return new SshWays(needs, await SocketFolder.choose());
  }

  to(host: FleetHost): AgentWay | null {
    const { ssh } = host;
    if (ssh === null) return null;
    const end = new HostEnd({ host, context: this.#context, route: () => this.#route(ssh) });
    const tunnel = new AgentTunnel({
      through: throughText(ssh),
      folder: this.#folder,
      name: `${this.#tunnels.length}.sock`,
      end,
    });
    this.#ends.push(end);
    this.#tunnels.push(tunnel);
    return tunnel;
  }

  async close(): Promise<void> {
    await Promise.all(this.#tunnels.map((tunnel) => tunnel.close()));
    await Promise.all(this.#ends.map((end) => end.close()));
    await this.#folder.remove();
  }

  async #route(ssh: SshWay): Promise<readonly Hop[]> {
    const { operator } = this.#needs;
    this.#config ??= OperatorConfig.read(operator);
    const config = await this.#config;
    return routeOf(ssh, { operator, configured: config.of.bind(config) });
  }
}

/** For people: the machines in between. */
export const throughText = (ssh: SshWay): string => {
  const jumps = ssh.slice(0, -1).map(({ label }) => label);
  return jumps.length > 0 ? jumps.join(', ') : "the jumps of this machine's ssh configuration";
};

interface HostEndNeeds {
  readonly host: FleetHost;
  readonly context: LinkContext;
  readonly route: () => Promise<readonly Hop[]>;
}

/** An ssh connection to the host, and what is left of it when it has gone. */
interface Standing {
  readonly link: Link;
  /** Its way was let go of. */
  readonly ended: Promise<void>;
}

/** One host, as often as it has to be connected to. */
class HostEnd implements TunnelEnd {
  readonly #needs: HostEndNeeds;
  #standing: Promise<Standing> | null = null;
  #lost: P4Error | null = null;

  constructor(needs: HostEndNeeds) {
    this.#needs = needs;
  }

  /** @throws as `openSession`, naming the host that it was for and what is in between */
  async ready(signal: AbortSignal): Promise<void> {
    await unlessAborted(this.#connected(), signal);
  }

  async forward(signal: AbortSignal): Promise<Duplex> {
    const { link } = await unlessAborted(this.#connected(), signal);
    const { address, port } = this.#needs.host;
    return forwardTo({ link, at: { address, port }, signal }).catch((error: unknown) => {
      throw this.#named(error);
    });
  }

  lost(): P4Error | null {
    return this.#lost;
  }

  async close(): Promise<void> {
    const standing = await this.#standing?.catch(() => null);
    if (standing === null || standing === undefined) return;
    await standing.link.end();
    await standing.ended;
  }

  #connected(): Promise<Standing> {
    this.#standing ??= this.#open();
    return this.#standing;
  }

  async #open(): Promise<Standing> {
    try {
      const { link, release } = await openRoute(await this.#needs.route(), this.#needs.context);
      this.#lost = null;
      const gone = link.gone.aborted ? Promise.resolve() : once(link.gone, 'abort');
      const ended = gone.then(() => {
        this.#standing = null;
        this.#lost = this.#named(interruption(link.gone));
        return release();
      });
      return { link, ended };
    } catch (error) {
      this.#standing = null;
      throw this.#named(error);
    }
  }

  /** Whatever machine failed: this is whom it was for. */
  #named<Failure>(error: Failure): Failure | P4Error {
    if (!(error instanceof P4Error) || error.code === 'CANCELLED') return error;
    return namedFailure(error, this.#needs.host);
  }
}

/** An error of ssh on the way to an agent: with its host, what is in between, and the command that takes its options. */
export function namedFailure(error: P4Error, { name, ssh }: Pick<FleetHost, 'name' | 'ssh'>): P4Error {
  const { accept } = error.facts;
  const facts = { ...error.facts, agentOf: name, through: throughText(ssh ?? []) };
  if (typeof accept !== 'string') return new P4Error(error.code, facts, error);
  return new P4Error(error.code, { ...facts, accept: `npm run deploy -- INVENTORY ${accept}` }, error);
}
