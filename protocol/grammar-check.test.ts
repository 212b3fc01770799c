import assert from 'node:assert/strict';
import { test } from 'node:test';

import { P4Error } from './errors.ts';
import { checkGrammar } from './grammar-check.ts';
import { soundGrammars } from './sound-grammars.ts';

/** The problem a grammar has, with its place. */
const unsound: readonly (readonly [grammar: string, problem: RegExp, place: RegExp])[] = [
  ['', /no rule called root/, /line: 1/],
  ['start ::= "x"', /no rule called root/, /line: 1/],
  ['root ::= word', /no rule called word/, /column: 10/],
  ['root ::= "x"\nitem := "y"', /expected ::=/, /line: 2/],
  ['root ::= "x', /before the end/, /column: 12/],
  ['root ::= [a-', /before the end/, /column: 13/],
  ['root ::= ("x"', /expected \)/, /column: 14/],
  ['root ::= "x" )', /expected a newline/, /column: 14/],
  ['root ::= "\\q"', /unknown escape/, /column: 11/],
  ['root ::= "\\x4"', /unknown escape/, /column: 11/],
  ['root ::= *', /something to repeat/, /column: 10/],
  ['root ::= ""*', /nothing is repeated/, /column: 12/],
  ['root ::= "a"{3,1}', /fewer than the least/, /line: 1/],
  ['root ::= "a"{1', /expected }/, /line: 1/],
  ['root ::= "a"{2001}', /more than 2000 repetitions/, /line: 1/],
  ['root ::= <think>', /token ids are not supported/, /column: 10/],
  ['root ::= !<[5]>', /token ids are not supported/, /column: 10/],
  ['root ::= root "a" | "b"', /begins with itself/, /column: 10/],
  // llama.cpp does not see that `nothing` is empty by way of another rule, and goes on for ever.
  ['root ::= x\nx ::= nothing x "c"\nnothing ::= none\nnone ::= ""', /begins with itself/, /line: 2/],
  ['root ::= "a\0"', /NUL/, /column: 12/],
  [`root ::= ${'('.repeat(70)}"a"${')'.repeat(70)}`, /more than 64 groups/, /line: 1/],
  [`root ::= "${'a'.repeat(30_000)}"{1000}`, /too large/, /line: 1/],
  [doubling(20), /too many ways/, /line: 1/],
  [
    Array.from({ length: 1100 }, (_, index) => `r${index} ::= "a"`).join('\n') + '\nroot ::= r1',
    /more than 1024 rules/,
    /line/,
  ],
];

/** Rules of which each may be the next twice or nothing: 2^n ways to begin. */
function doubling(depth: number): string {
  const rules = Array.from({ length: depth }, (_, index) => `r${index} ::= r${index + 1} r${index + 1} | ""`);
  return ['root ::= r0', ...rules, `r${depth} ::= "a"?`].join('\n');
}

test('grammars that llama.cpp reads pass', () => {
  for (const grammar of Object.values(soundGrammars)) checkGrammar(grammar);
});

for (const [grammar, problem, place] of unsound) {
  test(`refused: ${JSON.stringify(grammar.slice(0, 40))}: ${String(problem)}`, () => {
    assert.throws(
      () => {
        checkGrammar(grammar);
      },
      (error) => {
        assert.ok(error instanceof P4Error && error.code === 'SAMPLER_GRAMMAR', String(error));
        assert.match(error.message, problem);
        assert.match(error.message, place);
        return true;
      },
    );
  });
}

test('a grammar beyond the bound is refused unread', () => {
  assert.throws(
    () => {
      checkGrammar(`root ::= "${'a'.repeat(70_000)}"`);
    },
    (error) => error instanceof P4Error && error.code === 'INVALID_ARGUMENT',
  );
});
