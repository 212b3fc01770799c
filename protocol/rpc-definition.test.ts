import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import type * as messages from './messages.ts';
import { callDefinition } from './rpc-definition.ts';
import { methodKinds, type MethodName, type ReplyOf, type RequestOf, type ServiceName } from './rpc-services.ts';
import type * as slices from './slice-messages.ts';

const maximum = '18446744073709551615';
const ring = { ring: 'story', generation: maximum };
const session = { ...ring, session: 3 };
const request = { ...session, request: 9 };

const description: messages.AgentDescription = {
  ...{ host: 'alpha', version: '0.1.0', protocol: 1, machineId: 'm', cores: 2 },
  ...{ memoryBytes: '9007199254740993', pid: 4_294_967_295, addressMissing: '192.0.2.1' },
  ...{ memoryAvailableBytes: '4096', slicesFreeBytes: '8192' },
  ...{ cpuGroups: [{ numaNode: 1, capacity: 1024, cores: ['0,2', '1'] }], cpuQuota: 1.5 },
  ...{ metricsUrls: ['http://127.0.0.1:7401/metrics'], metricsFault: '' },
};

const node: messages.NodeStatus = {
  ...{ node: 1, host: 'alpha', firstLayer: 4, lastLayer: 7, state: 'loaded', reason: 'r', pid: 8 },
  ...{ residentBytes: maximum, cpuSeconds: 0.25, decodes: '5', prefilledRows: '6', decodedRows: '7' },
  ...{ paddingRows: '8', computeSeconds: 1.5, kvCellsUsed: 12, kvCellsKept: 9, threads: 4, cpus: '0-3' },
};

const link: messages.LinkStatus = {
  ...{ source: 1, destination: 2, peer: 'beta', frames: '3', bytes: '4', bytesAcknowledged: '5' },
  ...{ ackP50Ms: 0.5, ackP99Ms: 1.25, unacknowledged: 2 },
};

const statusReply: messages.StatusReply = {
  agent: description,
  rings: [
    {
      ...{ ring: 'story', phase: 'ready', reason: 'r', suspendedMs: maximum, loadId: 'l', planDigest: 'd' },
      ...{ nodes: [node], links: [link] },
      head: {
        ...{ sessionsOpen: 1, sessionsLimit: 2, prefixesKept: 6, prefixesLimit: 7, rowsKept: 8 },
        ...{ requestsRunning: 3, requestsFinished: '4', tokensEmitted: '5' },
      },
    },
    {
      ...{ ring: 'other', phase: 'claimed', reason: '', suspendedMs: '0', loadId: '', planDigest: '' },
      ...{ nodes: [], links: [], head: null },
    },
  ],
  journal: { state: 'failed', records: '1', bytes: '2', reason: 'r' },
  cpuSeconds: 3.5,
  residentBytes: '6',
  samples: {
    atSeconds: 7.25,
    samples: [{ name: 'p4_link_up', labels: { ring: 'story', source: '1' }, value: 0.5, count: maximum }],
  },
};

const settlement: messages.Settlement = {
  ...{ state: 'settled', reason: 'stop', emitted: 5, session: 3 },
  stages: [
    {
      ...{ node: 0, host: 'alpha', firstLayer: 0, lastLayer: 3, prefilled: 7, decoded: 4, reused: 1 },
      ...{ recomputed: 2, padding: 6, computeMs: 12.5 },
    },
  ],
};

const submit: messages.SubmitRequest = {
  ...{ ...session, parseSpecial: true, sampling: '{}', maxTokens: 64, stop: ['a', 'b'], ignoreEnd: true },
  ...{ prompt: 'text', text: 'Once upon a time' },
};

const sliceMemory: slices.SliceMemoryMessage = {
  ...{ weightBytes: maximum, headerBytes: '5', tokens: 6, layers: 7, keyElements: 8, valueElements: 9 },
  ...{ hiddenWidth: 10, innerWidth: 11, vocabularySize: 12, keepsOrder: true, isHead: true, isTail: true },
  tensors: 13,
};

/** One sample of every request and reply, with no field at its default. */
const samples: {
  readonly [Service in ServiceName]: {
    readonly [Name in MethodName<Service>]: {
      readonly request: RequestOf<Service, Name>;
      readonly reply: ReplyOf<Service, Name>;
    };
  };
} = {
  Agent: {
    Describe: { request: {}, reply: description },
    Load: {
      request: {
        ...{ ...ring, loadId: 'l', planDigest: 'd', plan: '{}' },
        stages: [{ sliceId: 's', sliceBytes: '7', address: '::1', port: 7400 }],
      },
      reply: { node: 1, phase: 'loading', fraction: 0.5, pid: 3 },
    },
    Link: { request: ring, reply: { links: [{ source: 1, destination: 2, address: 'a', peer: 'beta' }] } },
    Probe: { request: ring, reply: { roundMs: 2.5 } },
    Unload: { request: ring, reply: { stages: 4 } },
    Status: { request: { ring: 'story', samples: true }, reply: statusReply },
    ListSlices: {
      request: {},
      reply: {
        slices: [{ sliceId: 's', bytes: maximum, rings: ['story'], lastUsedMs: '7' }],
        unfinishedBytes: '9',
      },
    },
    SliceState: {
      request: { sliceIds: ['s', 't'] },
      reply: { slices: [{ sliceId: 's', isPresent: true, bytes: '5', isReceiving: true }] },
    },
    ReceiveSlice: {
      request: { part: 'begin', begin: { sliceId: 's', bytes: maximum, sha256: 'h', offset: '3' } },
      reply: { sliceId: 's', bytes: maximum },
    },
    RemoveSlices: { request: { sliceIds: ['s'] }, reply: { removed: ['s'], kept: ['t'] } },
    DescribeModel: {
      request: { path: '/m', slices: [{ first: 1, last: 2 }] },
      reply: {
        news: 'model',
        model: {
          ...{ modelHash: 'h', architecture: 'llama', layers: 8, contextTokens: 64, bytes: '9', cutsAfter: [0, 1] },
          slices: [{ fault: 'f', sliceId: 's', bytes: '7', memory: sliceMemory }],
        },
      },
    },
    CutSlice: {
      request: { path: '/m', layers: { first: 1, last: 2 }, sliceId: 's' },
      reply: { news: 'progress', progress: { doneBytes: '1', totalBytes: '2' } },
    },
  },
  Outer: {
    OpenSession: {
      request: { ...ring, lingerMs: 500, session: 3, cacheKey: 'k', waits: true },
      reply: { session: 1, contextTokens: 2048, ahead: 3 },
    },
    Submit: { request: submit, reply: { request: 1, promptTokens: 5 } },
    Gather: {
      request: { ...request, from: 17 },
      reply: { event: 'token', token: { index: 1, token: 2, text: 'ä' } },
    },
    Cancel: { request, reply: { wasRunning: true } },
    CloseSession: { request: session, reply: {} },
    Settle: { request, reply: settlement },
  },
};

function roundTrip<Service extends ServiceName>(service: Service, name: MethodName<Service>): void {
  const definition = callDefinition(service, name);
  const sample = samples[service][name];
  assert.equal(definition.path, `/p4.v1.${service}/${name}`);
  const sent = definition.requestDeserialize(definition.requestSerialize(sample.request));
  assert.deepEqual(plain(sent), plain(sample.request), `request of ${name}`);
  const replied = definition.responseDeserialize(definition.responseSerialize(sample.reply));
  assert.deepEqual(plain(replied), plain(sample.reply), `reply of ${name}`);
}

/** proto-loader's objects have no prototype; the values are what counts. */
const plain = (message: unknown): unknown => JSON.parse(JSON.stringify(message));

suite('messages.ts', () => {
  test('has every field of every message as proto-loader decodes it', () => {
    let calls = 0;
    for (const service of ['Agent', 'Outer'] as const)
      for (const name of Object.keys(methodKinds[service])) {
        // The keys of the table are the names of its type.
        roundTrip<ServiceName>(service, name as MethodName<ServiceName>);
        calls++;
      }
    assert.equal(calls, 18);
  });

  test('has the other choices of a choice', () => {
    const tokens: messages.SubmitRequest = {
      ...{ ...session, parseSpecial: true, sampling: '{}', maxTokens: 64, stop: ['a'], ignoreEnd: true },
      ...{ prompt: 'tokens', tokens: { ids: [1, 4_294_967_295] } },
    };
    const definition = callDefinition('Outer', 'Submit');
    assert.deepEqual(plain(definition.requestDeserialize(definition.requestSerialize(tokens))), tokens);
    const chunk: slices.SliceChunk = { part: 'data', data: Buffer.from([0, 255, 7]) };
    const receive = callDefinition('Agent', 'ReceiveSlice');
    assert.deepEqual(plain(receive.requestDeserialize(receive.requestSerialize(chunk))), plain(chunk));
    const gather = callDefinition('Outer', 'Gather');
    const end: messages.GatherEvent = {
      event: 'end',
      end: { reason: 'stop', text: 't', promptTokens: 1, completionTokens: 2, detail: 'd' },
    };
    const paused: messages.GatherEvent = {
      event: 'paused',
      paused: { code: 'STAGE_LOST', text: 't', host: 'beta', node: '2', remainingMs: 4_294_967_295 },
    };
    const resumed: messages.GatherEvent = { event: 'resumed', resumed: {} };
    for (const event of [end, paused, resumed])
      assert.deepEqual(plain(gather.responseDeserialize(gather.responseSerialize(event))), event);
  });

  test('tells what a message without fields becomes', () => {
    const empty = Buffer.alloc(0);
    const submitted = callDefinition('Outer', 'Submit').requestDeserialize(empty);
    assert.equal(submitted.prompt, undefined);
    assert.deepEqual([submitted.ring, submitted.generation, submitted.stop], ['', '0', []]);
    const status = callDefinition('Agent', 'Status').responseDeserialize(empty);
    assert.deepEqual([status.agent, status.journal, status.rings, status.residentBytes], [null, null, [], '0']);
    assert.equal(status.samples, null);
  });
});
