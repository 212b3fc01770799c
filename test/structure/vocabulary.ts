/** Error codes and limits are used by production code and say what they must; citations name invariants that exist. */
import ts from 'typescript';
import { isProduction, lineOf, matches, parse, walk, type Finding, type HouseFile } from './house-files.ts';

const errorsPath = 'protocol/errors.ts';
/** The table of error codes, also when it is spread over files. */
const errorTables = /^protocol\/errors?[-.]/;
const limitsPath = 'protocol/limits.ts';
const limitsTable = /^protocol\/limits\.ts$/;

/** What the rules need of one row of the table of error codes. */
export interface CodeWords {
  readonly says: string;
  readonly remedy: string;
}

/** `npm run bench` is a command for users, too. */
const isBenchmark = ({ path }: HouseFile): boolean => path.startsWith('test/bench/') && !path.endsWith('.test.ts');

/** Codes that no production file outside the table, and no benchmark, names. */
export function unusedCodes(codes: readonly string[], files: readonly HouseFile[]): readonly Finding[] {
  const used = new Set<string>();
  for (const file of [...productionBut(errorTables, files), ...files.filter(isBenchmark)]) {
    walk(parse(file), (node) => {
      if (ts.isStringLiteralLike(node)) used.add(node.text);
      // A handler table: Record<ErrorCode, …>.
      if (ts.isPropertyAssignment(node) && ts.isIdentifier(node.name)) used.add(node.name.text);
    });
  }
  return codes
    .filter((code) => !used.has(code))
    .map((code) => ({ path: errorsPath, line: 0, says: `${code} is used nowhere` }));
}

/** Rows of the table whose words are not a sentence each, or that share a sentence: two codes for one thing. */
export function poorlySaid(codes: Readonly<Record<string, CodeWords>>): readonly Finding[] {
  const rows = Object.entries(codes);
  return rows.flatMap(([code, { says, remedy }]) => {
    const found: string[] = [];
    if (!isSentence(says)) found.push(`${code} does not say in a sentence what happened`);
    if (!isSentence(remedy)) found.push(`${code} does not say in a sentence what to do`);
    const twin = rows.find(([other, words]) => other !== code && words.says === says);
    if (twin !== undefined) found.push(`${code} says the same as ${twin[0]}`);
    return found.map((words) => ({ path: errorsPath, line: 0, says: words }));
  });
}

const isSentence = (text: string): boolean => /^\S.*[.!?]$/su.test(text) && text.length > 10;

/** Limits that no production file outside limits.ts reads as `limits.<name>`. */
export function unusedLimits(names: readonly string[], files: readonly HouseFile[]): readonly Finding[] {
  const used = new Set<string>();
  for (const file of productionBut(limitsTable, files)) {
    walk(parse(file), (node) => {
      const isRead = ts.isPropertyAccessExpression(node) && ts.isIdentifier(node.expression);
      if (isRead && node.expression.text === 'limits') used.add(node.name.text);
    });
  }
  return names
    .filter((name) => !used.has(name))
    .map((name) => ({ path: limitsPath, line: 0, says: `limits.${name} is used nowhere` }));
}

/** Bounds in limits.ts without a reason: a comment of their own, or that of the bound above of the same thing. */
export function unreasonedLimits(limits: HouseFile): readonly Finding[] {
  const found: Finding[] = [];
  walk(parse(limits), (node) => {
    if (!ts.isPropertyAssignment(node) || !isBound(node)) return;
    if (hasComment(node) || (isSameThing(node, above(node)) && hasComment(above(node)))) return;
    found.push({ path: limits.path, line: lineOf(node), says: `${node.name.getText()} gives no reason` });
  });
  return found;
}

function hasComment(node: ts.Node | undefined): boolean {
  if (node === undefined) return false;
  return ts.getLeadingCommentRanges(node.getSourceFile().text, node.getFullStart()) !== undefined;
}

function above(node: ts.PropertyAssignment): ts.ObjectLiteralElementLike | undefined {
  const { properties } = node.parent;
  return properties[properties.indexOf(node) - 1];
}

/** Whether a bound continues the name of the one above, but for what it counts: `batchRecords` and `batchBytes`. */
function isSameThing(one: ts.PropertyAssignment, other: ts.ObjectLiteralElementLike | undefined): boolean {
  if (other?.name === undefined) return false;
  const thing = other.name.getText().replace(/[A-Z][a-z]+$/, '');
  return one.name.getText().startsWith(thing);
}

function isBound(node: ts.PropertyAssignment): boolean {
  const declaration = node.parent.parent;
  return ts.isVariableDeclaration(declaration) && declaration.name.getText() === 'bounds';
}

const productionBut = (table: RegExp, files: readonly HouseFile[]): readonly HouseFile[] =>
  files.filter(({ path }) => isProduction(path) && !table.test(path));

/** Codes of invariants that ARCHITECTURE.md lists: `**G1**` and the like. */
export function listedInvariants(architecture: HouseFile): ReadonlySet<string> {
  return new Set(matches(architecture, /\*\*[A-Z]\d+\*\*/g).map(({ found }) => found.replaceAll('*', '')));
}

/** Citations (`G1`, `J8`) of invariants that are not in the list. The letters are those of the list. */
export function unknownCitations(files: readonly HouseFile[], listed: ReadonlySet<string>): readonly Finding[] {
  const letters = [...new Set([...listed].map((code) => code.charAt(0)))].join('');
  if (letters === '') return [];
  const citation = new RegExp(`\\b[${letters}]\\d{1,2}\\b`, 'g');
  return files
    .flatMap((file) => matches(file, citation))
    .filter(({ found }) => !listed.has(found))
    .map(({ path, line, found }) => ({ path, line, says: `cites ${found}, which ARCHITECTURE.md does not list` }));
}
