/** Node's buffers are over ArrayBuffers; their type does not say so. */
import { assert } from './assert.ts';

/** The same bytes, not copied. */
export function arrayBufferView(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  assert(bytes.buffer instanceof ArrayBuffer, 'bytes of a socket are in an ArrayBuffer');
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
}
