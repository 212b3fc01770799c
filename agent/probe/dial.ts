/** A connection to another probe program, as far as both sides have proved that they know the secret. */
import { connect, type Socket } from 'node:net';
import { P4Error } from '../../protocol/errors.ts';
import { hostName } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import type { ProbeIdentity, ProbeTarget, UnreachableReason } from '../../protocol/probe-messages.ts';
import { freshNonce, isProof, proofOf } from './secret-proof.ts';
import { textOf, Wire, WireError } from './wire.ts';

/** What a connection is for. */
export type Purpose = 'reach' | 'up' | 'down';

export type Dialling =
  | { readonly kind: 'open'; readonly wire: Wire; readonly by: ProbeIdentity; readonly seenAs: string }
  | { readonly kind: 'unreachable'; readonly why: UnreachableReason };

export async function dial(target: ProbeTarget, purpose: Purpose, secret: string): Promise<Dialling> {
  const attempt = await connected(target);
  if (attempt.kind === 'failed') return { kind: 'unreachable', why: attempt.why };
  const wire = new Wire(attempt.socket);
  try {
    return { kind: 'open', wire, ...(await greeted(wire, purpose, secret)) };
  } catch (error) {
    attempt.socket.destroy();
    // Whatever answers and then breaks off, or says nothing, is no probe program of this run.
    if (error instanceof WireError) return { kind: 'unreachable', why: 'stranger' };
    throw error;
  }
}

type Attempt =
  | { readonly kind: 'connected'; readonly socket: Socket }
  | { readonly kind: 'failed'; readonly why: UnreachableReason };

function connected({ address, port }: ProbeTarget): Promise<Attempt> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port });
    const failed = (why: UnreachableReason): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ kind: 'failed', why });
    };
    const timer = setTimeout(failed, limits.probeAnswerMs, 'timed-out');
    socket.once('error', (error) => {
      failed(reasonOf(error));
    });
    socket.once('connect', () => {
      clearTimeout(timer);
      socket.removeAllListeners('error');
      resolve({ kind: 'connected', socket });
    });
  });
}

const reasons: Readonly<Record<string, UnreachableReason>> = {
  ECONNREFUSED: 'refused',
  ETIMEDOUT: 'timed-out',
  EHOSTUNREACH: 'no-route',
  ENETUNREACH: 'no-route',
  EADDRNOTAVAIL: 'no-route',
  // A zone that this host does not have.
  EINVAL: 'no-route',
  ENODEV: 'no-route',
  ECONNRESET: 'closed',
};

function reasonOf(error: Error): UnreachableReason {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return reasons[code] ?? 'failed';
}

async function greeted(
  wire: Wire,
  purpose: Purpose,
  secret: string,
): Promise<{ readonly by: ProbeIdentity; readonly seenAs: string }> {
  const theirNonce = textOf(await wire.receive(limits.probeAnswerMs), 'nonce');
  const nonce = freshNonce();
  wire.send({ nonce, purpose, proof: proofOf({ secret, side: 'caller', claims: [theirNonce, purpose] }) });
  const answer = await wire.receive(limits.probeAnswerMs);
  const [host, machineId, seenAs] = [textOf(answer, 'host'), textOf(answer, 'machineId'), textOf(answer, 'seenAs')];
  const claims = [nonce, host, machineId, seenAs];
  if (!isProof(textOf(answer, 'proof'), { secret, side: 'listener', claims })) throw new WireError('stranger');
  return { by: { host: knownName(host), machineId }, seenAs };
}

function knownName(text: string): ProbeIdentity['host'] {
  try {
    return hostName(text);
  } catch (error) {
    if (error instanceof P4Error) throw new WireError('stranger');
    throw error;
  }
}
