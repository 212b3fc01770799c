/**
 * Imports point one way, and never in a circle when the program runs. Imports of types are gone by then: they keep to the
 * directions, but a part may take a type from the file it is a part of.
 */
import { posix } from 'node:path';
import ts from 'typescript';
import { isProduction, lineOf, parse, walk, type Finding, type HouseFile } from './house-files.ts';

/** What each folder may import besides itself. Processes meet only through p4.proto and the stage socket. */
const mayImport: ReadonlyMap<string, readonly string[]> = new Map([
  ['protocol', []],
  ['model', ['protocol']],
  ['stage', ['protocol', 'model']],
  ['transport', ['protocol']],
  ['agent', ['protocol', 'model', 'transport']],
  ['provisioner', ['protocol', 'model', 'transport']],
  ['bridge', ['protocol', 'transport']],
  ['grafana', ['protocol']],
]);

/** protocol/ has no I/O and no clock: these parts of Node, and these globals, stay out of its production files. */
const outsideWorld =
  /^(node:)?(fs|net|tls|http|https|http2|dgram|dns|child_process|cluster|worker_threads|timers|os|perf_hooks|readline|repl)(\/|$)/;
const clocks: ReadonlySet<string> = new Set([
  'Date',
  'performance',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'process',
]);

/** Pure parts of those. */
const pure: ReadonlySet<string> = new Set(['isIP', 'isIPv4', 'isIPv6', 'BlockList', 'createSecureContext']);

interface Import {
  readonly specifier: string;
  /** Whether it is gone when the program runs. */
  readonly isOfTypes: boolean;
  /** Names taken for their values; empty when everything is taken. */
  readonly names: readonly string[];
  /** Path of the imported file in the checkout; null for a package or a part of Node. */
  readonly target: string | null;
  readonly line: number;
}

export function importsOf(file: HouseFile): readonly Import[] {
  const found: Import[] = [];
  walk(parse(file), (node) => {
    const literal = specifierOf(node);
    if (literal === null) return;
    const isRelative = literal.text.startsWith('.');
    const target = isRelative ? posix.join(posix.dirname(file.path), literal.text) : null;
    found.push({
      specifier: literal.text,
      target,
      line: lineOf(node),
      isOfTypes: isOfTypes(node),
      names: valueNames(node),
    });
  });
  return found;
}

function isOfTypes(node: ts.Node): boolean {
  if (ts.isImportDeclaration(node)) return node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword;
  return ts.isImportTypeNode(node) || (ts.isExportDeclaration(node) && node.isTypeOnly);
}

function valueNames(node: ts.Node): readonly string[] {
  const bindings = ts.isImportDeclaration(node) ? node.importClause?.namedBindings : undefined;
  if (bindings === undefined || !ts.isNamedImports(bindings)) return [];
  return bindings.elements
    .filter((element) => !element.isTypeOnly)
    .map(({ name, propertyName }) => (propertyName ?? name).text);
}

function specifierOf(node: ts.Node): ts.StringLiteralLike | null {
  if ((ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && node.moduleSpecifier !== undefined) {
    return ts.isStringLiteralLike(node.moduleSpecifier) ? node.moduleSpecifier : null;
  }
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
    return ts.isStringLiteralLike(node.argument.literal) ? node.argument.literal : null;
  }
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
    const [argument] = node.arguments;
    return argument !== undefined && ts.isStringLiteralLike(argument) ? argument : null;
  }
  return null;
}

/** Imports that a folder may not have, and relative imports of files that do not exist. */
export function wrongDirections(files: readonly HouseFile[]): readonly Finding[] {
  const paths = new Set(files.map(({ path }) => path));
  return files.flatMap((file) =>
    importsOf(file).flatMap(({ target, line }) => {
      if (target === null) return [];
      if (!paths.has(target)) return [{ path: file.path, line, says: `imports ${target}, which is not there` }];
      const isAllowed = foldersOpenTo(file.path).includes(folderOf(target));
      return isAllowed ? [] : [{ path: file.path, line, says: `may not import ${target}` }];
    }),
  );
}

function foldersOpenTo(path: string): readonly string[] {
  const folder = folderOf(path);
  const open = [folder, ...(mayImport.get(folder) ?? [])];
  if (folder === 'test') return [...open, ...mayImport.keys()];
  return isProduction(path) ? open : [...open, 'test'];
}

const folderOf = (path: string): string => path.split('/')[0] ?? '';

/** Circles of imports between files, each told once, from where it was entered. */
export function circles(files: readonly HouseFile[]): readonly Finding[] {
  const targets = new Map(
    files.map((file) => [
      file.path,
      importsOf(file).flatMap(({ target, isOfTypes }) => (target === null || isOfTypes ? [] : [target])),
    ]),
  );
  const isDone = new Set<string>();
  const found: Finding[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path);
    if (start !== -1) {
      found.push({ path, line: 0, says: `imports itself: ${[...trail.slice(start), path].join(' -> ')}` });
      return;
    }
    if (isDone.has(path)) return;
    for (const target of targets.get(path) ?? []) visit(target, [...trail, path]);
    isDone.add(path);
  };
  for (const path of [...targets.keys()].sort()) visit(path, []);
  return found;
}

/** I/O and clocks in production files of protocol/. */
export function worldlyProtocol(files: readonly HouseFile[]): readonly Finding[] {
  const vocabulary = files.filter(({ path }) => folderOf(path) === 'protocol' && isProduction(path));
  return vocabulary.flatMap((file) => {
    const found: Finding[] = importsOf(file)
      .filter(({ specifier, isOfTypes }) => !isOfTypes && outsideWorld.test(specifier))
      .filter(({ names }) => names.length === 0 || !names.every((name) => pure.has(name)))
      .map(({ specifier, line }) => ({
        path: file.path,
        line,
        says: `protocol/ has no I/O and no clock: ${specifier}`,
      }));
    walk(parse(file), (node) => {
      if (!ts.isIdentifier(node) || !clocks.has(node.text) || isName(node)) return;
      found.push({ path: file.path, line: lineOf(node), says: `protocol/ has no I/O and no clock: ${node.text}` });
    });
    return found;
  });
}

/** Whether an identifier names a member or a declaration, rather than uses the global of that name. */
function isName(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) return parent.name === node;
  return (
    ts.isPropertySignature(parent) ||
    ts.isPropertyAssignment(parent) ||
    ts.isMethodDeclaration(parent) ||
    ts.isMethodSignature(parent)
  );
}

/** Name of the package that a specifier belongs to; null for files and parts of Node. */
export function packageOf(specifier: string): string | null {
  if (specifier.startsWith('.') || specifier.startsWith('node:')) return null;
  const [first = '', second = ''] = specifier.split('/');
  return first.startsWith('@') ? `${first}/${second}` : first;
}
