/** A fresh connection to a host's agent, the way that the operator's other commands take: dialled, or through ssh. */
import type { NetAddress } from '../../protocol/net-address.ts';
import type { TlsIdentity } from '../../protocol/tls-identity.ts';
import { AgentClient } from '../agent-client.ts';
import { operatorAddressOf, type FleetHost } from '../fleet-file.ts';
import { throughText } from '../ssh-ways.ts';
import { SocketFolder } from '../socket-folder.ts';
import { AgentTunnel } from '../ssh/agent-tunnel.ts';
import type { Session } from '../ssh/session.ts';
import type { HostRun } from './host-run.ts';

export interface AgentAccess {
  readonly host: HostRun;
  readonly at: NetAddress;
  readonly operator: TlsIdentity;
}

/** Where the operator reaches the agent of a host that is being deployed to. */
export const agentAddressOf = ({ session }: HostRun, entry: FleetHost): string =>
  operatorAddressOf(entry, session.way !== null);

/** The connection is closed when the work is done. */
export async function withAgent<Value>(
  { host, at, operator }: AgentAccess,
  work: (client: AgentClient) => Promise<Value>,
): Promise<Value> {
  const { session, name } = host;
  const folder = await SocketFolder.choose();
  const tunnel = session.way === null ? null : tunnelTo({ session, at, folder, through: throughText(session.way) });
  const client = AgentClient.connect({ host: name, ...at, tls: operator, way: tunnel });
  try {
    return await work(client);
  } finally {
    client.close();
    await tunnel?.close();
    await folder.remove();
  }
}

interface TunnelPlace {
  readonly session: Session;
  readonly at: NetAddress;
  readonly folder: SocketFolder;
  readonly through: string;
}

/** Over the session that stands. */
const tunnelTo = ({ session, at, folder, through }: TunnelPlace): AgentTunnel =>
  new AgentTunnel({
    ...{ through, folder, name: 'agent.sock' },
    end: {
      ready: () => Promise.resolve(),
      forward: (signal) => session.forward(at, signal),
      lost: () => null,
    },
  });
