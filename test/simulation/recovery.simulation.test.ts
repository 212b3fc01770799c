/**
 * Seeded fleets that lose stages, links, agents, power and disks: what `npm run simulate` runs by the thousand. Each is
 * checked after every step and at its end (`checks.ts`, `journal-checks.ts`).
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import ts from 'typescript';
import { runMutation } from './mutation-report.ts';
import { mutated } from './mutation-hooks.ts';
import { mutations } from './mutations.ts';
import { replayCommand, runSeeds } from './seed-runs.ts';

const dist = join(import.meta.dirname, '..', '..');
const sources = join(dist, '..');

suite('a simulated fleet', () => {
  test('comes back from every loss with the same words, in 200 seeds', () => {
    const [failure] = runSeeds({ from: 0, count: 200 });
    assert.equal(failure, undefined, failure && `${failure.found}\n${replayCommand(failure.seed)}`);
  });

  test('runs the very functions that production runs', () => {
    const imported = (path: string): readonly string[] => {
      const text = readFileSync(join(sources, path), 'utf8');
      const folder = join(sources, path, '..');
      return [...text.matchAll(/import \{([^}]*)\} from '(\.[^']*)'/gs)].flatMap(([, names = '', from = '']) =>
        names.split(',').map((name) => `${name.trim()} of ${join(folder, from)}`),
      );
    };
    const both = (name: string, production: string, simulation: string): void => {
      const of = imported(production).find((word) => word.startsWith(`${name} of `));
      assert.ok(of !== undefined, `${production} imports ${name}`);
      assert.ok(imported(simulation).includes(of), `${simulation} imports the same ${name}`);
    };
    both('step', 'agent/shell.ts', 'test/simulation/shell-model.ts');
    both('effectTiming', 'agent/shell.ts', 'test/simulation/shell-model.ts');
    both('edgeFault', 'agent/rings.ts', 'test/simulation/agent-model.ts');
    both('edgesToDial', 'agent/rings.ts', 'test/simulation/agent-model.ts');
    both('HeadRecall', 'agent/standing-loads.ts', 'test/simulation/agent-model.ts');
    both('loaderStep', 'provisioner/loader.ts', 'test/simulation/ring-model.ts');
    both('StageCore', 'stage/compute-thread.ts', 'test/simulation/toy-stage.ts');
  });

  test('has every guard of the mutation list where the list says, once, and runs without it', () => {
    for (const mutation of mutations) {
      const text = readFileSync(join(dist, mutation.file), 'utf8');
      const changed = mutated(text, mutation);
      assert.notEqual(changed, text, mutation.name);
      const parsed = ts.transpileModule(changed, { fileName: 'changed.js', reportDiagnostics: true });
      const faults = (parsed.diagnostics ?? []).map(({ messageText }) => messageText);
      assert.deepEqual(faults, [], `${mutation.name} is JavaScript`);
    }
  });

  test('that lacks a guard is found out', () => {
    const { failures } = runMutation('rows are cut back to those that came home', { from: 0, count: 25 });
    assert.ok(failures.length > 0);
  });
});
