/** Asks the host for its addresses: Node, `ip -j addr` where that program is there, and sysfs. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { limits } from '../../protocol/limits.ts';
import { hostAddresses, interfaceNames, type LinkFacts, type QuietAddress } from './host-addresses.ts';

export async function readAddresses(): Promise<readonly QuietAddress[]> {
  const interfaces = networkInterfaces();
  const details = await ipAddresses();
  const names = interfaceNames({ interfaces, details });
  const links = new Map(
    await Promise.all(names.map(async (name): Promise<[string, LinkFacts]> => [name, await linkFacts(name)])),
  );
  const link = (name: string): LinkFacts => links.get(name) ?? { mtu: 0, linkMbps: 0 };
  return hostAddresses({ interfaces, details, link });
}

/** Empty where the machine has none. */
export async function readMachineId(): Promise<string> {
  return (await readFile('/etc/machine-id', 'utf8').catch(() => '')).trim();
}

/** `null` without the program, and with one too old for JSON. */
function ipAddresses(): Promise<unknown> {
  return new Promise((resolve) => {
    const options = { timeout: limits.probeAnswerMs, maxBuffer: 16 * 1024 * 1024 };
    const env = { ...process.env, PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin:/usr/bin:/bin` };
    execFile('ip', ['-j', 'addr'], { ...options, env }, (error, stdout) => {
      resolve(error === null ? jsonOrNull(stdout) : null);
    });
  });
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

async function linkFacts(name: string): Promise<LinkFacts> {
  const [mtu, linkMbps] = await Promise.all([numberIn(name, 'mtu'), numberIn(name, 'speed')]);
  return { mtu, linkMbps };
}

/** 0 where the kernel does not say: the speed of a bridge or of a link that is down, say. */
async function numberIn(name: string, file: string): Promise<number> {
  const text = await readFile(`/sys/class/net/${name}/${file}`, 'utf8').catch(() => '');
  const value = Number(text.trim());
  return Number.isSafeInteger(value) && value > 0 ? value : 0;
}
