/** Files are kebab-case nouns that say what is in them, and none only passes on what others export. */
import ts from 'typescript';
import { parse, type Finding, type HouseFile } from './house-files.ts';

const kebabCase = /^[a-z0-9]+(-[a-z0-9]+)*$/;

/** Words that fit every file and therefore none. */
const empty: ReadonlySet<string> = new Set(
  ['util', 'helper', 'manager', 'common', 'info', 'misc'].flatMap((word) => [word, `${word}s`]).concat('data', 'index'),
);

/** Files and folders whose names are not kebab-case, or say nothing. */
export function wrongNames(files: readonly HouseFile[]): readonly Finding[] {
  return files.flatMap(({ path }) => {
    const parts = path.split('/');
    const names = parts.map((part, depth) =>
      depth === parts.length - 1 ? part.replace(/(\.[a-z]+)*\.ts$/, '') : part,
    );
    return names.flatMap((name) => {
      const found: Finding[] = [];
      if (!kebabCase.test(name)) found.push({ path, line: 0, says: `${name} is not kebab-case` });
      const word = name.split('-').find((part) => empty.has(part));
      if (word !== undefined) found.push({ path, line: 0, says: `"${word}" says nothing about what is in it` });
      return found;
    });
  });
}

/** Files that only pass on what others export. */
export function barrels(files: readonly HouseFile[]): readonly Finding[] {
  return files.filter(isBarrel).map(({ path }) => ({ path, line: 0, says: 'only passes on what other files export' }));
}

function isBarrel(file: HouseFile): boolean {
  const { statements } = parse(file);
  const passesOn = (statement: ts.Statement): boolean =>
    ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement);
  return statements.some((statement) => ts.isExportDeclaration(statement)) && statements.every(passesOn);
}
