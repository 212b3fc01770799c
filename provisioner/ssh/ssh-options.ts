/** The options of a command that reaches hosts: which host keys it may accept. */
import type { Command } from 'commander';

import { P4Error } from '../../protocol/errors.ts';
import type { KeyAcceptance } from './host-trust.ts';

export interface SshOptionValues {
  /** Each `<host>=<SHA256:…>`. */
  readonly acceptHostKey?: readonly string[];
  readonly acceptNewHostKeys?: boolean;
}

export const addSshOptions = (command: Command): Command =>
  command
    .option(
      '--accept-host-key <host>=<SHA256:…>',
      'take this for the key of the host, and remember it; may be given for several hosts',
      (value: string, former: readonly string[] | undefined) => [...(former ?? []), value],
    )
    .option('--accept-new-host-keys', 'remember the keys of all hosts that none is known of yet');

/** @throws INVALID_ARGUMENT */
export function readSshOptions({ acceptHostKey = [], acceptNewHostKeys = false }: SshOptionValues): KeyAcceptance {
  const fingerprints = acceptHostKey.map((value) => {
    const [, host, print] = /^([^=]+)=(SHA256:[A-Za-z0-9+/]{43})=?$/.exec(value) ?? [];
    if (host !== undefined && print !== undefined) return { host, fingerprint: print };
    throw new P4Error('INVALID_ARGUMENT', {
      option: '--accept-host-key',
      found: value,
      expected: '<host>=SHA256:<43 characters>, as ssh-keygen -l prints it',
    });
  });
  return { fingerprints, isNewAccepted: acceptNewHostKeys };
}
