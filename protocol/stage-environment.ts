/** What a process that computes a slice has in its environment, whoever starts it. */

/**
 * - `OMP_WAIT_POLICY`: builds of the libraries with OpenMP would spin between graphs otherwise.
 * - `GLIBC_TUNABLES`: large blocks of memory (weights, KV cache) ask for huge pages. A decode reads all weights once;
 *   with pages of 4 KiB the table walks of it cost a tenth and more of its time.
 */
export const stageEnvironment = {
  OMP_WAIT_POLICY: 'PASSIVE',
  GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1',
} as const;
