import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { houseFiles, tell, typescriptFiles } from './house-files.ts';
import { circles, importsOf, packageOf, worldlyProtocol, wrongDirections } from './imports.ts';

const files = typescriptFiles(houseFiles());

suite('imports of this checkout', () => {
  test('point one way', () => {
    assert.deepEqual(wrongDirections(files).map(tell), []);
  });

  test('make no circle', () => {
    assert.deepEqual(circles(files).map(tell), []);
  });

  test('keep I/O and clocks out of protocol/', () => {
    assert.deepEqual(worldlyProtocol(files).map(tell), []);
  });

  test('are found at all', () => {
    assert.ok(files.length > 10, `only ${String(files.length)} files were looked at`);
    assert.ok(files.flatMap(importsOf).some(({ target }) => target === 'protocol/assert.ts'));
  });
});

suite('import rules see', () => {
  const at = (path: string, text: string): { path: string; text: string } => ({ path, text });
  const directionsOf = (path: string, specifier: string, target: string): readonly string[] =>
    wrongDirections([at(path, `import { a } from '${specifier}';`), at(target, '')]).map(tell);

  test('another process’s folder', () => {
    assert.deepEqual(directionsOf('agent/a.ts', '../stage/b.ts', 'stage/b.ts'), [
      'agent/a.ts:1: may not import stage/b.ts',
    ]);
    assert.equal(directionsOf('provisioner/a.ts', '../agent/b.ts', 'agent/b.ts').length, 1);
    assert.equal(directionsOf('agent/a.test.ts', '../stage/b.ts', 'stage/b.ts').length, 1);
  });

  test('what may know less than it wants to', () => {
    assert.equal(directionsOf('protocol/a.ts', '../model/b.ts', 'model/b.ts').length, 1);
    assert.equal(directionsOf('stage/a.ts', '../transport/b.ts', 'transport/b.ts').length, 1);
    assert.equal(directionsOf('model/a.ts', '../stage/b.ts', 'stage/b.ts').length, 1);
    assert.equal(directionsOf('bridge/a.ts', '../model/b.ts', 'model/b.ts').length, 1);
  });

  test('production that leans on tests', () => {
    assert.equal(directionsOf('stage/a.ts', '../test/b.ts', 'test/b.ts').length, 1);
    assert.deepEqual(directionsOf('stage/a.test.ts', '../test/b.ts', 'test/b.ts'), []);
  });

  test('a file that is not there', () => {
    assert.deepEqual(directionsOf('stage/a.ts', './gone.ts', 'stage/b.ts'), [
      'stage/a.ts:1: imports stage/gone.ts, which is not there',
    ]);
  });

  test('every way to import', () => {
    const ways = ["import '../stage/b.ts';", "export * from '../stage/b.ts';", "await import('../stage/b.ts');"];
    ways.push(
      "import type { A } from '../stage/b.ts';",
      "type A = import('../stage/b.ts').A;",
      "export { a } from '../stage/b.ts';",
    );
    for (const text of ways) {
      assert.equal(wrongDirections([at('agent/a.ts', text), at('stage/b.ts', '')]).length, 1, text);
    }
  });

  test('what is allowed, and stay silent', () => {
    assert.deepEqual(directionsOf('agent/link/a.ts', '../../protocol/b.ts', 'protocol/b.ts'), []);
    assert.deepEqual(directionsOf('stage/a.ts', '../model/b.ts', 'model/b.ts'), []);
    assert.deepEqual(directionsOf('test/a.ts', '../agent/b.ts', 'agent/b.ts'), []);
    assert.deepEqual(
      circles([at('a.ts', "import './b.ts'; import './c.ts';"), at('b.ts', "import './c.ts';"), at('c.ts', '')]),
      [],
    );
  });

  test('circles, once each', () => {
    const circle = [
      at('x/a.ts', "import { b } from './b.ts';"),
      at('x/b.ts', "import './c.ts';"),
      at('x/c.ts', "import { type A } from './a.ts';"),
    ];
    assert.deepEqual(circles(circle).map(tell), ['x/a.ts: imports itself: x/a.ts -> x/b.ts -> x/c.ts -> x/a.ts']);
    assert.deepEqual(circles([at('a.ts', "import './b.ts';"), at('b.ts', "import type { A } from './a.ts';")]), []);
  });

  test('I/O and clocks in protocol/', () => {
    const worldly = (text: string): number => worldlyProtocol([at('protocol/a.ts', text)]).length;
    assert.equal(worldly("import { readFileSync } from 'node:fs';"), 1);
    assert.equal(worldly("import { once } from 'node:timers/promises';"), 1);
    assert.equal(worldly("import { connect, isIP } from 'node:net';"), 1);
    assert.equal(worldly("import net from 'node:net';"), 1);
    assert.equal(worldly("import { isIP } from 'node:net'; import type { Socket } from 'node:net';"), 0);
    assert.equal(worldly('const at = Date.now();'), 1);
    assert.equal(worldly('setTimeout(() => {}, 1);'), 1);
    assert.equal(worldly("import { createHash } from 'node:crypto'; const a = { process: 1 }; a.process;"), 0);
    assert.deepEqual(worldlyProtocol([at('protocol/a.test.ts', 'Date.now();')]), []);
  });

  test('which package a specifier means', () => {
    assert.equal(packageOf('@grpc/grpc-js/build/x'), '@grpc/grpc-js');
    assert.equal(packageOf('koffi'), 'koffi');
    assert.equal(packageOf('node:fs'), null);
    assert.equal(packageOf('./a.ts'), null);
  });
});
