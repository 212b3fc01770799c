/**
 * Which calls there are, as types and as tables: client and server are both typed by these, and p4.proto is checked
 * against them when it is read.
 */
import type * as messages from './messages.ts';
import type * as slices from './slice-messages.ts';

/** One request, one reply. */
export interface Unary<Request, Reply> {
  readonly kind: 'unary';
  readonly request: Request;
  readonly reply: Reply;
}

/** One request, a stream of events. */
export interface ServerStream<Request, Event> {
  readonly kind: 'server-stream';
  readonly request: Request;
  readonly reply: Event;
}

/** A stream of requests, one reply. */
export interface ClientStream<Request, Reply> {
  readonly kind: 'client-stream';
  readonly request: Request;
  readonly reply: Reply;
}

export interface AgentMethods {
  readonly Describe: Unary<messages.DescribeRequest, messages.AgentDescription>;
  readonly Load: ServerStream<messages.LoadRequest, messages.LoadProgress>;
  readonly Link: Unary<messages.RingCommand, messages.LinkReply>;
  readonly Probe: Unary<messages.RingCommand, messages.ProbeReply>;
  readonly Unload: Unary<messages.RingCommand, messages.UnloadReply>;
  readonly Status: Unary<messages.StatusRequest, messages.StatusReply>;
  readonly ListSlices: Unary<slices.ListSlicesRequest, slices.SliceList>;
  readonly SliceState: Unary<slices.SliceStateRequest, slices.SliceStateReply>;
  readonly ReceiveSlice: ClientStream<slices.SliceChunk, slices.SliceReceived>;
  readonly RemoveSlices: Unary<slices.RemoveSlicesRequest, slices.RemoveSlicesReply>;
  readonly DescribeModel: ServerStream<slices.DescribeModelRequest, slices.ModelNews>;
  readonly CutSlice: ServerStream<slices.CutSliceRequest, slices.CutNews>;
}

export interface OuterMethods {
  readonly OpenSession: ServerStream<messages.OpenSessionRequest, messages.SessionOpened>;
  readonly Submit: Unary<messages.SubmitRequest, messages.SubmitReply>;
  readonly Gather: ServerStream<messages.GatherRequest, messages.GatherEvent>;
  readonly Cancel: Unary<messages.RequestCommand, messages.CancelReply>;
  readonly CloseSession: Unary<messages.SessionCommand, messages.CloseSessionReply>;
  readonly Settle: Unary<messages.RequestCommand, messages.Settlement>;
}

/** Services whose messages proto-loader codes. Ring.Hops is apart: hop-codec.ts. */
export interface Services {
  readonly Agent: AgentMethods;
  readonly Outer: OuterMethods;
}

export type ServiceName = keyof Services;
export type MethodName<Service extends ServiceName> = keyof Services[Service] & string;
export type MethodKind = 'unary' | 'server-stream' | 'client-stream';

/** Names of a service's methods of one kind. */
export type MethodOfKind<Service extends ServiceName, Kind extends MethodKind> = {
  [Name in MethodName<Service>]: Services[Service][Name] extends { readonly kind: Kind } ? Name : never;
}[MethodName<Service>];

type Part<Method, Key extends 'request' | 'reply'> = Method extends Readonly<Record<Key, infer Value>> ? Value : never;

export type RequestOf<Service extends ServiceName, Name extends MethodName<Service>> = Part<
  Services[Service][Name],
  'request'
>;
export type ReplyOf<Service extends ServiceName, Name extends MethodName<Service>> = Part<
  Services[Service][Name],
  'reply'
>;

type KindTable = {
  readonly [Service in ServiceName]: {
    readonly [Name in MethodName<Service>]: Services[Service][Name] extends { readonly kind: infer Kind }
      ? Kind
      : never;
  };
};

export const methodKinds: KindTable = {
  Agent: {
    Describe: 'unary',
    Load: 'server-stream',
    Link: 'unary',
    Probe: 'unary',
    Unload: 'unary',
    Status: 'unary',
    ListSlices: 'unary',
    SliceState: 'unary',
    ReceiveSlice: 'client-stream',
    RemoveSlices: 'unary',
    DescribeModel: 'server-stream',
    CutSlice: 'server-stream',
  },
  Outer: {
    OpenSession: 'server-stream',
    Submit: 'unary',
    Gather: 'server-stream',
    Cancel: 'unary',
    CloseSession: 'unary',
    Settle: 'unary',
  },
};
