/**
 * Runs one test file in a process of its own and tells what became of every test in it.
 *
 * What node's runner lets pass is a failure here: a file that reports no test (empty, or it called `process.exit`), and a
 * test that was begun and never ended.
 */
import { existsSync } from 'node:fs';
import { run } from 'node:test';
import { finished } from 'node:stream/promises';
import { inspect } from 'node:util';

export interface FailedTest {
  /** Names from the outermost suite to the test. */
  readonly name: string;
  /** What was thrown, with its stack and causes. */
  readonly why: string;
}

export interface SkippedTest {
  readonly name: string;
  readonly why: string;
}

export interface FileOutcome {
  readonly passed: number;
  readonly failed: readonly FailedTest[];
  readonly skipped: readonly SkippedTest[];
  /** What tests said by `t.diagnostic`: measured figures. */
  readonly diagnostics: readonly string[];
  /** What the file wrote, standard output and error together: shown when it failed. */
  readonly output: string;
  readonly durationMs: number;
}

export interface FileRun {
  /** Absolute path of the built test file. */
  readonly path: string;
  /** Milliseconds after which the process is ended. */
  readonly timeoutMs: number;
}

export async function runFile({ path, timeoutMs }: FileRun): Promise<FileOutcome> {
  const startedAtMs = performance.now();
  const record = new FileRecord(path);
  if (existsSync(path)) {
    const stream = run({ files: [path], concurrency: 1, timeout: timeoutMs });
    record.listen(stream);
    stream.resume();
    await finished(stream);
  } else {
    record.failed.push({ name: path, why: 'this test was not built' });
  }
  return record.outcome(performance.now() - startedAtMs);
}

/** The part of node's reports that is read here. */
interface TestReport {
  readonly name: string;
  readonly nesting: number;
  readonly details: { readonly type?: 'suite'; readonly error?: Error };
  readonly skip?: string | boolean;
  readonly todo?: string | boolean;
}

/** What has been reported of one file so far. */
class FileRecord {
  readonly path: string;
  readonly failed: FailedTest[] = [];
  readonly #skipped: SkippedTest[] = [];
  readonly #diagnostics: string[] = [];
  readonly #unfiled: string[] = [];
  readonly #output: string[] = [];
  /** Names that enclose the report being read, by nesting. */
  readonly #names: string[] = [];
  /** Tests that were announced and have not ended, by name, with how often. */
  readonly #begun = new Map<string, number>();
  #passed = 0;
  #reported = 0;

  constructor(path: string) {
    this.path = path;
  }

  listen(stream: ReturnType<typeof run>): void {
    stream.on('test:enqueue', ({ name }) => {
      if (name !== this.path) this.#begun.set(name, (this.#begun.get(name) ?? 0) + 1);
    });
    stream.on('test:start', ({ name, nesting }) => {
      this.#names.splice(nesting, Infinity, name);
    });
    stream.on('test:pass', (test: TestReport) => {
      this.#pass(test);
    });
    stream.on('test:fail', (test: TestReport) => {
      this.#fail(test);
    });
    stream.on('test:diagnostic', ({ message, file }) => {
      (file === undefined ? this.#unfiled : this.#diagnostics).push(message);
    });
    for (const event of ['test:stdout', 'test:stderr']) {
      stream.on(event, ({ message }: { readonly message: string }) => {
        this.#output.push(message);
      });
    }
  }

  outcome(durationMs: number): FileOutcome {
    if (this.#reported === 0 && this.failed.length === 0) {
      this.failed.push({ name: this.path, why: 'the file reported no test: it has none, or it ended its own process' });
    }
    const unfinished = [...this.#begun].filter(([, count]) => count > 0).map(([name]) => name);
    if (unfinished.length > 0) this.failed.push({ name: unfinished.join(', '), why: 'begun and never ended' });
    return {
      passed: this.#passed,
      failed: this.failed,
      skipped: this.#skipped,
      diagnostics: this.#diagnostics,
      output: [...this.#output, ...this.#unfiled.filter((line) => !isCount(line)).map((line) => `${line}\n`)].join(''),
      durationMs,
    };
  }

  #pass(test: TestReport): void {
    if (!this.#end(test) || test.details.type === 'suite') return;
    if (isSet(test.skip)) this.#skipped.push({ name: this.#fullName(test), why: String(test.skip) });
    else if (isSet(test.todo)) this.#skipped.push({ name: this.#fullName(test), why: 'not written' });
    else this.#passed += 1;
  }

  #fail(test: TestReport): void {
    const { error } = test.details;
    const isFile = !this.#end(test);
    const failureType = error !== undefined && 'failureType' in error ? error.failureType : undefined;
    // A parent fails with its children, who are counted themselves.
    if (failureType === 'subtestsFailed') return;
    const why = whatWasThrown(error?.cause instanceof Error ? error.cause : error);
    this.failed.push({
      name: isFile ? this.path : this.#fullName(test),
      why: isFile ? whyOfFile(failureType, why) : why,
    });
  }

  /** Notes that a report ended what was announced; false for node's report about the file itself. */
  #end(test: TestReport): boolean {
    if (test.name === this.path && test.nesting === 0) return false;
    this.#reported += 1;
    this.#begun.set(test.name, (this.#begun.get(test.name) ?? 0) - 1);
    return true;
  }

  #fullName(test: TestReport): string {
    return [...this.#names.slice(0, test.nesting), test.name].join(' > ');
  }
}

/** An assertion's message already shows both values; of other errors their fields are shown too. */
function whatWasThrown(error: Error | undefined): string {
  const isAssertion = error !== undefined && 'code' in error && error.code === 'ERR_ASSERTION';
  return isAssertion ? (error.stack ?? error.message) : inspect(error, { depth: 6 });
}

function whyOfFile(failureType: unknown, why: string): string {
  return failureType === 'testTimeoutFailure'
    ? 'ended: it ran longer than its tier allows'
    : `its process failed\n${why}`;
}

const isSet = (mark: string | boolean | undefined): boolean => mark !== undefined && mark !== false;

/** Node closes with its own counts, as diagnostics of no file. */
const isCount = (line: string): boolean =>
  /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/.test(line);
