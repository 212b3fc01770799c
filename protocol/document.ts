/**
 * YAML 1.2 text made a plain value, with the way back: the line and column of each part of it.
 *
 * Only what means the same to every reader is taken: one document, text keys, each once, the core schema's types. Size,
 * nesting, nodes and aliases are bounded before anything is built, so no text makes the parser run away.
 */
import { Composer, LineCounter, Parser, isAlias, isMap, isNode, isScalar, isSeq, visit } from 'yaml';
import type { CST, Document, ErrorCode, YAMLError } from 'yaml';
import { shortened, type Fault, type Place } from './fault.ts';
import { segmentsOf } from './json-pointer.ts';
import { limits } from './limits.ts';

export interface PlainDocument {
  /** `null`, booleans, numbers, texts, lists and mappings; an empty document is `null`. */
  readonly value: unknown;
  /**
   * Where the value of a JSON pointer stands, or its key where `part` says so. What is not there is located at the
   * nearest value around it.
   */
  readonly locate: (pointer: string, part?: 'value' | 'key') => Place;
}

/** `document` is `null` where the text has no value that can be trusted; faults may stand beside one that has. */
export interface DocumentReading {
  readonly document: PlainDocument | null;
  readonly faults: readonly Fault[];
}

/** What a text should have had instead, by what the YAML parser objects to. */
const expectations: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'an alias without a tag or an anchor of its own',
  BAD_ALIAS: 'an alias (*name) of an anchor (&name) that stands before it',
  BAD_COLLECTION_TYPE: 'a list or mapping of the kind its tag names',
  BAD_DIRECTIVE: 'no directive but %YAML 1.2',
  BAD_DQ_ESCAPE: 'an escape sequence that YAML knows, or single quotes',
  BAD_INDENT: 'the indentation of the lines around it',
  BAD_PROP_ORDER: 'anchors and tags right before the value they belong to',
  BAD_SCALAR_START: 'a text that begins with another character, or quotes around it',
  BLOCK_AS_IMPLICIT_KEY: 'one key and its value on a line',
  BLOCK_IN_FLOW: 'no indented list or mapping inside brackets or braces',
  DUPLICATE_KEY: 'each key once',
  IMPOSSIBLE: 'YAML',
  KEY_OVER_1024_CHARS: 'a key of at most 1024 characters',
  MISSING_CHAR: 'the punctuation that closes or separates what stands before',
  MULTILINE_IMPLICIT_KEY: 'a key on one line, with its colon',
  MULTIPLE_ANCHORS: 'one anchor',
  MULTIPLE_DOCS: 'one document in the file',
  MULTIPLE_TAGS: 'one tag',
  NON_STRING_KEY: 'a text as key',
  RESOURCE_EXHAUSTION: 'fewer aliases',
  TAB_AS_INDENT: 'spaces: YAML does not allow tabs for indentation',
  TAG_RESOLVE_FAILED: 'no tag, or a value of the type its tag names',
  UNEXPECTED_TOKEN: 'YAML; this cannot stand here',
};

/**
 * Parses a text of at most `limits.documentBytes`.
 *
 * @param file the name that faults give the text's file
 */
export function readDocument(text: string, file: string): DocumentReading {
  const bytes = Buffer.byteLength(text);
  if (bytes > limits.documentBytes)
    return refused({ file, line: 1, column: 1 }, `${bytes} bytes`, `at most ${limits.documentBytes} bytes`);
  const lines = new LineCounter();
  const placeAt = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { file, line, column: col };
  };
  const tokens = [...new Parser(lines.addNewLine).parse(text)];
  const excess = excessIn(tokens);
  if (excess !== null) return refused(placeAt(excess.offset), excess.found, excess.expected);
  const options = { lineCounter: lines, prettyErrors: false, stringKeys: true, resolveKnownTags: false } as const;
  const documents = [...new Composer(options).compose(tokens, true, text.length)];
  const [document] = documents;
  if (document === undefined) return refused(placeAt(0), 'nothing', 'a document');
  const objections = [...document.errors, ...document.warnings].slice(0, limits.syntaxFaults);
  const faults = objections.map((error): Fault => ({ ...placeAt(error.pos[0]), ...objectionWords(error, text) }));
  for (const extra of documents.slice(1))
    faults.push(fault(placeAt(extra.range[0]), 'another document', expectations.MULTIPLE_DOCS));
  if (document.directives.yaml.version !== '1.2')
    faults.push(fault(placeAt(0), `%YAML ${document.directives.yaml.version}`, expectations.BAD_DIRECTIVE));
  for (const { offset, found, expected } of aliasTrouble(document))
    faults.push(fault(placeAt(offset), found, expected));
  const usable = documents.length === 1 && objections.every((error) => error.code === 'DUPLICATE_KEY');
  if (!usable || faults.length > objections.length) return { document: null, faults };
  return valueOf(document, { placeAt, faults });
}

interface Reading {
  readonly placeAt: (offset: number) => Place;
  readonly faults: readonly Fault[];
}

function valueOf(document: Document.Parsed, { placeAt, faults }: Reading): DocumentReading {
  try {
    const value: unknown = document.toJS({ maxAliasCount: limits.documentAliases });
    const locate = (pointer: string, part: 'value' | 'key' = 'value'): Place =>
      placeAt(offsetOf(document, pointer, part));
    return { document: { value, locate }, faults };
  } catch (error) {
    // The library's answer to aliases that multiply each other.
    if (!(error instanceof ReferenceError)) throw error;
    const found = 'aliases that repeat more than they are';
    return { document: null, faults: [...faults, fault(placeAt(0), found, expectations.RESOURCE_EXHAUSTION)] };
  }
}

const fault = (place: Place, found: string, expected: string): Fault => ({ ...place, path: '', found, expected });

const refused = (place: Place, found: string, expected: string): DocumentReading => ({
  document: null,
  faults: [fault(place, found, expected)],
});

/** The YAML parser's objection in a fault's words: the text it points at, and what belongs there. */
function objectionWords(error: YAMLError, text: string): Pick<Fault, 'path' | 'found' | 'expected'> {
  const end = Math.max(error.pos[1], error.pos[0] + 1);
  const [line = ''] = text.slice(error.pos[0], end).split('\n');
  const key = error.code === 'DUPLICATE_KEY' ? /^[^:\n]*/.exec(text.slice(error.pos[0]))?.[0] : undefined;
  const found = key === undefined ? snippetText(line) : `the key ${JSON.stringify(shortened(key.trim()))} again`;
  return { path: '', found, expected: expectations[error.code] };
}

const snippetText = (snippet: string): string =>
  snippet.trim() === '' ? (snippet.includes('\t') ? 'a tab' : 'the end of a line') : shortened(JSON.stringify(snippet));

interface Excess {
  readonly offset: number;
  readonly found: string;
  readonly expected: string;
}

/** Walks the syntax tree without recursion: the first token past the bounds, `null` where all is within them. */
function excessIn(tokens: readonly CST.Token[]): Excess | null {
  const open = tokens.map((token) => ({ token, depth: 0 })).reverse();
  let nodes = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { token, depth } = next;
    nodes += 1;
    const { offset } = token;
    if (nodes > limits.documentNodes)
      return { offset, found: 'more than that', expected: `at most ${limits.documentNodes} keys, values and items` };
    if (depth > limits.documentDepth)
      return { offset, found: 'deeper nesting', expected: `at most ${limits.documentDepth} levels` };
    const inner = token.type === 'document' ? [{ value: token.value }] : 'items' in token ? token.items : [];
    nodes += inner.length;
    for (const item of [...inner].reverse())
      for (const child of [item.value, 'key' in item ? item.key : null])
        if (child !== undefined && child !== null) open.push({ token: child, depth: depth + 1 });
  }
  return null;
}

/** Aliases past the bound, and those that stand inside the value they repeat. */
function aliasTrouble(document: Document.Parsed): readonly Excess[] {
  const trouble: Excess[] = [];
  let aliases = 0;
  visit(document, {
    Alias(_key, alias) {
      aliases += 1;
      const offset = alias.range?.[0] ?? 0;
      const source = alias.resolve(document);
      if (aliases === limits.documentAliases + 1)
        trouble.push({ offset, found: 'one alias more', expected: `at most ${limits.documentAliases} aliases` });
      else if (source === undefined)
        trouble.push({ offset, found: `*${alias.source}`, expected: expectations.BAD_ALIAS });
      else if (source.range && source.range[0] <= offset && offset < source.range[2])
        trouble.push({ offset, found: `*${alias.source} inside its own value`, expected: expectations.BAD_ALIAS });
    },
  });
  return trouble;
}

/** Where a pointer leads in the text; a missing last part leads to what should hold it. */
function offsetOf(document: Document.Parsed, pointer: string, part: 'value' | 'key'): number {
  let node: unknown = document.contents;
  let offset = startOf(node) ?? 0;
  const segments = segmentsOf(pointer);
  for (const [depth, segment] of segments.entries()) {
    const step = stepInto(isAlias(node) ? node.resolve(document) : node, segment);
    if (step === null) return offset;
    node = step.value;
    const keyWanted = part === 'key' && depth === segments.length - 1;
    offset = (keyWanted ? null : startOf(node)) ?? startOf(step.key) ?? offset;
  }
  return offset;
}

/** The child that a segment names, with its key where it has one. The last of doubled keys is the one that counts. */
function stepInto(node: unknown, segment: string): { readonly key: unknown; readonly value: unknown } | null {
  if (isSeq(node)) {
    const value = node.items[Number(segment)];
    return value === undefined ? null : { key: null, value };
  }
  if (!isMap(node)) return null;
  const pair = node.items.findLast(({ key }) => isScalar(key) && String(key.value) === segment);
  return pair === undefined ? null : { key: pair.key, value: pair.value };
}

const startOf = (node: unknown): number | null => (isNode(node) ? (node.range?.[0] ?? null) : null);
