/** A small checkout with tests planted in it, run by the real runner in a process of its own: node's cannot be nested. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Totals } from './report.ts';
import type { TierName } from './tiers.ts';

export interface PlantedRun {
  readonly tiers: readonly TierName[];
  readonly filters?: readonly string[];
  /** Value of CI for the run. */
  readonly ci?: string;
}

export interface PlantedOutcome {
  readonly totals: Totals;
  readonly lines: readonly string[];
}

export class PlantedCheckout {
  readonly root = mkdtempSync(join(tmpdir(), 'p4-planted-'));

  constructor() {
    writeFileSync(join(this.root, 'package.json'), '{ "type": "module" }');
    writeFileSync(join(this.root, 'tsconfig.json'), '{ "include": ["agent", "test", "not-there-yet"] }');
  }

  /** Plants a test source and, unless `built` is null, what it is built to. */
  plant(source: string, built: string | null): void {
    this.#write(source, '');
    if (built !== null) this.#write(join('dist', source.replace(/\.ts$/, '.js')), built);
  }

  async run({ tiers, filters = [], ci = '' }: PlantedRun): Promise<PlantedOutcome> {
    const runner = JSON.stringify(join(import.meta.dirname, 'test-run.js'));
    const options = JSON.stringify({ root: this.root, tiers, filters });
    const script = `
      import { runTests } from ${runner};
      const lines = [];
      const totals = await runTests({ ...${options}, write: (line) => lines.push(line) });
      process.stdout.write(JSON.stringify({ totals, lines }));`;
    // Node hands its own options on to the processes of tests, so the script has to be a file.
    this.#write('run.js', script);
    const env: NodeJS.ProcessEnv = { ...process.env, CI: ci };
    delete env['NODE_TEST_CONTEXT'];
    const { stdout } = await promisify(execFile)(process.execPath, [join(this.root, 'run.js')], { env });
    // Written by the script above, of the types it is checked with here.
    return JSON.parse(stdout) as PlantedOutcome;
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }

  #write(path: string, text: string): void {
    mkdirSync(dirname(join(this.root, path)), { recursive: true });
    writeFileSync(join(this.root, path), text);
  }
}
