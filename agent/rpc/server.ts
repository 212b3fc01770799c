/** The agent's gRPC server: listens, guards, and hands calls to plain async functions. */
import {
  Server,
  ServerCredentials,
  type handleClientStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  type ServerOptions as GrpcOptions,
} from '@grpc/grpc-js';

import type { AgentConfig } from '../../protocol/agent-config.ts';
import { P4Error } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { addressText, type NetAddress } from '../../protocol/net-address.ts';
import { callDefinition, hopsPath } from '../../protocol/rpc-definition.ts';
import type { MethodName, MethodOfKind, ReplyOf, RequestOf, ServiceName } from '../../protocol/rpc-services.ts';
import type { TlsIdentity } from '../../protocol/tls-identity.ts';
import type { EdgeGate } from '../links/link.ts';
import { hopsCall } from '../links/link-receiver.ts';
import { access, ringAccess } from './access.ts';
import { dieOfBug, OpenCalls, type CallContext, type RpcLog } from './call-context.ts';
import { streamCall, unaryCall, type RpcHandlers, type StreamHandler, type UnaryHandler } from './calls.ts';
import { uploadCall, type UploadHandler } from './upload-call.ts';
import { Listener } from './listener.ts';

export interface ServerOptions {
  readonly config: Pick<AgentConfig, 'listen'>;
  readonly tls: TlsIdentity;
  readonly handlers: RpcHandlers;
  /** Decides about incoming ring edges. */
  readonly gate: EdgeGate;
  readonly log: RpcLog;
  /** Told of each call that is answered with an error. */
  readonly failed?: CallContext['failed'];
  /** Takes what a handler threw that is no `P4Error`; the default ends the process with it. */
  readonly bug?: (error: unknown) => void;
}

export interface RpcServer {
  /** The addresses it listens on, in the order of the configuration. */
  readonly listen: readonly NetAddress[];
  /**
   * Accepts nothing more, ends streams and ring edges with AGENT_STOPPING, and waits for the other calls until the grace
   * time is over; then it closes every connection.
   */
  stop(graceMs: number): Promise<void>;
}

/** @throws ADDRESS_IN_USE, ADDRESS_UNAVAILABLE, CERTIFICATE_UNUSABLE; then it listens nowhere */
export async function startServer(options: ServerOptions): Promise<RpcServer> {
  const openCalls = new OpenCalls();
  const server = new Server(grpcOptions);
  mount(server, options, openCalls);
  // TLS is done when a socket gets here; gRPC reads the peer's certificate from it.
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const listeners: Listener[] = [];
  try {
    for (const at of options.config.listen)
      listeners.push(
        await Listener.open({
          at,
          tls: options.tls,
          log: options.log,
          accept: (socket) => {
            injector.injectConnection(socket);
          },
        }),
      );
  } catch (error) {
    for (const listener of listeners) listener.close();
    server.forceShutdown();
    throw error;
  }
  for (const { at } of listeners) options.log({ event: 'rpc-listening', address: addressText(at) });
  return {
    listen: listeners.map(({ at }) => at),
    stop: (graceMs) => stop({ server, listeners, openCalls, graceMs, log: options.log }),
  };
}

const grpcOptions: GrpcOptions = {
  'grpc.max_receive_message_length': limits.grpcMessageBytes,
  'grpc.max_send_message_length': limits.grpcMessageBytes,
  'grpc.max_concurrent_streams': limits.rpcStreams,
  'grpc.keepalive_time_ms': limits.rpcKeepaliveMs,
  'grpc.keepalive_timeout_ms': limits.rpcKeepaliveAnswerMs,
  'grpc.enable_channelz': 0,
};

type ServedCall<Request, Reply> =
  | handleUnaryCall<Request, Reply>
  | handleServerStreamingCall<Request, Reply>
  | handleClientStreamingCall<Request, Reply>;

function mount(server: Server, options: ServerOptions, openCalls: OpenCalls): void {
  const { handlers, gate, log, failed, bug = dieOfBug } = options;
  const shared = { log, bug, openCalls, failed };
  const register = <Service extends ServiceName, Name extends MethodName<Service>>(
    [service, name]: readonly [Service, Name],
    type: 'unary' | 'serverStream' | 'clientStream',
    serve: (context: CallContext) => ServedCall<RequestOf<Service, Name>, ReplyOf<Service, Name>>,
  ): void => {
    const context: CallContext = { ...shared, method: `${service}.${name}`, allowed: access[service][name] };
    const call = callDefinition(service, name);
    server.register(call.path, serve(context), call.responseSerialize, call.requestDeserialize, type);
  };
  const unary = <Service extends ServiceName, Name extends MethodOfKind<Service, 'unary'>>(
    service: Service,
    name: Name,
    handler: UnaryHandler<RequestOf<Service, Name>, ReplyOf<Service, Name>>,
  ): void => {
    register([service, name], 'unary', (context) => unaryCall(handler, context));
  };
  const stream = <Service extends ServiceName, Name extends MethodOfKind<Service, 'server-stream'>>(
    service: Service,
    name: Name,
    handler: StreamHandler<RequestOf<Service, Name>, ReplyOf<Service, Name>>,
  ): void => {
    register([service, name], 'serverStream', (context) => streamCall(handler, context));
  };
  const upload = <Service extends ServiceName, Name extends MethodOfKind<Service, 'client-stream'>>(
    service: Service,
    name: Name,
    handler: UploadHandler<RequestOf<Service, Name>, ReplyOf<Service, Name>>,
  ): void => {
    register([service, name], 'clientStream', (context) => uploadCall(handler, context));
  };
  const { Agent: agent, Outer: outer } = handlers;
  unary('Agent', 'Describe', agent.Describe);
  stream('Agent', 'Load', agent.Load);
  unary('Agent', 'Link', agent.Link);
  unary('Agent', 'Probe', agent.Probe);
  unary('Agent', 'Unload', agent.Unload);
  unary('Agent', 'Status', agent.Status);
  unary('Agent', 'ListSlices', agent.ListSlices);
  unary('Agent', 'SliceState', agent.SliceState);
  upload('Agent', 'ReceiveSlice', agent.ReceiveSlice);
  unary('Agent', 'RemoveSlices', agent.RemoveSlices);
  stream('Agent', 'DescribeModel', agent.DescribeModel);
  stream('Agent', 'CutSlice', agent.CutSlice);
  stream('Outer', 'OpenSession', outer.OpenSession);
  unary('Outer', 'Submit', outer.Submit);
  stream('Outer', 'Gather', outer.Gather);
  unary('Outer', 'Cancel', outer.Cancel);
  unary('Outer', 'CloseSession', outer.CloseSession);
  unary('Outer', 'Settle', outer.Settle);
  const hops = hopsCall(gate, { ...shared, method: 'Ring.Hops', allowed: ringAccess });
  server.register(hopsPath, hops, asIs, asIs, 'bidi');
}

/** The messages of Ring.Hops are coded by its handler, where a bad one has an error of its own. */
const asIs = (bytes: Buffer): Buffer => bytes;

interface StopOptions {
  readonly server: Server;
  readonly listeners: readonly Listener[];
  readonly openCalls: OpenCalls;
  readonly graceMs: number;
  readonly log: RpcLog;
}

async function stop({ server, listeners, openCalls, graceMs, log }: StopOptions): Promise<void> {
  for (const listener of listeners) listener.close();
  openCalls.endAll(new P4Error('AGENT_STOPPING'));
  const forced = await new Promise<boolean>((resolve) => {
    const timer = setTimeout(resolve, graceMs, true);
    server.tryShutdown(() => {
      clearTimeout(timer);
      resolve(false);
    });
  });
  server.forceShutdown();
  for (const listener of listeners) listener.closeConnections();
  log({ event: 'rpc-stopped', forced });
}
