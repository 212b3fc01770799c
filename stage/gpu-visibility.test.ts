import assert from 'node:assert/strict';
import { test } from 'node:test';

import { P4Error } from '../protocol/errors.ts';
import { gpuVariables } from './gpu-visibility.ts';

test('the libraries see the GPU of the plan alone, by the number that the host gives it', () => {
  assert.deepEqual(gpuVariables(2, {}), {
    CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
    CUDA_VISIBLE_DEVICES: '2',
    GGML_VK_VISIBLE_DEVICES: '2',
  });
  assert.equal(gpuVariables(2, { CUDA_VISIBLE_DEVICES: '0,2' })['CUDA_VISIBLE_DEVICES'], '2');
});

test('a GPU that the host keeps from stages is refused', () => {
  for (const allowed of ['0,12', '', '-1']) {
    assert.throws(
      () => gpuVariables(2, { CUDA_VISIBLE_DEVICES: allowed }),
      (error) => error instanceof P4Error && error.code === 'ENGINE_DEVICE_ABSENT',
    );
  }
});
