/** Records of one load as an agent would write them, for the journal's tests. */
import {
  loadId,
  nodeIndex,
  requestId,
  ringName,
  sessionId,
  slotIndex,
  tokenId,
  type LoadId,
} from '../../protocol/ids.ts';
import { defaultSampling } from '../../protocol/sampling.ts';
import type {
  HopTrail,
  JournalRecord,
  LoadAdmitted,
  RequestAdmitted,
  RequestEnded,
  RequestSettled,
  TokenEmitted,
} from '../records.ts';

export const sampleLoad = loadId('0123456789abcdef0123456789abcdef');

export function loadAdmitted(load: LoadId = sampleLoad): LoadAdmitted {
  return {
    kind: 'load-admitted',
    ring: ringName('stories'),
    load,
    generationDigest: { salt: 'ab'.repeat(16), hash: 'cd'.repeat(32) },
    planDigest: 'ef'.repeat(32),
    assignment: '{"nodes":[{"index":0,"layers":[0,3]}]}',
  };
}

export function requestAdmitted(request = 1, fields: Partial<RequestAdmitted> = {}): RequestAdmitted {
  return {
    kind: 'request-admitted',
    load: sampleLoad,
    session: sessionId(1),
    request: requestId(request),
    prompt: [1, 450, 29_871].map(tokenId),
    sampling: defaultSampling,
    stopStrings: [],
    maxTokens: 1000,
    ignoreEnd: false,
    ...fields,
  };
}

export function tokenEmitted(index: number, request = 1): TokenEmitted {
  return {
    kind: 'token-emitted',
    load: sampleLoad,
    session: sessionId(1),
    request: requestId(request),
    index,
    token: tokenId((index * 7919) % 32_000),
    alone: index % 2 === 1,
  };
}

export function requestEnded(request = 1, fields: Partial<RequestEnded> = {}): RequestEnded {
  return {
    kind: 'request-ended',
    load: sampleLoad,
    session: sessionId(1),
    request: requestId(request),
    reason: 'length',
    detail: '',
    promptTokens: 3,
    reused: 0,
    heldTokens: 5,
    heldRows: 4,
    alone: false,
    ...fields,
  };
}

export function requestSettled(request = 1, fields: Partial<RequestSettled> = {}): RequestSettled {
  const receipt = {
    node: nodeIndex(0),
    prefilled: 3,
    decoded: 1,
    reused: 0,
    recomputed: 0,
    padding: 0,
    computeUs: 1234,
  };
  return {
    kind: 'request-settled',
    load: sampleLoad,
    session: sessionId(1),
    request: requestId(request),
    receipts: [receipt],
    emitted: 2,
    ...fields,
  };
}

/** Milliseconds since 1970 at which request `request` of the crash tests runs: half a day after the one before it. */
export const clockOf = (request: number): number => 1_700_000_000_000 + request * 43_200_000;

/** A session with one request, from its opening to its closing. */
export function sessionRecords(request: number): readonly JournalRecord[] {
  const of = { load: sampleLoad, session: sessionId(request) };
  return [
    { kind: 'session-opened', ...of, slot: slotIndex(0) },
    requestAdmitted(request, of),
    ...Array.from({ length: 20 }, (_, index) => ({ ...tokenEmitted(index, request), ...of })),
    requestEnded(request, of),
    requestSettled(request, { ...of, emitted: 20 }),
    { kind: 'session-closed', ...of },
  ];
}

export function hop(frame: bigint): HopTrail {
  return { load: sampleLoad, from: nodeIndex(0), to: nodeIndex(1), frame, rows: 1, bytes: 256, crc32c: 0xfedc_ba98 };
}

/** One record of each kind, in an order in which they happen. */
export function oneOfEach(): readonly JournalRecord[] {
  const load = sampleLoad;
  const session = sessionId(1);
  return [
    loadAdmitted(),
    { kind: 'node-changed', load, node: nodeIndex(0), to: 'lost', reason: 'STAGE_EXITED: it\'s "gone"\n\u0000' },
    { kind: 'ring-ready', load },
    { kind: 'ring-suspended', load, reason: 'LINK_LOST: host-b' },
    { kind: 'session-opened', load, session, slot: slotIndex(2) },
    requestAdmitted(1, {
      sampling: {
        ...defaultSampling,
        logitBias: [
          [tokenId(7), -Infinity],
          [tokenId(8), 0.1],
        ],
        grammar: 'root ::= "\\"$number\\":" | {"$number":"1"}',
      },
      stopStrings: ["'; DROP TABLE records; --", '\ud800', '🦙', '{"$bigint":"1"}'],
    }),
    tokenEmitted(0),
    tokenEmitted(1),
    requestEnded(),
    requestSettled(),
    { kind: 'session-closed', load, session },
    { kind: 'load-told', load, deadlineSeconds: 20, addresses: [{ address: 'fd00::9', port: 7500 }] },
    { kind: 'load-ended', load, by: 'unload' },
  ];
}
