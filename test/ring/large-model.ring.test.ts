/** Cutting a model far larger than the memory it may take, in a process of its own. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { writeSparseModel } from '../../model/sparse-model.ts';

const run = promisify(execFile);
let folder = '';

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'p4-large-model-'));
});
after(async () => {
  await rm(folder, { recursive: true });
});

/** Program text that hashes a model and cuts one of its layers. */
const program = (modelFolder: string, model: string, slices: string): string => `
  const { openModel } = await import(${JSON.stringify(join(modelFolder, 'model-file.js'))});
  const { hashModel } = await import(${JSON.stringify(join(modelFolder, 'model-hash.js'))});
  const { planSlice } = await import(${JSON.stringify(join(modelFolder, 'slice-plan.js'))});
  const { cutSlice } = await import(${JSON.stringify(join(modelFolder, 'slice-cutter.js'))});
  const model = await openModel(${JSON.stringify(model)});
  const plan = planSlice(model, await hashModel(model), { first: 3, last: 3 });
  await cutSlice({ model, plan, folder: ${JSON.stringify(slices)} });
  console.log(JSON.stringify({ bytes: plan.bytes, residentBytes: process.resourceUsage().maxRSS * 1024 }));
`;

describe('a model of eight gigabytes', () => {
  it('is hashed and cut in less than 200 MB of memory', async (t) => {
    const path = join(folder, 'large.gguf');
    const slices = join(folder, 'slices');
    await writeSparseModel(path, { layers: 32, layerBytes: 2 ** 28 });
    await mkdir(slices);
    const text = program(join(import.meta.dirname, '../../model'), path, slices);
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', text]);
    const report = JSON.parse(stdout) as { bytes: number; residentBytes: number };
    t.diagnostic(`${(report.residentBytes / 1e6).toFixed(0)} MB resident`);
    assert.ok(report.bytes > 2 ** 28);
    assert.ok(report.residentBytes < 200e6, `${report.residentBytes} bytes`);
  });
});
