/** p4.proto as gRPC wants it: read once, when the first server or client needs it. */
import { join } from 'node:path';

import { loadSync, type MethodDefinition, type ServiceDefinition } from '@grpc/proto-loader';

import { assert, present } from './assert.ts';
import {
  methodKinds,
  type MethodKind,
  type MethodName,
  type ReplyOf,
  type RequestOf,
  type ServiceName,
} from './rpc-services.ts';

/** How one call travels. */
export interface CallDefinition<Request, Reply> {
  readonly path: string;
  readonly requestSerialize: (request: Request) => Buffer;
  readonly requestDeserialize: (bytes: Buffer) => Request;
  readonly responseSerialize: (reply: Reply) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Reply;
}

/** Path of Ring.Hops; its messages are coded by hop-codec.ts. */
export const hopsPath = '/p4.v1.Ring/Hops';

const protoPath = join(import.meta.dirname, '..', '..', 'protocol', 'p4.proto');

/** messages.ts says what these options make of a message. */
const loaderOptions = {
  keepCase: false,
  longs: String,
  enums: String,
  defaults: true,
  arrays: true,
  oneofs: true,
};

const definitions = new Map<ServiceName, ServiceDefinition>();

export function callDefinition<Service extends ServiceName, Name extends MethodName<Service>>(
  service: Service,
  name: Name,
): CallDefinition<RequestOf<Service, Name>, ReplyOf<Service, Name>> {
  const method: unknown = present(serviceDefinition(service)[name], `p4.proto has ${service}.${name}`);
  // The codec's edge: messages.ts states what proto-loader makes of these messages, and a test compares the two.
  return method as CallDefinition<RequestOf<Service, Name>, ReplyOf<Service, Name>>;
}

function serviceDefinition(service: ServiceName): ServiceDefinition {
  if (definitions.size === 0) loadDefinitions();
  return present(definitions.get(service), `p4.proto has ${service}`);
}

function loadDefinitions(): void {
  const loaded = loadSync(protoPath, loaderOptions);
  for (const service of ['Agent', 'Outer'] as const) {
    // proto-loader names a service's entry by its full name; a message has an entry of another form.
    const definition = loaded[`p4.v1.${service}`] as ServiceDefinition;
    const kinds: Readonly<Record<string, MethodKind>> = methodKinds[service];
    for (const [name, method] of Object.entries(definition))
      assert(kinds[name] === kindOf(method), `${service}.${name} is in the table as p4.proto has it`);
    assert(Object.keys(kinds).length === Object.keys(definition).length, `p4.proto has all of ${service}`);
    definitions.set(service, definition);
  }
}

function kindOf(method: Pick<MethodDefinition<object, object>, 'requestStream' | 'responseStream'>): MethodKind {
  assert(!method.requestStream || !method.responseStream, 'only Ring.Hops streams both ways');
  if (method.requestStream) return 'client-stream';
  return method.responseStream ? 'server-stream' : 'unary';
}
