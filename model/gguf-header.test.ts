import assert from 'node:assert/strict';
import { copyFile, mkdtemp, open, readFile, rm, truncate, writeFile, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { P4Error, type ErrorCode } from '../protocol/errors.ts';
import { ggmlTypeNamed } from './ggml-type.ts';
import { readHeader, type GgufHeader } from './gguf-header.ts';
import { flags, text, u32, type GgufElementType, type GgufMetadata, type GgufValue } from './gguf-value.ts';
import { GgufWriter, layOut, type TensorShape } from './gguf-writer.ts';
import { copyModel, testModel } from './model-copy.ts';
import { openModel } from './model-file.ts';
import { layerOf } from './model-soundness.ts';
import { randomBits } from './random-weights.ts';
import { writeRandomModel } from './random-model.ts';

const storiesModel = join(import.meta.dirname, '..', '..', 'plans', 'stories.gguf');
const tiny = { layers: 1, hiddenWidth: 64, heads: 2, kvHeads: 2, feedForwardWidth: 64, vocabularySize: 32 };

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'p4-gguf-header-'));
});
after(async () => {
  await rm(folder, { recursive: true });
});

async function headerOf(path: string): Promise<GgufHeader> {
  const handle = await open(path, 'r');
  try {
    return await readHeader(handle, path, (await handle.stat()).size);
  } finally {
    await handle.close();
  }
}

async function headerOfBytes(bytes: Uint8Array): Promise<GgufHeader> {
  const path = join(folder, 'bytes.gguf');
  await writeFile(path, bytes);
  return headerOf(path);
}

const isCode =
  (code: ErrorCode, found?: RegExp) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof P4Error, String(error));
    assert.equal(error.code, code, error.message);
    if (found !== undefined) assert.match(error.message, found);
    return true;
  };

function bytesOf(metadata: GgufMetadata, tensors: readonly TensorShape[] = [], alignment = 32): Buffer {
  const layout = layOut(metadata, tensors, alignment);
  return Buffer.concat([layout.header, Buffer.alloc(layout.bytes - layout.header.length)]);
}

describe('a header', () => {
  it('gives back metadata of every type byte for byte', async () => {
    const odd: readonly (readonly [GgufElementType, string])[] = [
      ['u8', 'ff'],
      ['i8', '80'],
      ['u16', 'feff'],
      ['i16', '0080'],
      ['u32', 'ffffffff'],
      ['i32', '00000080'],
      ['f32', '0100c07f'],
      ['bool', '02'],
      ['string', '0300000000000000ff00fe'],
      ['u64', 'ffffffffffffffff'],
      ['i64', '0000000000000080'],
      ['f64', '010000000000f8ff'],
    ];
    const metadata = new Map<string, GgufValue>();
    for (const [type, hex] of odd) {
      const bytes = Buffer.from(hex, 'hex');
      metadata.set(`single.${type}`, { kind: 'single', type, bytes });
      metadata.set(`array.${type}`, { kind: 'array', type, length: 3, bytes: Buffer.concat([bytes, bytes, bytes]) });
      metadata.set(`empty.${type}`, { kind: 'array', type, length: 0, bytes: Buffer.alloc(0) });
    }
    const header = await headerOfBytes(bytesOf(metadata));
    assert.deepEqual([...header.metadata], [...metadata]);
  });

  it('places every tensor of the stories model within the file', async () => {
    const header = await headerOf(storiesModel);
    const bytes = await readFile(storiesModel);
    assert.equal(header.tensors.length, 75);
    assert.equal(header.metadata.size, 31);
    const last = header.tensors.at(-1);
    assert.equal(last?.name, 'output.weight');
    assert.deepEqual(last.shape, [192, 1024]);
    assert.equal(last.offset + last.bytes, bytes.length);
  });

  it('reads version 2 like version 3', async () => {
    const bytes = bytesOf(new Map([['a', u32(7)]]));
    bytes.writeUInt32LE(2, 4);
    assert.equal((await headerOfBytes(bytes)).version, 2);
  });

  it('reads a vocabulary of 256 Ki tokens in a fraction of a second', async () => {
    const length = 256 * 1024;
    const bytes = Buffer.concat(Array.from({ length }, (_, token) => text(`token ${token}`).bytes));
    const vocabulary: GgufValue = { kind: 'array', type: 'string', length, bytes };
    const whole = bytesOf(new Map([['tokenizer.ggml.tokens', vocabulary]]));
    const begin = process.cpuUsage();
    const header = await headerOfBytes(whole);
    assert.deepEqual(header.metadata.get('tokenizer.ggml.tokens')?.bytes, bytes);
    assert.ok(process.cpuUsage(begin).user < 500_000);
  });
});

describe('a file that ends too early', () => {
  it('is refused at every byte of its header', async () => {
    const path = join(folder, 'tiny.gguf');
    await writeRandomModel(path, { ...tiny, contextTokens: 64, weightType: 'F16', seed: 1 });
    const { weightsOffset } = await headerOf(path);
    for (let bytes = weightsOffset; bytes >= 0; bytes -= 1) {
      await truncate(path, bytes);
      await assert.rejects(
        headerOf(path),
        isCode('GGUF_TRUNCATED', /file: .*\n.*offset: \d+\n.*expected: /),
        `at ${bytes}`,
      );
    }
  });

  it('is refused at ten places of its weights, with the tensor that is cut', async () => {
    const path = join(folder, 'truncated.gguf');
    await copyFile(storiesModel, path);
    const { weightsOffset, tensors } = await headerOf(path);
    const size = (await readFile(path)).length;
    for (let place = 9; place >= 0; place -= 1) {
      const bytes = weightsOffset + Math.floor(((size - 1 - weightsOffset) * place) / 9);
      await truncate(path, bytes);
      const cut = tensors.find((tensor) => tensor.offset + tensor.bytes > bytes);
      await assert.rejects(headerOf(path), isCode('GGUF_TRUNCATED', new RegExp(`tensor ${cut?.name ?? '?'}`)));
    }
  });
});

describe('a file that is something else', () => {
  it('is told apart: no GGUF, big-endian, another version', async () => {
    const good = bytesOf(new Map([['a', u32(1)]]));
    const withVersion = (bytes: readonly number[]): Buffer =>
      Buffer.concat([good.subarray(0, 4), Buffer.from(bytes), good.subarray(8)]);
    await assert.rejects(headerOfBytes(Buffer.from('PK\u0003\u0004 some archive')), isCode('GGUF_NOT_GGUF', /PK/));
    await assert.rejects(headerOfBytes(Buffer.from('GG')), isCode('GGUF_TRUNCATED'));
    await assert.rejects(headerOfBytes(Buffer.from('GX')), isCode('GGUF_NOT_GGUF'));
    await assert.rejects(headerOfBytes(withVersion([0, 0, 0, 3])), isCode('GGUF_BIG_ENDIAN'));
    await assert.rejects(headerOfBytes(withVersion([0, 0, 0, 2])), isCode('GGUF_BIG_ENDIAN'));
    for (const version of [0, 1, 4]) {
      await assert.rejects(headerOfBytes(withVersion([version, 0, 0, 0])), isCode('GGUF_VERSION', /2 or 3/));
    }
  });
});

describe('a header that contradicts itself', () => {
  const f32 = ggmlTypeNamed('F32');
  const tensor = (name: string, shape: readonly number[] = [8]): TensorShape => ({ name, type: f32, shape });

  async function rejects(bytes: Buffer, found: RegExp): Promise<void> {
    await assert.rejects(headerOfBytes(bytes), isCode('GGUF_INVALID', found));
  }

  it('is refused for a name twice', async () => {
    await rejects(bytesOf(new Map(), [tensor('one'), tensor('one')]), /tensor one twice/);
    const doubled = bytesOf(
      new Map([
        ['ab', u32(1)],
        ['cd', u32(2)],
      ]),
    );
    doubled.write('ab', doubled.indexOf('cd'));
    await rejects(doubled, /key ab twice/);
  });

  it('is refused for a bad name', async () => {
    const bytes = bytesOf(new Map([['ab', u32(1)]]));
    bytes[bytes.indexOf('ab')] = 0xff;
    await rejects(bytes, /UTF-8/);
    await rejects(bytesOf(new Map(), [tensor('')]), /a name in UTF-8/);
    await rejects(bytesOf(new Map(), [tensor('n'.repeat(64))]), /64 bytes in the name/);
  });

  it('is refused for a bad shape, type, place or alignment', async () => {
    await rejects(bytesOf(new Map(), [tensor('one', [])]), /one with 0 dimensions/);
    await rejects(bytesOf(new Map(), [tensor('one', [1, 1, 1, 1, 1])]), /one with 5 dimensions/);
    const bytes = bytesOf(new Map(), [tensor('one', [40]), tensor('two', [8])]);
    const shapeAt = bytes.indexOf('one') + 7;
    const changed = (change: (copy: Buffer) => void): Buffer => {
      const copy = Buffer.from(bytes);
      change(copy);
      return copy;
    };
    await rejects(
      changed((copy) => copy.writeBigUInt64LE(0n, shapeAt)),
      /0 elements/,
    );
    await rejects(
      changed((copy) => copy.writeBigUInt64LE(2n ** 63n, shapeAt)),
      /elements in dimension 0/,
    );
    await rejects(
      changed((copy) => copy.writeUInt32LE(4, shapeAt + 8)),
      /type 4/,
    );
    await rejects(
      changed((copy) => copy.writeUInt32LE(8, shapeAt + 8)),
      /a multiple of 32/,
    );
    await rejects(
      changed((copy) => copy.writeBigUInt64LE(32n, shapeAt + 12)),
      /one at 32 of the weights/,
    );
    for (const alignment of [0, 3, 2 ** 21]) {
      await rejects(bytesOf(new Map([['general.alignment', u32(alignment)]])), /power of two/);
    }
    await rejects(bytesOf(new Map([['general.alignment', text('32')]])), /general.alignment/);
  });

  it('is refused for counts and lengths past every bound, without reading so much', async () => {
    const bytes = bytesOf(new Map([['ab', text('value')]]));
    for (const offset of [8, 16, bytes.indexOf('ab') - 8, bytes.indexOf('value') - 8]) {
      const changed = Buffer.from(bytes);
      changed.writeBigUInt64LE(2n ** 60n, offset);
      await rejects(changed, /at most/);
    }
  });

  it('never ends in anything but a P4Error, whatever bits are flipped', async () => {
    const path = join(folder, 'flipped.gguf');
    await writeTwoLayers(path);
    const original = await readFile(path);
    const { weightsOffset } = await headerOf(path);
    const random = randomBits(20_260_101, 0);
    const handle = await open(path, 'r+');
    const outcomes = { sound: 0, refused: 0 };
    const residentBefore = process.resourceUsage().maxRSS;
    try {
      for (let round = 0; round < 2000; round += 1) {
        const places = Array.from({ length: 1 + (random() % 4) }, () => random() % weightsOffset);
        for (const place of places) await writeByte(handle, place, (original[place] ?? 0) ^ (1 << (random() % 8)));
        const { outcome, cpuMicroseconds } = await measuredOutcomeOf(path, round);
        outcomes[outcome] += 1;
        // What the file costs, it costs again; a collection of garbage that fell into it, it does not.
        const costs =
          cpuMicroseconds < 100_000 ? cpuMicroseconds : (await measuredOutcomeOf(path, round)).cpuMicroseconds;
        assert.ok(costs < 100_000, `round ${round} took ${costs} microseconds`);
        for (const place of places) await writeByte(handle, place, original[place] ?? 0);
      }
    } finally {
      await handle.close();
    }
    assert.ok(outcomes.refused > 500 && outcomes.sound > 50, JSON.stringify(outcomes));
    assert.ok(process.resourceUsage().maxRSS - residentBefore < 200 * 1024);
  });
});

/** A model with metadata of every kind and a small header: gemma3's first two layers. */
async function writeTwoLayers(path: string): Promise<void> {
  const model = await openModel(testModel('gemma3-dense'));
  const lists = [...model.metadata].filter(([, value]) => value.kind === 'array' && value.length > 128);
  await copyModel(model, path, {
    metadata: {
      ...Object.fromEntries(lists.map(([key]) => [key, null])),
      'gemma3.block_count': u32(2),
      'gemma3.attention.sliding_window_pattern': flags([true, false]),
    },
    withoutTensors: model.tensors.map(({ name }) => name).filter((name) => (layerOf(name) ?? 0) >= 2),
  });
}

async function outcomeOf(path: string, round: number): Promise<'sound' | 'refused'> {
  try {
    await openModel(path);
    return 'sound';
  } catch (error) {
    assert.ok(error instanceof P4Error, `round ${round}: ${String(error)}`);
    return 'refused';
  }
}

async function measuredOutcomeOf(
  path: string,
  round: number,
): Promise<{ outcome: 'sound' | 'refused'; cpuMicroseconds: number }> {
  const begin = process.cpuUsage();
  const outcome = await outcomeOf(path, round);
  const { user, system } = process.cpuUsage(begin);
  return { outcome, cpuMicroseconds: user + system };
}

const writeByte = async (handle: FileHandle, offset: number, byte: number): Promise<void> => {
  await handle.write(Buffer.from([byte]), 0, 1, offset);
};

describe('a written file', () => {
  it('has the size and the hash that were announced', async () => {
    const path = join(folder, 'written.gguf');
    const tensors = [
      { name: 'one', type: ggmlTypeNamed('F32'), shape: [3] },
      { name: 'two', type: ggmlTypeNamed('Q8_0'), shape: [32, 2] },
    ];
    const layout = layOut(new Map([['general.alignment', u32(64)]]), tensors, 64);
    const handle = await open(path, 'w');
    const writer = new GgufWriter(handle, layout);
    await writer.writeHeader();
    for (const bytes of [Buffer.alloc(12, 1), Buffer.alloc(68, 2)]) {
      await writer.write(bytes);
      await writer.endTensor();
    }
    writer.finish();
    await handle.close();
    const bytes = await readFile(path);
    const header = await headerOf(path);
    assert.equal(bytes.length, layout.bytes);
    assert.deepEqual(
      header.tensors.map(({ offset }) => offset % 64),
      [0, 0],
    );
    const [one, two] = header.tensors;
    assert.ok(bytes.subarray(one?.offset, (one?.offset ?? 0) + 12).equals(Buffer.alloc(12, 1)));
    assert.ok(bytes.subarray(two?.offset, (two?.offset ?? 0) + 68).equals(Buffer.alloc(68, 2)));
  });
});
