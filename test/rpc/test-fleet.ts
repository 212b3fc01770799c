/** A fleet's certificates and agents' servers on loopback, for tests: real TLS, real gRPC, made anew for each process. */
import { hostName } from '../../protocol/ids.ts';
import { P4Error } from '../../protocol/errors.ts';
import type { NetAddress } from '../../protocol/net-address.ts';
import type { TlsIdentity } from '../../protocol/tls-identity.ts';
import type { EdgeGate } from '../../agent/links/link.ts';
import type { RpcLogLine } from '../../agent/rpc/call-context.ts';
import type { RpcHandlers } from '../../agent/rpc/calls.ts';
import { startServer, type RpcServer } from '../../agent/rpc/server.ts';
import { AgentClient } from '../../provisioner/agent-client.ts';
import { createAuthority, createCertificate } from '../../provisioner/certificate-signing.ts';
import type { Holder, KeyPair } from '../../provisioner/certificate.ts';

/** `stranger` is an agent named alpha too, of another fleet. */
export type HolderName = 'alpha' | 'beta' | 'operator' | 'client' | 'monitor' | 'stranger';
export type TestFleet = Readonly<Record<HolderName, TlsIdentity>>;

export const alpha = hostName('alpha');
export const beta = hostName('beta');

export async function testFleet(): Promise<TestFleet> {
  const now = new Date();
  const authority = await createAuthority(now);
  const agent = (host: typeof alpha): Holder => ({ role: 'agent', host, addresses: ['127.0.0.1', '::1'] });
  return {
    alpha: await identity(authority, agent(alpha), now),
    beta: await identity(authority, agent(beta), now),
    operator: await identity(authority, { role: 'operator' }, now),
    client: await identity(authority, { role: 'client' }, now),
    monitor: await identity(authority, { role: 'monitor', host: alpha }, now),
    stranger: await identity(await createAuthority(now), agent(alpha), now),
  };
}

async function identity(authority: KeyPair, holder: Holder, now: Date): Promise<TlsIdentity> {
  return { authority: authority.certificate, ...(await createCertificate(authority, holder, now)) };
}

export interface TestServer {
  readonly server: RpcServer;
  readonly port: number;
  readonly lines: readonly RpcLogLine[];
  /** What handlers threw that is a bug. */
  readonly bugs: readonly unknown[];
}

export interface TestServerOptions {
  readonly tls: TlsIdentity;
  readonly agent?: Partial<RpcHandlers['Agent']>;
  readonly outer?: Partial<RpcHandlers['Outer']>;
  readonly gate?: EdgeGate;
  /** 127.0.0.1 at a free port if absent. */
  readonly listen?: readonly NetAddress[];
}

/** A call without a handler is refused with RING_UNKNOWN. */
export async function startTestServer(options: TestServerOptions): Promise<TestServer> {
  const { tls, agent, outer, gate = refuseEdge, listen = [{ address: '127.0.0.1', port: 0 }] } = options;
  const lines: RpcLogLine[] = [];
  const bugs: unknown[] = [];
  const server = await startServer({
    config: { listen },
    tls,
    handlers: { Agent: { ...refusals.Agent, ...agent }, Outer: { ...refusals.Outer, ...outer } },
    gate,
    log: (line) => lines.push(line),
    bug: (error) => bugs.push(error),
  });
  return { server, port: server.listen[0]?.port ?? 0, lines, bugs };
}

const unknownRing = (): P4Error => new P4Error('RING_UNKNOWN', { ring: 'none' });
const refuse = (): Promise<never> => Promise.reject(unknownRing());
const refuseEdge: EdgeGate = () => ({ kind: 'refused', error: unknownRing() });

const refusals: RpcHandlers = {
  Agent: {
    ...{ Describe: refuse, Load: refuse, Link: refuse, Probe: refuse, Unload: refuse, Status: refuse },
    ...{ ListSlices: refuse, SliceState: refuse, ReceiveSlice: refuse, RemoveSlices: refuse },
    ...{ DescribeModel: refuse, CutSlice: refuse },
  },
  Outer: {
    OpenSession: refuse,
    Submit: refuse,
    Gather: refuse,
    Cancel: refuse,
    CloseSession: refuse,
    Settle: refuse,
  },
};

export const clientOf = (port: number, tls: TlsIdentity, host = alpha): AgentClient =>
  AgentClient.connect({ host, address: '127.0.0.1', port, tls });

/** The error of a promise that must fail with one. */
export async function failureOf(work: Promise<unknown>): Promise<P4Error> {
  try {
    await work;
  } catch (error) {
    if (error instanceof P4Error) return error;
    throw error;
  }
  throw new Error('it did not fail');
}

/** Waits for a condition; fails when it is not met in time. */
export async function until(condition: () => boolean, what: string, withinMs = 10_000): Promise<void> {
  const endMs = performance.now() + withinMs;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`not within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
