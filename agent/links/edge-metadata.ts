/** Which ring edge a stream of Ring.Hops carries: written into its metadata by the sender, parsed by the receiver. */
import { Metadata } from '@grpc/grpc-js';

import { P4Error } from '../../protocol/errors.ts';
import { generation, nodeIndex, ringName, type NodeIndex } from '../../protocol/ids.ts';
import { checkProtocolVersion, protocolVersionText } from '../../protocol/protocol-version.ts';
import type { EdgeAddress } from './link.ts';

export function edgeMetadata(edge: EdgeAddress): Metadata {
  const metadata = new Metadata();
  metadata.set('p4-protocol', protocolVersionText);
  metadata.set('p4-ring', edge.ring);
  metadata.set('p4-generation', String(edge.generation));
  metadata.set('p4-source', String(edge.source));
  metadata.set('p4-destination', String(edge.destination));
  return metadata;
}

/**
 * The protocol's version is checked first (E5): what another one means by the rest is unknown.
 * @throws PROTOCOL_MISMATCH, INVALID_ARGUMENT
 */
export function edgeOf(metadata: Metadata): EdgeAddress {
  checkProtocolVersion(textOf(metadata, 'p4-protocol'));
  return {
    ring: ringName(textOf(metadata, 'p4-ring')),
    generation: generation(textOf(metadata, 'p4-generation')),
    source: nodeOf(metadata, 'p4-source'),
    destination: nodeOf(metadata, 'p4-destination'),
  };
}

function nodeOf(metadata: Metadata, key: string): NodeIndex {
  const text = textOf(metadata, key);
  if (!/^\d{1,5}$/.test(text)) throw new P4Error('INVALID_ARGUMENT', { what: key, expected: 'a node index' });
  return nodeIndex(Number(text));
}

/** Empty when it is absent: then its parser refuses it. */
function textOf(metadata: Metadata, key: string): string {
  const [value] = metadata.get(key);
  return typeof value === 'string' ? value : '';
}
