/** Error codes of ssh: reaching a host, becoming root there, sending it files. */
import type { CodeRule } from './error-rule.ts';

export const sshCodes = {
  HOST_UNREACHABLE: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: 'The host cannot be reached by ssh.',
    remedy: 'Check the address, port, user and key in the inventory, then log in once with ssh itself.',
  },
  HOST_LOST: {
    exit: 4,
    status: 'UNAVAILABLE',
    says: 'The ssh connection to the host broke off.',
    remedy: 'Check the host and the network to it, then run the same command again.',
  },
  HOST_TIMEOUT: {
    exit: 4,
    status: 'DEADLINE_EXCEEDED',
    says: 'A command on the host took too long and was ended.',
    remedy: 'Look at the load of the host, then run the same command again.',
  },
  HOST_SHELL_SILENT: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'The ssh login works, but the host starts no shell for it.',
    remedy: 'Give the user a shell (usermod --shell /bin/sh) and no forced command in authorized_keys.',
  },
  HOST_ANSWER_TOO_LONG: {
    exit: 4,
    status: 'RESOURCE_EXHAUSTED',
    says: 'A command on the host said more than anybody can read.',
    remedy: 'Log in to the host as the inventory says and see what prints there.',
  },
  HOST_KEY_UNKNOWN: {
    exit: 3,
    status: 'FAILED_PRECONDITION',
    says: 'Nobody has said yet that this host key is the right one.',
    remedy:
      'Compare the fingerprint with the one on the console of the host, then accept it with the option named here; --accept-new-host-keys accepts every host that is not known yet.',
  },
  HOST_KEY_NOT_ACCEPTED: {
    exit: 3,
    status: 'PERMISSION_DENIED',
    says: 'The host shows another key than the one that was accepted for it.',
    remedy:
      'A host has a key of each type, each with a fingerprint of its own: compare the one that it showed with the console of the host (ssh-keygen -lf on its /etc/ssh/ssh_host_*_key.pub); where it stands there, accept that one, with the option named here. Else something else answers at its address.',
  },
  HOST_KEY_CHANGED: {
    exit: 3,
    status: 'PERMISSION_DENIED',
    says: 'The host has another key than the known one: it was installed anew, or something else answers at its address.',
    remedy:
      'Compare the new fingerprint with the one on the console of the host; where they are the same, accept it with the option named here.',
  },
  HOST_KEY_REVOKED: {
    exit: 3,
    status: 'PERMISSION_DENIED',
    says: 'The host has a key that is marked as revoked.',
    remedy: 'Give the host a new key, or remove the mark where it is wrong.',
  },
  BECOME_NEEDS_PASSWORD: {
    exit: 3,
    status: 'PERMISSION_DENIED',
    says: 'sudo on the host wants a password, and the inventory has none.',
    remedy:
      'Say `become: { sudo: ask }` or `become: { sudo: { passwordFile: path } }`, or allow the user sudo without.',
  },
  BECOME_REFUSED: {
    exit: 3,
    status: 'PERMISSION_DENIED',
    says: 'The user does not become root on the host.',
    remedy: 'Check `become`, the password and the sudoers of the host; what sudo said stands here.',
  },
  SSH_FORWARDING_REFUSED: {
    exit: 3,
    status: 'PERMISSION_DENIED',
    says: 'The ssh server of the host carries no connections, and its agent is reached through it alone.',
    remedy:
      'Allow them to the user in sshd_config there (AllowTcpForwarding local, and PermitOpen where it is set), or take the jump host out of the inventory where this machine reaches the agent without.',
  },
  SSH_KEY_UNUSABLE: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'A private key cannot be used.',
    remedy: 'Correct what is named here, or name another key in the inventory.',
  },
  SSH_CONFIG_UNUSABLE: {
    exit: 2,
    status: 'INVALID_ARGUMENT',
    says: 'The ssh configuration has something that cannot be followed.',
    remedy: 'Say in the inventory how to reach the host (address, user, key, jump), or correct the configuration.',
  },
  SECRET_NOT_GIVEN: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'A password or passphrase is needed, and there is no terminal to ask on.',
    remedy: 'Run the command on a terminal, add the key to an ssh agent (ssh-add), or name a password file.',
  },
  SECRET_FILE_UNUSABLE: {
    exit: 2,
    status: 'FAILED_PRECONDITION',
    says: 'A password file cannot be used.',
    remedy: 'Make it a file with one line that its owner alone may read (chmod 600).',
  },
} as const satisfies Record<string, CodeRule>;
