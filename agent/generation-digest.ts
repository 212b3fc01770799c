/**
 * The salted digest that ties a load to its generation without giving the generation away (G4).
 *
 * A generation has at least 40 random low bits (G1). With scrypt at N = 2^14, r = 8, p = 1 (16 MiB and some tens of
 * milliseconds a try) going through 2^40 of them takes a thousand years of a core.
 */
import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';

import { assert } from '../protocol/assert.ts';
import type { Generation } from '../protocol/ids.ts';
import type { LoadAdmitted } from './records.ts';

/** Salt and hash in hexadecimal: 32 and 64 digits. */
export type GenerationDigest = LoadAdmitted['generationDigest'];

const cost = { N: 2 ** 14, r: 8, p: 1 };
const saltBytes = 16;
const hashBytes = 32;

/** A digest with a fresh salt; two of the same generation differ. */
export async function makeGenerationDigest(generation: Generation): Promise<GenerationDigest> {
  const salt = randomBytes(saltBytes);
  const hash = await derive(generation, salt);
  return { salt: salt.toString('hex'), hash: hash.toString('hex') };
}

/** Whether the digest was made of this generation; takes the same time whether it was or not. */
export async function matchesGenerationDigest(generation: Generation, digest: GenerationDigest): Promise<boolean> {
  const salt = Buffer.from(digest.salt, 'hex');
  const hash = Buffer.from(digest.hash, 'hex');
  assert(salt.length === saltBytes && hash.length === hashBytes, 'a digest has a salt of 16 bytes and a hash of 32');
  return timingSafeEqual(await derive(generation, salt), hash);
}

function derive(generation: Generation, salt: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(generation.toString(), salt, hashBytes, cost, (error, key) => {
      if (error) reject(error);
      else resolve(key);
    });
  });
}
