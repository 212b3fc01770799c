/** Reads an agent's configuration file and the certificate files it names. */
import { readFile } from 'node:fs/promises';
import type { AgentConfig } from '../protocol/agent-config.ts';
import { checkAgentConfig } from '../protocol/agent-config-schema.ts';
import { readDocument } from '../protocol/document.ts';
import { P4Error } from '../protocol/errors.ts';
import { faultsError } from '../protocol/fault.ts';
import { schemaFaults } from '../protocol/schema-fault.ts';
import type { TlsIdentity } from '../protocol/tls-identity.ts';

/** @throws CONFIG_UNREADABLE, CONFIG_INVALID with every fault at its line */
export async function readAgentConfig(file: string): Promise<AgentConfig> {
  const { document, faults } = readDocument(await readText(file), file);
  if (document === null) throw faultsError('CONFIG_INVALID', faults);
  const { value } = document;
  if (checkAgentConfig(value) && faults.length === 0) return value;
  throw faultsError('CONFIG_INVALID', [...faults, ...schemaFaults(checkAgentConfig.errors ?? [], document)]);
}

/** @throws CONFIG_UNREADABLE */
export async function readTlsIdentity({ pki }: AgentConfig): Promise<TlsIdentity> {
  const [authority, certificate, key, revoked] = await Promise.all([
    readText(pki.authority),
    readText(pki.certificate),
    readText(pki.key),
    pki.revoked === undefined ? null : readText(pki.revoked),
  ]);
  return { authority, certificate, key, ...(revoked === null ? {} : { revoked }) };
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : 'unknown';
    throw new P4Error('CONFIG_UNREADABLE', { file: path, why }, cause);
  }
}
