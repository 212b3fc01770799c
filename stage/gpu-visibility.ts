/**
 * Which GPU a stage's libraries see: the one of its plan alone, since they take memory on every GPU that they find. What they
 * see they count from 0.
 */
import { P4Error } from '../protocol/errors.ts';

const cudaName = 'CUDA_VISIBLE_DEVICES';

/**
 * The environment to be set before the libraries are loaded.
 *
 * @param index the GPU's number on its host, as `nvidia-smi` shows it
 * @throws ENGINE_DEVICE_ABSENT when the host keeps this GPU from stages
 */
export function gpuVariables(
  index: number,
  environment: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> {
  const allowed = environment[cudaName];
  if (allowed !== undefined && !allowed.split(',').includes(String(index))) {
    throw new P4Error('ENGINE_DEVICE_ABSENT', { index, [cudaName]: allowed });
  }
  return { CUDA_DEVICE_ORDER: 'PCI_BUS_ID', [cudaName]: String(index), GGML_VK_VISIBLE_DEVICES: String(index) };
}

/** That GPU's number among those that the libraries see. */
export const visibleIndex = 0;
