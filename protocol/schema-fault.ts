/**
 * Checks a document against a JSON Schema, and says what is wrong in an operator's words.
 *
 * Every schema here describes each of its parts in words that follow "expected"; the faults are made of those.
 */
import { Ajv } from 'ajv';
import type { AnySchemaObject, ErrorObject, ValidateFunction } from 'ajv';
import { assert } from './assert.ts';
import type { PlainDocument } from './document.ts';
import { shownValue, type Fault } from './fault.ts';
import { isDnsName, isIpAddress, isZonedIpv6 } from './ip-address.ts';
import { pointerTo } from './json-pointer.ts';
import { memberOf } from './plain-value.ts';

// `verbose` puts the schema and the value into each error; the words come from there.
const ajv = new Ajv({ allErrors: true, verbose: true, strictTypes: false, addUsedSchema: false });
ajv.addFormat('address', (text: string) => isIpAddress(text) || isZonedIpv6(text) || isDnsName(text));
ajv.addFormat('ip-address', isIpAddress);

/** A check of values; `Checked` is the type of those that satisfy it. */
export interface SchemaCheck<Checked> {
  (value: unknown): value is Checked;
  /** Of the last check that was made; `null` before the first and after a good one. */
  errors: readonly ErrorObject[] | null;
}

/**
 * A check by a schema. It is made ready when it is first used: that takes a command longer than most of what it does, and
 * no command uses all of them.
 */
export function compiledSchema<Checked>(schema: AnySchemaObject): SchemaCheck<Checked> {
  let compiled: ValidateFunction<Checked> | null = null;
  const lazily = (value: unknown): value is Checked => {
    compiled ??= ajv.compile<Checked>(schema);
    const isGood = compiled(value);
    check.errors = compiled.errors ?? null;
    return isGood;
  };
  const check: SchemaCheck<Checked> = Object.assign(lazily, { errors: null });
  return check;
}

/** All of a document's departures from the schema its last check was made with. */
export const schemaFaults = (errors: readonly ErrorObject[], document: PlainDocument): readonly Fault[] =>
  errors.flatMap((error) => {
    const departure = departureOf(error);
    if (departure === null) return [];
    const { path, found, expected, part } = departure;
    return [{ ...document.locate(path, part), path, found, expected }];
  });

interface Departure {
  readonly path: string;
  readonly found: string;
  readonly expected: string;
  readonly part: 'value' | 'key';
}

function departureOf(error: ErrorObject): Departure | null {
  const { instancePath, keyword, params, propertyName } = error;
  const schema: unknown = error.parentSchema;
  switch (keyword) {
    case 'required': {
      const key = textOf(memberOf(params, 'missingProperty'));
      const expected = descriptionOf(memberOf(memberOf(schema, 'properties'), key));
      return { path: instancePath + pointerTo(key), found: 'nothing', expected, part: 'value' };
    }
    case 'additionalProperties': {
      const key = textOf(memberOf(params, 'additionalProperty'));
      const known = Object.keys(memberOf(schema, 'properties') ?? {}).join(', ');
      const found = `the unknown key ${shownValue(key)}`;
      return { path: instancePath + pointerTo(key), found, expected: `one of the keys ${known}`, part: 'key' };
    }
    case 'propertyNames': {
      const key = textOf(memberOf(params, 'propertyName'));
      const expected = descriptionOf(memberOf(schema, 'propertyNames'));
      return { path: instancePath + pointerTo(key), found: shownValue(key), expected, part: 'key' };
    }
    // The branch taken has said what is wrong.
    case 'if':
      return null;
    default:
      // The name's own fault; `propertyNames` tells it.
      if (propertyName !== undefined) return null;
      return { path: instancePath, found: foundText(error), expected: descriptionOf(schema), part: 'value' };
  }
}

/** What is there; a number or a boolean where a text belongs gets a hint. */
function foundText({ keyword, params, data }: ErrorObject): string {
  const unquoted = keyword === 'type' && (typeof data === 'number' || typeof data === 'boolean');
  if (unquoted && memberOf(params, 'type') === 'string') return `the ${typeof data} ${String(data)} without quotes`;
  return shownValue(data);
}

const descriptionOf = (schema: unknown): string => textOf(memberOf(schema, 'description'));

function textOf(value: unknown): string {
  assert(typeof value === 'string', 'the schema describes this part');
  return value;
}
