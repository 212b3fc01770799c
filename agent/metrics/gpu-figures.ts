/**
 * Memory and use of NVIDIA GPUs, as the driver's own program tells them every few seconds: one process for as long as the
 * agent runs, because starting one stops the event loop. Nothing where there is no driver.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';

import { limits } from '../../protocol/limits.ts';
import type { Samples } from './samples.ts';

const driverFile = '/proc/driver/nvidia/version';
const program = 'nvidia-smi';
const question = '--query-gpu=index,name,memory.total,memory.used,utilization.gpu';
const mebibyte = 1024 * 1024;

export interface GpuFigures {
  readonly index: number;
  readonly name: string;
  readonly memoryBytes: number;
  readonly memoryUsedBytes: number;
  /** 0 to 1. */
  readonly utilization: number;
}

/** One line of CSV; `null` for one that is none. What a GPU does not tell is not a number. */
export function parseGpuLine(line: string): GpuFigures | null {
  const [index = '', name = '', total, used, percent, ...rest] = line.split(',').map((cell) => cell.trim());
  if (!/^[0-9]{1,2}$/.test(index) || Number(index) >= limits.hostGpus || percent === undefined || rest.length > 0)
    return null;
  return {
    index: Number(index),
    name: name.slice(0, limits.metricLabelCharacters),
    memoryBytes: numberIn(total) * mebibyte,
    memoryUsedBytes: numberIn(used) * mebibyte,
    utilization: numberIn(percent) / 100,
  };
}

/** `[N/A]` where a GPU has no such figure. */
const numberIn = (cell: string | undefined): number => (/^[0-9]+$/.test(cell ?? '') ? Number(cell) : NaN);

export class GpuWatch {
  readonly #latest = new Map<number, { readonly figures: GpuFigures; readonly atMs: number }>();
  #child: ChildProcess | null = null;
  #timer: NodeJS.Timeout | null = null;
  #isStopped = false;

  /** Begins where there is a driver. */
  constructor() {
    if (existsSync(driverFile)) this.#begin();
  }

  add(samples: Samples, nowMs: number): void {
    for (const { figures, atMs } of this.#latest.values()) {
      if (nowMs - atMs > limits.gpuStaleMs) continue;
      const labels = { gpu: String(figures.index) };
      samples.addInfo('p4_gpu_info', { ...labels, name: figures.name });
      samples.add('p4_gpu_memory_bytes', labels, figures.memoryBytes);
      samples.add('p4_gpu_memory_used_bytes', labels, figures.memoryUsedBytes);
      samples.add('p4_gpu_utilization_ratio', labels, figures.utilization);
    }
  }

  stop(): void {
    this.#isStopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#child?.kill();
  }

  #begin(): void {
    const interval = `--loop-ms=${limits.gpuLookMs}`;
    const child = spawn(program, [question, '--format=csv,noheader,nounits', interval], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    this.#child = child;
    createInterface({ input: child.stdout }).on('line', (line) => {
      const figures = parseGpuLine(line);
      if (figures !== null) this.#latest.set(figures.index, { figures, atMs: performance.now() });
    });
    child.on('error', () => undefined);
    child.on('close', () => {
      this.#child = null;
      if (this.#isStopped) return;
      this.#timer = setTimeout(() => {
        this.#begin();
      }, limits.gpuRetryMs).unref();
    });
  }
}
