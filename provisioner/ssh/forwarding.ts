/** Connections to an agent that its own host makes, at the other end of an ssh connection (direct-tcpip, RFC 4254, 7.2). */
import type { Duplex } from 'node:stream';

import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { NetAddress } from '../../protocol/net-address.ts';
import { interruption } from '../interrupt.ts';
import { brokenReason, lost, reasonOf } from './connection-failure.ts';
import type { Link } from './link.ts';

export interface ForwardOrder {
  /** To the agent's host. */
  readonly link: Link;
  readonly at: NetAddress;
  readonly signal: AbortSignal;
}

/** @throws AGENT_UNREACHABLE, SSH_FORWARDING_REFUSED, HOST_LOST, CANCELLED */
export function forwardTo(order: ForwardOrder): Promise<Duplex> {
  const { link, at, signal } = order;
  return new Promise((resolve, reject) => {
    let isOver = false;
    const end = (settle: () => void): void => {
      isOver = true;
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      link.gone.removeEventListener('abort', abort);
      settle();
    };
    const fail = (error: P4Error): void => {
      if (isOver) return;
      end(() => {
        reject(error);
      });
    };
    const abort = (): void => {
      fail(interruption(link.gone.aborted ? link.gone : signal));
    };
    const timer = setTimeout(() => {
      fail(unanswered(order, 'the host itself gets no answer there'));
    }, limits.sshConnectMs);
    if (link.gone.aborted || signal.aborted) {
      abort();
      return;
    }
    signal.addEventListener('abort', abort, { once: true });
    link.gone.addEventListener('abort', abort, { once: true });
    try {
      // What sshd writes down as the origin: this machine's, of no use to anybody.
      link.client.forwardOut('127.0.0.1', 0, at.address, at.port, (error, channel) => {
        if (error !== undefined) fail(refusal(order, error));
        else if (isOver) channel.destroy();
        else
          end(() => {
            resolve(channel);
          });
      });
    } catch (error) {
      // The socket is gone, and nobody has heard of it yet.
      fail(lost(link.hop, reasonOf(error, brokenReason.standing), error));
    }
  });
}

function refusal(order: ForwardOrder, error: Error): P4Error {
  const said = error.message.replace(/^\(SSH\) Channel open failure: /, '');
  if (isForbidden(error)) return new P4Error('SSH_FORWARDING_REFUSED', { ...factsOf(order), said }, error);
  return unanswered(order, `the host itself does not reach it: ${said}`, error);
}

const unanswered = (order: ForwardOrder, why: string, cause?: unknown): P4Error =>
  new P4Error('AGENT_UNREACHABLE', { ...factsOf(order), why }, cause);

const factsOf = ({ link, at }: ForwardOrder): Readonly<Record<string, string | number>> => ({
  host: link.hop.label,
  address: at.address,
  port: at.port,
});

/** The server does not do it for this user, or at all; that nothing listens is another reason. */
const isForbidden = (error: Error): boolean => {
  const reason = 'reason' in error ? error.reason : null;
  const { ADMINISTRATIVELY_PROHIBITED, UNKNOWN_CHANNEL_TYPE } = openFailure;
  return reason === ADMINISTRATIVELY_PROHIBITED || reason === UNKNOWN_CHANNEL_TYPE;
};

/** RFC 4254, section 5.1. */
const openFailure = { ADMINISTRATIVELY_PROHIBITED: 1, UNKNOWN_CHANNEL_TYPE: 3 } as const;
