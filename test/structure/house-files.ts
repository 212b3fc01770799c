/**
 * The files of the checkout as the structure rules see them. A rule is a function from files to findings, so that each can
 * be shown to fail on files that break it.
 */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import ts from 'typescript';

/** A text file; `path` is relative to the checkout, with slashes. */
export interface HouseFile {
  readonly path: string;
  readonly text: string;
}

/** One breach of a rule. `line` is 1-based; 0 is the file as a whole. */
export interface Finding {
  readonly path: string;
  readonly line: number;
  readonly says: string;
}

/** This file is built to `dist/test/structure/`. */
export const checkout = dirname(dirname(dirname(import.meta.dirname)));

/** Every text file that is, or would be, committed. */
export function houseFiles(): readonly HouseFile[] {
  return list('').flatMap((path) => {
    const bytes = readFileSync(join(checkout, path));
    return bytes.includes(0) ? [] : [{ path, text: bytes.toString('utf8') }];
  });
}

export const typescriptFiles = (files: readonly HouseFile[]): readonly HouseFile[] =>
  files.filter(({ path }) => path.endsWith('.ts'));

/** Code that runs for a user: neither a test nor anything in `test/`. */
export const isProduction = (path: string): boolean =>
  path.endsWith('.ts') && !path.startsWith('test/') && !path.endsWith('.test.ts');

const parsed = new WeakMap<HouseFile, ts.SourceFile>();

export function parse(file: HouseFile): ts.SourceFile {
  const known = parsed.get(file);
  if (known !== undefined) return known;
  const source = ts.createSourceFile(file.path, file.text, ts.ScriptTarget.Latest, true);
  parsed.set(file, source);
  return source;
}

/** Calls `visit` with every node below `root`, parents first. */
export function walk(root: ts.Node, visit: (node: ts.Node) => void): void {
  ts.forEachChild(root, (node) => {
    visit(node);
    walk(node, visit);
  });
}

export function lineOf(node: ts.Node): number {
  const source = node.getSourceFile();
  return source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
}

/** Every place in a file where a pattern (with the global flag) matches. */
export function matches(
  { path, text }: HouseFile,
  pattern: RegExp,
): readonly { line: number; found: string; path: string }[] {
  return text
    .split('\n')
    .flatMap((words, index) => [...words.matchAll(pattern)].map(([found]) => ({ path, line: index + 1, found })));
}

/** A finding as a line for a person; what a test compares. */
export const tell = ({ path, line, says }: Finding): string =>
  `${path}${line === 0 ? '' : `:${String(line)}`}: ${says}`;

function list(folder: string): readonly string[] {
  const isIgnored = ignored();
  return readdirSync(join(checkout, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (isIgnored(entry.name)) return [];
    return entry.isDirectory() ? list(path) : [path];
  });
}

/** Reads the plain names and `*.suffix` lines that `.gitignore` is kept to. */
function ignored(): (name: string) => boolean {
  const file = join(checkout, '.gitignore');
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
  const rules = ['.git', ...lines.map((line) => basename(line.trim())).filter((line) => line !== '')];
  return (name) => rules.some((rule) => (rule.startsWith('*') ? name.endsWith(rule.slice(1)) : name === rule));
}
