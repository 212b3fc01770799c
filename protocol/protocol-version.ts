/** The version of what crosses between p4's processes on different machines (E5). */
import { P4Error } from './errors.ts';

/** Another major version is refused; a minor one adds what the other side may ignore. */
export const protocolVersion = { major: 4, minor: 0 } as const;

export const protocolVersionText = `${protocolVersion.major}.${protocolVersion.minor}`;

/** @throws PROTOCOL_MISMATCH when `text` is not a version of this release's major number */
export function checkProtocolVersion(text: string): void {
  const major = /^(\d{1,6})\.\d{1,6}$/.exec(text)?.[1];
  if (major === undefined || Number(major) !== protocolVersion.major)
    throw new P4Error('PROTOCOL_MISMATCH', { here: protocolVersionText, there: text.slice(0, 16) });
}
