/** A file is about 250 lines, 400 at most; a function 70 at most, without blank lines and comments. */
import ts from 'typescript';
import { lineOf, parse, walk, type Finding, type HouseFile } from './house-files.ts';

export const fileLines = { aim: 250, most: 400 };
const functionLinesMost = 70;

export const lineCount = ({ text }: HouseFile): number => text.trimEnd().split('\n').length;

export function longFiles(files: readonly HouseFile[]): readonly Finding[] {
  return files
    .filter((file) => lineCount(file) > fileLines.most)
    .map((file) => ({
      path: file.path,
      line: 0,
      says: `has ${String(lineCount(file))} lines; ${String(fileLines.most)} is the most`,
    }));
}

/** Functions that are too long. A suite's body is exempt: its tests are the units. */
export function longFunctions(files: readonly HouseFile[]): readonly Finding[] {
  return files.flatMap((file) => {
    const found: Finding[] = [];
    walk(parse(file), (node) => {
      if (!ts.isFunctionLike(node) || isSuiteBody(node)) return;
      const lines = codeLines(node);
      if (lines <= functionLinesMost) return;
      const says = `a function of ${String(lines)} lines; ${String(functionLinesMost)} is the most`;
      found.push({ path: file.path, line: lineOf(node), says });
    });
    return found;
  });
}

function isSuiteBody(node: ts.Node): boolean {
  const { parent } = node;
  return (
    ts.isCallExpression(parent) &&
    ts.isIdentifier(parent.expression) &&
    ['suite', 'describe'].includes(parent.expression.text)
  );
}

/** Lines of a node on which some of its code stands. */
function codeLines(node: ts.Node): number {
  const source = node.getSourceFile();
  const lines = new Set<number>();
  const visit = (part: ts.Node): void => {
    if (part.getChildCount(source) > 0) {
      part.getChildren(source).forEach(visit);
      return;
    }
    const first = source.getLineAndCharacterOfPosition(part.getStart(source)).line;
    const last = source.getLineAndCharacterOfPosition(part.end).line;
    for (let line = first; line <= last && part.end > part.getStart(source); line += 1) lines.add(line);
  };
  visit(node);
  return lines.size;
}
