/**
 * Whether a host's stages can use its NVIDIA GPUs, from its facts alone.
 *
 * The CUDA build of libllama needs a driver, and CUDA 13's runtime and BLAS libraries, which it does not bring along.
 * A host where something is missing gets the CPU build, and the operator is told what to install.
 */
import type { HostVariables } from '../../protocol/inventory.ts';
import { cudaLibraries } from './facts-script.ts';
import type { Gpu, NvidiaFacts } from './facts.ts';

export type CudaDecision =
  /** No GPU, or none that stages may see. */
  | { readonly kind: 'none' }
  /** `gpus` are those that stages may see. */
  | { readonly kind: 'use'; readonly gpus: readonly Gpu[] }
  /** A GPU is there that cannot be used; each word says what to install or correct. */
  | { readonly kind: 'missing'; readonly what: readonly string[] };

/** The driver that CUDA 13 needs at least: NVIDIA's table of minor version compatibility. */
const leastDriver = 580;

export function cudaDecision(facts: NvidiaFacts, wanted: HostVariables['gpus']): CudaDecision {
  const isWanted = wanted.kind === 'all' || wanted.indexes.length > 0;
  const hasTrace = facts.driver !== null || facts.hasDevice || facts.gpus.length > 0;
  if (!isWanted || (!hasTrace && wanted.kind === 'all')) return { kind: 'none' };
  const what = [...driverFaults(facts), ...libraryFaults(facts), ...gpuFaults(facts, wanted)];
  if (what.length > 0) return { kind: 'missing', what };
  return { kind: 'use', gpus: facts.gpus.filter(({ index }) => isVisible(index, wanted)) };
}

const isVisible = (index: number, wanted: HostVariables['gpus']): boolean =>
  wanted.kind === 'all' || wanted.indexes.includes(index);

function driverFaults({ driver }: NvidiaFacts): readonly string[] {
  if (driver === null) return ['the NVIDIA driver is not loaded'];
  const major = Number(/^(\d+)\./.exec(driver)?.[1] ?? NaN);
  return major >= leastDriver ? [] : [`the driver ${driver} is older than ${leastDriver}, which CUDA 13 needs`];
}

function libraryFaults({ driver, libraries }: NvidiaFacts): readonly string[] {
  const missing = cudaLibraries.filter(
    // The driver's own library is missing wherever the driver is.
    (name) => !libraries.includes(name) && (driver !== null || name !== 'libcuda.so.1'),
  );
  return missing.map((name) => `${name} is not found by the dynamic linker`);
}

function gpuFaults({ gpus, driver }: NvidiaFacts, wanted: HostVariables['gpus']): readonly string[] {
  if (driver === null) return [];
  if (gpus.length === 0) return ['nvidia-smi lists no GPU'];
  if (wanted.kind === 'all') return [];
  const missing = wanted.indexes.filter((wantedIndex) => !gpus.some(({ index }) => index === wantedIndex));
  return missing.map((index) => `the inventory names GPU ${index}, of ${gpus.length} there`);
}
