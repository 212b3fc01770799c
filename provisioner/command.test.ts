import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { test } from 'node:test';

interface Ended {
  readonly exit: number | null;
  readonly err: string;
}

/** Runs a command of this body, with `terminal` and `signal`, whose standard output goes where `out` says. */
async function ran(body: string, out: number | 'closed pipe'): Promise<Ended> {
  const module = JSON.stringify(join(import.meta.dirname, 'command.js'));
  const script = `import { runCommand } from ${module};
    await runCommand('text', async ({ terminal, signal }) => { ${body} });`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', out === 'closed pipe' ? 'pipe' : out, 'pipe'],
  });
  child.stdout?.destroy();
  let err = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (err += text));
  await once(child, 'close');
  return { exit: child.exitCode, err };
}

async function ranIntoFullDisk(body: string): Promise<Ended> {
  const full = openSync('/dev/full', 'w');
  try {
    return await ran(body, full);
  } finally {
    closeSync(full);
  }
}

/** Prints until it is interrupted. */
const printing = `
  while (!signal.aborted) { terminal.line('word'); await new Promise((resolve) => setTimeout(resolve, 5)); }
  throw signal.reason;`;

const fullDisk = /^OUTPUT_FAILED: [^]*output: stdout[^]*ENOSPC: no space left on device/;

test('a command whose output cannot be written ends with one error that says why', async () => {
  const { exit, err } = await ranIntoFullDisk(printing);
  assert.equal(exit, 4);
  assert.match(err, fullDisk);
  assert.equal(err.split('OUTPUT_FAILED').length, 2, 'told once');
});

test('so does one that only printed its last line there', async () => {
  const { exit, err } = await ranIntoFullDisk(`terminal.line('word'); return 0;`);
  assert.equal(exit, 4);
  assert.match(err, fullDisk);
});

test('a reader that went away ends a command without a word', async () => {
  assert.deepEqual(await ran(printing, 'closed pipe'), { exit: 5, err: '' });
});
