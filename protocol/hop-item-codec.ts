/** Hop items as bytes: `u8 kind, u8 flags, u16 0, u32 bytes of the body`, then the body, little-endian. */
import { assert } from './assert.ts';
import { ByteReader, ByteWriter } from './byte-stream.ts';
import { P4Error } from './errors.ts';
import { failedWhys, rowsPhases, type HopItem, type Receipt } from './hop-items.ts';
import {
  keptIndex,
  nodeIndex,
  requestId,
  sessionId,
  slotIndex,
  tokenId,
  type Generation,
  type TokenId,
} from './ids.ts';
import { parseSampling } from './sampling-check.ts';

type Kind = HopItem['kind'];
type ItemOf<Name extends Kind> = Extract<HopItem, { kind: Name }>;

interface ItemCodec<Item extends HopItem> {
  readonly number: number;
  write(writer: ByteWriter, item: Item): void;
  read(reader: ByteReader): Item;
}

const codecs: { readonly [Name in Kind]: ItemCodec<ItemOf<Name>> } = {
  open: {
    number: 1,
    write: (to, item) => {
      to.u32(item.session).u32(item.slot);
    },
    read: (from) => ({ kind: 'open', session: sessionId(from.u32()), slot: slotIndex(from.u32()) }),
  },
  begin: {
    number: 2,
    write: (to, item) => {
      to.u32(item.session).u32(item.request).u32(item.slot).u32(item.reusedRows);
      to.u32(item.ran.prefilled).u32(item.ran.decoded);
      to.text(JSON.stringify(item.sampling));
      writeTokens(to, item.history);
      writeTokens(to, item.drawn);
    },
    read: (from) => ({
      kind: 'begin',
      session: sessionId(from.u32()),
      request: requestId(from.u32()),
      slot: slotIndex(from.u32()),
      reusedRows: from.u32(),
      ran: { prefilled: from.u32(), decoded: from.u32() },
      sampling: parseSampling(from.json()),
      history: from.list(4, () => tokenId(from.u32())),
      drawn: from.list(4, () => tokenId(from.u32())),
    }),
  },
  rows: {
    number: 3,
    write: (to, item) => {
      to.u32(item.session).u32(item.request).u32(item.slot).u32(item.step).u32(item.firstPosition).u32(item.rowCount);
      to.u32(rowsPhases.indexOf(item.phase) | (item.samples ? 4 : 0) | (item.alone ? 8 : 0));
    },
    read: (from) => {
      const fields = {
        kind: 'rows',
        session: sessionId(from.u32()),
        request: requestId(from.u32()),
        slot: slotIndex(from.u32()),
        step: from.u32(),
        firstPosition: from.u32(),
        rowCount: from.u32(),
      } as const;
      const flags = from.u32();
      const phase = oneOf(rowsPhases, flags & 3);
      return { ...fields, phase, samples: (flags & 4) !== 0, alone: (flags & 8) !== 0 };
    },
  },
  truncate: {
    number: 4,
    write: (to, item) => {
      to.u32(item.session).u32(item.slot).u32(item.length);
    },
    read: (from) => ({
      kind: 'truncate',
      session: sessionId(from.u32()),
      slot: slotIndex(from.u32()),
      length: from.u32(),
    }),
  },
  end: {
    number: 5,
    write: (to, item) => {
      const { prefilled, decoded, reused } = item.ran ?? { prefilled: 0, decoded: 0, reused: 0 };
      to.u32(item.session).u32(item.request);
      to.u32(item.ran === null ? 0 : 1)
        .u32(prefilled)
        .u32(decoded)
        .u32(reused);
      to.u32(item.receipts.length);
      for (const receipt of item.receipts) writeReceipt(to, receipt);
    },
    read: (from) => {
      const fields = { kind: 'end', session: sessionId(from.u32()), request: requestId(from.u32()) } as const;
      const isKnown = from.u32() === 0;
      const ran = { prefilled: from.u32(), decoded: from.u32(), reused: from.u32() };
      return { ...fields, ran: isKnown ? null : ran, receipts: from.list(36, () => readReceipt(from)) };
    },
  },
  close: {
    number: 6,
    write: (to, item) => {
      to.u32(item.session).u32(item.slot);
    },
    read: (from) => ({ kind: 'close', session: sessionId(from.u32()), slot: slotIndex(from.u32()) }),
  },
  token: {
    number: 7,
    write: (to, item) => {
      to.u32(item.session).u32(item.request).u32(item.step).u32(item.token);
    },
    read: (from) => ({
      kind: 'token',
      session: sessionId(from.u32()),
      request: requestId(from.u32()),
      step: from.u32(),
      token: tokenId(from.u32()),
    }),
  },
  failed: {
    number: 8,
    write: (to, item) => {
      to.u32(item.session).u32(item.request).u32(item.node).u32(failedWhys.indexOf(item.why));
    },
    read: (from) => ({
      kind: 'failed',
      session: sessionId(from.u32()),
      request: requestId(from.u32()),
      node: nodeIndex(from.u32()),
      why: oneOf(failedWhys, from.u32()),
    }),
  },
  probe: {
    number: 9,
    write: (to, item) => {
      to.u32(item.nonce);
    },
    read: (from) => ({ kind: 'probe', nonce: from.u32() }),
  },
  keep: {
    number: 10,
    write: (to, item) => {
      to.u32(item.session).u32(item.slot).u32(item.kept).u32(item.length);
    },
    read: (from) => ({
      kind: 'keep',
      session: sessionId(from.u32()),
      slot: slotIndex(from.u32()),
      kept: keptIndex(from.u32()),
      length: from.u32(),
    }),
  },
  adopt: {
    number: 11,
    write: (to, item) => {
      to.u32(item.session).u32(item.slot).u32(item.kept).u32(item.length);
      to.u32(item.takes ? 1 : 0);
    },
    read: (from) => ({
      kind: 'adopt',
      session: sessionId(from.u32()),
      slot: slotIndex(from.u32()),
      kept: keptIndex(from.u32()),
      length: from.u32(),
      takes: oneOf([false, true], from.u32()),
    }),
  },
  drop: {
    number: 12,
    write: (to, item) => {
      to.u32(item.kept);
    },
    read: (from) => ({ kind: 'drop', kept: keptIndex(from.u32()) }),
  },
};

const codecOfNumber = new Map<number, ItemCodec<HopItem>>(
  Object.values(codecs).map((codec) => [codec.number, codec as ItemCodec<HopItem>]),
);
assert(codecOfNumber.size === Object.keys(codecs).length, 'item numbers differ');

export function encodeItems(items: readonly HopItem[]): Uint8Array {
  const writer = new ByteWriter();
  for (const item of items) {
    const codec = codecs[item.kind] as ItemCodec<HopItem>;
    writer.u32(codec.number);
    const lengthAt = writer.length;
    writer.u32(0);
    codec.write(writer, item);
    writer.patchU32(lengthAt, writer.length - lengthAt - 4);
  }
  return writer.bytes();
}

/**
 * Reads the items that stand in `view` from `start` to its end.
 * @throws FRAME_INVALID on an unknown kind, a wrong length, or fewer or more items than `count`
 */
export function decodeItems(view: DataView, start: number, count: number): HopItem[] {
  const reader = new ByteReader(view, start);
  const items: HopItem[] = [];
  for (let index = 0; index < count; index++) {
    const codec = codecOfNumber.get(reader.u32());
    if (codec === undefined) throw new P4Error('FRAME_INVALID', { field: 'item kind', found: index });
    const end = reader.u32() + reader.offset;
    items.push(codec.read(reader));
    if (reader.offset !== end) throw new P4Error('FRAME_INVALID', { field: 'item length', found: index });
  }
  if (reader.remaining !== 0) throw new P4Error('FRAME_INVALID', { field: 'items', found: reader.remaining });
  return items;
}

function writeTokens(to: ByteWriter, tokens: readonly TokenId[]): void {
  to.u32(tokens.length);
  for (const token of tokens) to.u32(token);
}

function writeReceipt(to: ByteWriter, receipt: Receipt): void {
  to.u32(receipt.node).u64(receipt.sourceGeneration).u32(receipt.prefilled).u32(receipt.decoded);
  to.u32(receipt.reused).u32(receipt.recomputed).u32(receipt.padding).u32(receipt.computeUs);
}

function readReceipt(from: ByteReader): Receipt {
  return {
    node: nodeIndex(from.u32()),
    sourceGeneration: from.u64() as Generation,
    prefilled: from.u32(),
    decoded: from.u32(),
    reused: from.u32(),
    recomputed: from.u32(),
    padding: from.u32(),
    computeUs: from.u32(),
  };
}

function oneOf<Value>(values: readonly Value[], index: number): Value {
  const value = values[index];
  if (value === undefined) throw new P4Error('FRAME_INVALID', { field: 'enumeration', found: index });
  return value;
}
