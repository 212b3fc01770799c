/** Network addresses as text. */
import { isIP } from 'node:net';

export interface NetAddress {
  /** An IP address (IPv6 without brackets) or a host's name. */
  readonly address: string;
  readonly port: number;
}

/** `192.0.2.1:7400`, `[2001:db8::1]:7400` or `name:7400`. */
export const addressText = ({ address, port }: NetAddress): string =>
  isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`;

/** The address as gRPC's client wants it. */
export function grpcTarget(at: NetAddress): string {
  const version = isIP(at.address);
  return version === 0 ? `dns:${addressText(at)}` : `ipv${version}:${addressText(at)}`;
}
