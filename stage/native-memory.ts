/** Native memory that JavaScript fills and reads in place. */
import koffi from 'koffi';

import type { Pointer } from './llama-structs.ts';

/** A block of zeroed native memory; `free` must be called once, and no view used after it. */
export class NativeMemory {
  readonly address: Pointer;
  readonly buffer: ArrayBuffer;

  constructor(bytes: number) {
    const size = Math.max(bytes, 8);
    this.address = koffi.address(koffi.alloc('uint8_t', size));
    this.buffer = koffi.view(this.address, size);
    new Uint8Array(this.buffer).fill(0);
  }

  free(): void {
    koffi.free(this.address);
  }
}

/** Views native memory that llama.cpp owns; valid as long as llama.cpp keeps it there. */
export function viewFloats(address: Pointer, count: number): Float32Array {
  return new Float32Array(koffi.view(address, count * Float32Array.BYTES_PER_ELEMENT));
}
