/**
 * Normally distributed weights from a seed, the same on every machine, fast enough for hundreds of millions.
 *
 * A weight is a 16-bit draw looked up in a table of the normal distribution's quantiles: the draws come from sfc32
 * (Chris Doty-Humphrey's PractRand), the quantiles from Peter Acklam's approximation of the inverse of the cumulative
 * distribution (relative error below 1.2e-9).
 */
import { assert } from '../protocol/assert.ts';

export type WeightType = 'F32' | 'F16' | 'Q8_0' | 'Q4_0';

/** Gives the next 32 random bits. */
export type RandomBits = () => number;

/** `seed` and `stream` are unsigned 32-bit; every stream of a seed is a sequence of its own. */
export function randomBits(seed: number, stream: number): RandomBits {
  let [a, b, c, counter] = [0x9e3779b9 ^ seed, 0x243f6a88 ^ stream, 0xb7e15162, 1];
  const next = (): number => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    return sum >>> 0;
  };
  for (let round = 0; round < 15; round += 1) next();
  return next;
}

/** Elements of one block of Q8_0, and its bytes: a float16 scale and 32 signed bytes. */
const q8Elements = 32;
const q8Bytes = 34;
/** Largest quantile of a 16-bit draw, in standard deviations; Q8_0 has 127 steps up to it. */
const greatestQuantile = 4.33;

/** Bytes of one block of Q4_0, of 32 elements as well: a float16 scale and 32 steps of four bits, of which 8 is zero. */
const q4Bytes = 18;
/** Where its steps end, in standard deviations: some steps are better spent than on the rarest values. */
const q4Reach = 2.7;

/**
 * A function that fills a buffer with weights of this type and standard deviation. The buffer holds a whole number of
 * pairs of elements, and of Q8_0 and Q4_0 a whole number of blocks.
 */
export function weightFiller(type: WeightType, deviation: number): (bytes: Buffer, random: RandomBits) => void {
  switch (type) {
    case 'F32':
      return filler32(deviation);
    case 'F16':
      return filler16(deviation);
    case 'Q8_0':
      return fillerQ8(deviation);
    case 'Q4_0':
      return fillerQ4(deviation);
  }
}

function filler32(deviation: number): (bytes: Buffer, random: RandomBits) => void {
  const table = Float32Array.from(quantiles(), (quantile) => quantile * deviation);
  return (bytes, random) => {
    const words = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
    fillPairs(words, table, random);
  };
}

function filler16(deviation: number): (bytes: Buffer, random: RandomBits) => void {
  const table = Uint16Array.from(quantiles(), (quantile) => float16(quantile * deviation));
  return (bytes, random) => {
    fillPairs(new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2), table, random);
  };
}

function fillerQ8(deviation: number): (bytes: Buffer, random: RandomBits) => void {
  const scale = float16((deviation * greatestQuantile) / 127);
  const table = Int8Array.from(quantiles(), (quantile) => Math.round((quantile / greatestQuantile) * 127));
  return (bytes, random) => {
    const elements = new Int8Array(bytes.buffer, bytes.byteOffset, bytes.length);
    for (let block = 0; block < bytes.length; block += q8Bytes) {
      bytes.writeUInt16LE(scale, block);
      fillPairs(elements.subarray(block + 2, block + 2 + q8Elements), table, random);
    }
  };
}

function fillerQ4(deviation: number): (bytes: Buffer, random: RandomBits) => void {
  const scale = float16((deviation * q4Reach) / 8);
  const table = Uint8Array.from(quantiles(), (quantile) =>
    Math.max(0, Math.min(15, Math.round((quantile / q4Reach) * 8) + 8)),
  );
  return (bytes, random) => {
    for (let block = 0; block < bytes.length; block += q4Bytes) {
      bytes.writeUInt16LE(scale, block);
      for (let at = block + 2; at < block + q4Bytes; at += 1) {
        const bits = random();
        bytes[at] = (table[bits & 0xffff] ?? 0) | ((table[bits >>> 16] ?? 0) << 4);
      }
    }
  };
}

function fillPairs<Words extends Float32Array | Uint16Array | Int8Array>(
  words: Words,
  table: Words,
  random: RandomBits,
): void {
  for (let index = 0; index < words.length; index += 2) {
    const bits = random();
    words[index] = table[bits & 0xffff] ?? 0;
    words[index + 1] = table[bits >>> 16] ?? 0;
  }
}

/** The bits of the nearest float16. Values from its smallest normal one, 6.1e-5, up to 65504, and zero below that. */
export function float16(value: number): number {
  assert(Math.abs(value) < 65_504, 'the value fits a float16');
  const bits = Buffer.alloc(4);
  bits.writeFloatLE(value);
  const word = bits.readUInt32LE(0);
  const sign = (word >>> 16) & 0x8000;
  const exponent = ((word >>> 23) & 0xff) - 112;
  if (exponent <= 0) return sign;
  // A mantissa that rounds up past its end carries into the exponent, which is just what it should do.
  return sign | ((exponent << 10) + (((word & 0x7f_ffff) + 0x1000) >>> 13));
}

const tableSize = 65_536;
let quantileTable: Float64Array | null = null;

/** The quantile of every 16-bit draw, made at the first call. */
function quantiles(): Float64Array {
  quantileTable ??= Float64Array.from({ length: tableSize }, (_, index) => normalQuantile((index + 0.5) / tableSize));
  return quantileTable;
}

function normalQuantile(probability: number): number {
  const tail = 0.02425;
  if (probability > 0.5) return -normalQuantile(1 - probability);
  if (probability < tail) {
    const q = Math.sqrt(-2 * Math.log(probability));
    return (
      polynomial(
        [
          -7.784894002430293e-3, -3.223964580411365e-1, -2.400758277161838, -2.549732539343734, 4.374664141464968,
          2.938163982698783,
        ],
        q,
      ) / polynomial([7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416, 1], q)
    );
  }
  const q = probability - 0.5;
  const r = q * q;
  const numerator = [
    -3.969683028665376e1, 2.209460984245205e2, -2.759285104469687e2, 1.38357751867269e2, -3.066479806614716e1,
    2.506628277459239,
  ];
  const denominator = [
    -5.447609879822406e1, 1.615858368580409e2, -1.556989798598866e2, 6.680131188771972e1, -1.328068155288572e1, 1,
  ];
  return (polynomial(numerator, r) * q) / polynomial(denominator, r);
}

const polynomial = (coefficients: readonly number[], x: number): number =>
  coefficients.reduce((sum, coefficient) => sum * x + coefficient, 0);
