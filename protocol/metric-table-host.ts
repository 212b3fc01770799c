/** Metrics of an agent’s host. */
import type { MetricDefinition } from './metric-definition.ts';

export const hostMetrics = {
  p4_host_cpus: {
    type: 'gauge',
    unit: 'state',
    labels: [],
    help: 'CPUs that the agent may use.',
    appears: 'always',
  },
  p4_host_cpu_seconds_total: {
    type: 'counter',
    unit: 'seconds',
    labels: ['mode'],
    help: 'What the host’s CPUs did since it booted, all together.',
    appears: 'always',
  },
  p4_host_pressure_seconds_total: {
    type: 'counter',
    unit: 'seconds',
    labels: ['resource'],
    help: 'Time in which at least one task of the host waited for the resource.',
    appears: 'pressure',
  },
  p4_host_memory_bytes: {
    type: 'gauge',
    unit: 'bytes',
    labels: [],
    help: 'Memory of the host.',
    appears: 'always',
  },
  p4_host_memory_available_bytes: {
    type: 'gauge',
    unit: 'bytes',
    labels: [],
    help: 'Memory that could be used without swapping, as the kernel estimates it.',
    appears: 'always',
  },
  p4_disk_size_bytes: {
    type: 'gauge',
    unit: 'bytes',
    labels: ['folder'],
    help: 'Size of the file system that holds the folder.',
    appears: 'always',
  },
  p4_disk_free_bytes: {
    type: 'gauge',
    unit: 'bytes',
    labels: ['folder'],
    help: 'Room on the file system that holds the folder, for users other than root.',
    appears: 'always',
  },
  p4_gpu_info: {
    type: 'info',
    unit: 'state',
    labels: ['gpu', 'name'],
    help: 'A GPU of the host.',
    appears: 'gpu',
  },
  p4_gpu_memory_bytes: {
    type: 'gauge',
    unit: 'bytes',
    labels: ['gpu'],
    help: 'Memory of the GPU.',
    appears: 'gpu',
  },
  p4_gpu_memory_used_bytes: {
    type: 'gauge',
    unit: 'bytes',
    labels: ['gpu'],
    help: 'Memory of the GPU in use, by whoever.',
    appears: 'gpu',
  },
  p4_gpu_utilization_ratio: {
    type: 'gauge',
    unit: 'ratio',
    labels: ['gpu'],
    help: 'Share of the latest sample in which the GPU computed.',
    appears: 'gpu',
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>;
