/** Checks of the JSON files in the state folder. */
import { readDocument } from '../protocol/document.ts';
import { orderedFaults, type Fault } from '../protocol/fault.ts';
import { schemaFaults, type SchemaCheck } from '../protocol/schema-fault.ts';

export type StateReading<Checked> =
  | { readonly kind: 'value'; readonly value: Checked }
  /** Never with what was found: it may be a generation (G4) or a key. */
  | { readonly kind: 'damaged'; readonly why: readonly string[] };

/** @param file the name that the reasons give the text's file */
export function readStateText<Checked>(text: string, file: string, check: SchemaCheck<Checked>): StateReading<Checked> {
  // JSON is YAML 1.2, and this reader knows the lines.
  const { document, faults } = readDocument(text, file);
  if (document === null) return damaged(faults);
  const { value } = document;
  const hasShape = check(value);
  const all = [...faults, ...schemaFaults(check.errors ?? [], document)];
  return hasShape && all.length === 0 ? { kind: 'value', value } : damaged(all);
}

const damaged = (faults: readonly Fault[]): StateReading<never> => ({
  kind: 'damaged',
  why: orderedFaults(faults).map(
    ({ line, path, expected }) => `line ${line}: ${path === '' ? 'the file' : path} should be ${expected}`,
  ),
});

/** As it is written: for people to read, too. */
export const stateText = (value: object): string => `${JSON.stringify(value, null, 2)}\n`;
