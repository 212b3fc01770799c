/** Why a connection could not be made or broke off, in words for people. */
import { P4Error } from '../../protocol/errors.ts';
import { systemCode } from '../../protocol/tls-identity.ts';
import type { Hop } from './route.ts';

/** How far a connection had come. */
export type ConnectionStage = 'connecting' | 'greeting' | 'login' | 'standing';

const wordsOf: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the port is closed: nothing listens there',
  ECONNRESET: 'the other side cut the connection',
  EPIPE: 'the other side cut the connection',
  ETIMEDOUT: 'nothing answers at the address',
  EHOSTUNREACH: 'there is no route to the address',
  ENETUNREACH: 'there is no route to the address',
  EADDRNOTAVAIL: 'this machine has no address to reach it from',
  EACCES: 'this machine does not allow the connection',
  EPERM: 'this machine does not allow the connection',
  EHOSTDOWN: 'the host is down',
  ENOTFOUND: 'the name is unknown',
  EAI_AGAIN: 'the name service does not answer',
};

/** @param silent what it means when nothing more is known */
export function reasonOf(error: unknown, silent: string): string {
  const words = wordsOf[systemCode(error)];
  if (words !== undefined) return words;
  return error instanceof Error && error.message !== '' ? error.message : silent;
}

export const timeoutReason: Readonly<Record<Exclude<ConnectionStage, 'standing'>, string>> = {
  connecting: 'nothing answers at the address',
  greeting: 'the port is open, but no ssh server answers on it in time',
  login: 'the login took too long',
};

export const brokenReason: Readonly<Record<ConnectionStage, string>> = {
  connecting: 'the connection was cut at once',
  greeting:
    'the other side cut the connection before it said who it is; it is no ssh server, or it has too many visitors',
  login: 'the other side cut the connection during the login',
  standing: 'the other side closed the connection',
};

/** What a login that was refused had to offer. */
export interface RefusedLogin {
  readonly hop: Hop;
  readonly tried: readonly string[];
  readonly remarks: readonly string[];
  /** Ways to log in that the server still offers. */
  readonly methods: readonly string[];
}

export function loginRefused({ hop, tried, remarks, methods }: RefusedLogin): P4Error {
  const why =
    methods.length > 0 && !methods.includes('publickey')
      ? `the server takes no keys (${methods.join(', ')})`
      : `the server refuses the login of ${hop.user}`;
  return unreachable(hop, why, {
    keys: tried.length > 0 ? tried : ['none'],
    ...(remarks.length > 0 ? { remarks } : {}),
  });
}

export const unreachable = (
  hop: Hop,
  why: string,
  more: Readonly<Record<string, string | readonly string[]>> = {},
): P4Error => new P4Error('HOST_UNREACHABLE', { host: hop.label, address: placeOf(hop), why, ...more });

export const lost = (hop: Hop, why: string, cause?: unknown): P4Error =>
  new P4Error('HOST_LOST', { host: hop.label, address: placeOf(hop), why }, cause);

const hostKeyCodes = ['HOST_KEY_UNKNOWN', 'HOST_KEY_NOT_ACCEPTED', 'HOST_KEY_CHANGED', 'HOST_KEY_REVOKED'] as const;

/** Whether a host could not be reached, or its key not be trusted: nothing was done on it. */
export const isUnreachable = (error: unknown): error is P4Error =>
  error instanceof P4Error && ([...hostKeyCodes, 'HOST_UNREACHABLE'] as readonly string[]).includes(error.code);

const placeOf = ({ address, port }: Hop): string =>
  address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
