/**
 * How much a neighbour may send ahead of what has been read, on a connection that carries ring edges.
 *
 * HTTP/2 starts with 64 KiB for a stream and for the connection: a prefill frame of 8 MiB would wait a hundred times for
 * credit. gRPC for Node has an option for the window of its clients only, so the server's is set on the session itself.
 */
import type { ServerHttp2Session } from 'node:http2';

import { present } from '../../protocol/assert.ts';
import { limits } from '../../protocol/limits.ts';

/** Widens the windows of the connection that `call`, a streaming call of gRPC's server, came in on. */
export function widenWindow(call: object): void {
  const session = present(sessionOf(call), 'a call of gRPC has an HTTP/2 session');
  if (session.destroyed || session.localSettings.initialWindowSize === limits.rpcStreamWindowBytes) return;
  session.setLocalWindowSize(limits.rpcStreamWindowBytes);
  session.settings({ initialWindowSize: limits.rpcStreamWindowBytes });
}

/** The fields that lead to it are private to gRPC, whose version is pinned; a test sees when they move. */
function sessionOf(call: object): ServerHttp2Session | null {
  const session: unknown = ['call', 'stream', 'session'].reduce(fieldOf, call);
  return isSession(session) ? session : null;
}

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;

function isSession(value: unknown): value is ServerHttp2Session {
  return typeof fieldOf(value, 'setLocalWindowSize') === 'function' && typeof fieldOf(value, 'settings') === 'function';
}
