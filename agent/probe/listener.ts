/**
 * The probe program's side that is connected to: it listens at each address of the host by itself, so that what answers
 * there is this host's. Who does not prove at once that it knows the secret gets a closed connection, and nothing else
 * is told to it than a random number.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { limits } from '../../protocol/limits.ts';
import type { HostAddress, ProbeIdentity } from '../../protocol/probe-messages.ts';
import { memberOf } from '../../protocol/plain-value.ts';
import { sendBurst, takeBurst } from './burst.ts';
import type { Purpose } from './dial.ts';
import type { QuietAddress } from './host-addresses.ts';
import { freshNonce, isProof, proofOf } from './secret-proof.ts';
import { Wire, WireError } from './wire.ts';

export interface ListenerParts {
  readonly identity: ProbeIdentity;
  readonly secret: string;
  /** Taken where it is free. */
  readonly port: number;
}

/** Listens at those addresses that others could use, until the process ends. */
export async function listenAt(
  addresses: readonly QuietAddress[],
  parts: ListenerParts,
): Promise<readonly HostAddress[]> {
  const listening = addresses.map(async (address, index): Promise<HostAddress> => {
    const why = reasonAgainst(address, index);
    const listener = why === null ? await listenerAt(zoned(address), parts) : ({ kind: 'none', why } as const);
    return { ...address, listener };
  });
  return Promise.all(listening);
}

function reasonAgainst({ scope, isUp, flags }: QuietAddress, index: number): string | null {
  if (index >= limits.probeAddresses) return `more than ${limits.probeAddresses} addresses on one host`;
  if (scope === 'host') return 'loopback';
  if (!isUp) return 'the link is down';
  return flags.includes('tentative') ? 'the kernel has not taken the address yet' : null;
}

const zoned = ({ address, scope, interface: name }: QuietAddress): string =>
  scope === 'link' && address.includes(':') ? `${address}%${name}` : address;

async function listenerAt(host: string, parts: ListenerParts): Promise<HostAddress['listener']> {
  const first = await listening(host, parts.port, parts);
  return first.kind === 'none' ? listening(host, 0, parts) : first;
}

function listening(host: string, port: number, parts: ListenerParts): Promise<HostAddress['listener']> {
  return new Promise((resolve) => {
    const server: Server = createServer({ allowHalfOpen: true }, (socket) => void serve(socket, parts));
    server.maxConnections = limits.probeOrders * 4;
    server.once('error', ({ message }) => {
      resolve({ kind: 'none', why: message.slice(0, 200) });
    });
    server.listen({ host, port, ipv6Only: true }, () => {
      const bound = server.address();
      resolve({ kind: 'port', port: typeof bound === 'object' && bound !== null ? bound.port : port });
    });
  });
}

async function serve(socket: Socket, parts: ListenerParts): Promise<void> {
  const seenAs = (socket.remoteAddress ?? '').split('%')[0] ?? '';
  const wire = new Wire(socket);
  try {
    const purpose = await admitted(wire, seenAs, parts);
    if (purpose !== null) await serving[purpose](wire);
  } catch (error) {
    // The caller sees how far it came.
    if (!(error instanceof WireError)) throw error;
  } finally {
    // What still waits to be sent would disturb the next measurement.
    socket.resetAndDestroy();
  }
}

/** What the caller wants, `null` for one that does not know the secret. */
async function admitted(wire: Wire, seenAs: string, { identity, secret }: ListenerParts): Promise<Purpose | null> {
  const nonce = freshNonce();
  wire.send({ nonce });
  const request = await wire.receive(limits.probeAnswerMs);
  const [purpose, theirNonce] = [memberOf(request, 'purpose'), memberOf(request, 'nonce')];
  if (typeof theirNonce !== 'string' || !isPurpose(purpose)) return null;
  if (!isProof(memberOf(request, 'proof'), { secret, side: 'caller', claims: [nonce, purpose] })) return null;
  const { host, machineId } = identity;
  const proof = proofOf({ secret, side: 'listener', claims: [theirNonce, host, machineId, seenAs] });
  wire.send({ host, machineId, seenAs, proof });
  return purpose;
}

const isPurpose = (value: unknown): value is Purpose => value === 'reach' || value === 'up' || value === 'down';

const serving: Readonly<Record<Purpose, (wire: Wire) => Promise<void>>> = {
  reach: answerPings,
  up: async (wire) => {
    wire.send({ bytesPerSecond: await takeBurst(wire) });
    await drained(wire);
  },
  down: async (wire) => {
    await sendBurst(wire, () => false);
    await drained(wire);
  },
};

async function answerPings(wire: Wire): Promise<void> {
  for (;;) {
    const said = await wire.receive(limits.probeFrameMs + limits.probeAnswerMs);
    if (memberOf(said, 'say') === 'ping') {
      wire.send({ say: 'pong' });
      continue;
    }
    if (memberOf(said, 'say') !== 'frame') return;
    await wire.bytes(limits.probeFrameBytes, limits.probeFrameMs);
    // In one write, as it came.
    wire.socket.write(Buffer.alloc(limits.probeFrameBytes));
  }
}

/** Reads on until the other side closes, so that it gets what was sent last. */
async function drained(wire: Wire): Promise<void> {
  const untilMs = performance.now() + limits.probeAnswerMs;
  while ((await wire.some(untilMs)) !== null && performance.now() < untilMs) continue;
}
