/** Error codes of connections between machines. */
import type { CodeRule } from './error-rule.ts';

export const networkCodes = {
  FRAME_INVALID: {
    exit: 4,
    status: 'INVALID_ARGUMENT',
    says: 'A hop frame is not well-formed.',
    remedy: 'Check that all agents and stages run the same release.',
  },
  ROLE_FORBIDDEN: {
    exit: 3,
    status: 'PERMISSION_DENIED',
    says: 'A certificate of this role may not make this call.',
    remedy: 'Use a certificate of one of the roles named here.',
  },
  CERTIFICATE_REFUSED: {
    exit: 3,
    status: 'PERMISSION_DENIED',
    says: 'One side does not accept the certificate of the other.',
    remedy:
      "Check that both certificates come from the fleet's own authority, have not expired and name the right host, and the clocks of both machines.",
  },
  CERTIFICATE_UNUSABLE: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'A certificate or key file cannot be read or used.',
    remedy: 'Check the path, the rights on it and that certificate and key belong together.',
  },
  AGENT_UNREACHABLE: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: 'The agent does not answer at this address.',
    remedy:
      'Check that it runs (on this machine: `npm run agents`), that it listens there and that no firewall is between.',
  },
  AGENT_STOPPING: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: 'The agent is stopping.',
    remedy: 'Start it again, then load the plan.',
  },
  AGENT_BUG: {
    exit: 4,
    status: 'INTERNAL',
    says: 'The agent met a bug in itself and ends.',
    remedy: 'Its log on that host says where; report it.',
  },
  ADDRESS_IN_USE: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'Another process listens at this address.',
    remedy: 'End that process, or choose another port.',
  },
  ADDRESS_UNAVAILABLE: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'It is not possible to listen at this address.',
    remedy: 'Use an address of this host, and a port that its user may listen on.',
  },
  PROTOCOL_MISMATCH: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'The two sides speak different major versions of the protocol.',
    remedy: 'Bring all hosts to the same release.',
  },
  LINK_WRONG_PEER: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'Another host than the expected one answers at this address.',
    remedy: 'Correct the address in the inventory, and look for an address that two hosts share.',
  },
  LINK_TO_SELF: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: "The neighbour's address leads back to this host itself.",
    remedy: 'Correct the address in the inventory; never use loopback between hosts.',
  },
  LINK_LOST: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: 'The connection to a neighbour in the ring is lost.',
    remedy: 'Check that host and the network to it, then load the plan again.',
  },
  FRAME_CORRUPT: {
    exit: 4,
    status: 'ABORTED',
    says: 'A hop frame arrived with another checksum than it was sent with.',
    remedy: 'Check the memory and network hardware of both hosts.',
  },
  RPC_TIMED_OUT: {
    exit: 4,
    status: 'DEADLINE_EXCEEDED',
    says: 'The agent did not answer in time.',
    remedy: 'Look at its status and at the load of its host, then try again.',
  },
  RPC_FAILED: {
    exit: 4,
    status: 'INTERNAL',
    says: 'A call failed for a reason this release has no code for.',
    remedy: 'Check that both sides run the same release; what is known stands here.',
  },
  LINK_WINDOW_EXCEEDED: {
    exit: 4,
    status: 'RESOURCE_EXHAUSTED',
    says: 'A peer sent more frames than its window allows.',
    remedy: 'Check that all agents run the same release.',
  },
  ADVERTISE_UNREACHABLE: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'The address that the inventory wants a host to advertise cannot serve: not every other host reaches it there.',
    remedy:
      'Name another address or interface at `advertise`, mend the network, or leave the choice to the measurement.',
  },
  ADVERTISE_UNKNOWN: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'The host does not have the address or the interface that the inventory wants it to advertise.',
    remedy: 'Name one of its own at `advertise`, or leave the choice to the measurement.',
  },
  ADVERTISE_NONE: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'A host has no address at which every other host reaches it.',
    remedy: 'Look at the reasons here and at firewalls between the hosts, then run the same command again.',
  },
  PROBE_FAILED: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: 'The program that measures the network could not do its work on a host.',
    remedy: 'Look at what it said, then run the same command again.',
  },
  PROBE_PROTOCOL: {
    exit: 4,
    status: 'FAILED_PRECONDITION',
    says: 'The program that measures the network was told, or said, something that is not of its protocol.',
    remedy: 'Deploy again, so that both sides have the same release.',
  },
} as const satisfies Record<string, CodeRule>;
