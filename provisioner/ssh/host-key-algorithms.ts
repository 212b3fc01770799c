/** Which host key a server is asked for: it has several, and shows the first kind that is asked for and it has. */
import type { ServerHostKeyAlgorithm } from 'ssh2';

/** In the order of preference; SHA-1 signatures and DSA are not taken. */
const algorithms: readonly ServerHostKeyAlgorithm[] = [
  'ssh-ed25519',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'rsa-sha2-512',
  'rsa-sha2-256',
];

const typeOf = (algorithm: ServerHostKeyAlgorithm): string => (algorithm.startsWith('rsa-') ? 'ssh-rsa' : algorithm);

/** All of them, those first whose keys are known: a server that still has a known key shows that one. */
export function askedAlgorithms(knownTypes: readonly string[]): ServerHostKeyAlgorithm[] {
  const isKnown = (algorithm: ServerHostKeyAlgorithm): boolean => knownTypes.includes(typeOf(algorithm));
  return [...algorithms.filter(isKnown), ...algorithms.filter((algorithm) => !isKnown(algorithm))];
}
