/** One host in the course of a deployment: what is known of it, and what has become of it. */
import { present } from '../../protocol/assert.ts';
import type { P4Error } from '../../protocol/errors.ts';
import type { HostName } from '../../protocol/ids.ts';
import type { InventoryHost } from '../../protocol/inventory.ts';
import type { HostLibraries } from '../release/host-libraries.ts';
import type { Session } from '../ssh/session.ts';
import type { ActualState } from './actual.ts';
import type { Change } from './difference.ts';
import type { HostFacts } from './facts.ts';
import type { MonitoringFacts } from './monitoring/monitoring-facts.ts';
import type { PhaseName } from './phase.ts';
import type { Recap } from './recap.ts';
import type { Resource } from './resource.ts';

export interface HostFailure {
  readonly phase: PhaseName;
  readonly error: P4Error;
  readonly isUnreachable: boolean;
}

/** `answers`: its agent has proved itself. `back`: it has again what it had. `between`: it could not go back. */
export type SwitchEnd = 'answers' | 'back' | 'between' | 'removed';

export class HostRun {
  readonly host: InventoryHost;
  #session: Session | null = null;
  #facts: HostFacts | null = null;
  #monitoring: MonitoringFacts | null = null;
  #actual: ActualState | null = null;
  #failure: HostFailure | null = null;
  #desired: readonly Resource[] = [];
  #changes: readonly Change[] = [];
  /** Texts of changes that were made; with `--check`, that would be. A change that is planned anew has the same text. */
  readonly #made = new Set<string>();
  /** The lock's folder was made by this run. */
  madeFolder = false;
  /** What it has of the libraries that a release wants; `null` before it was asked. */
  libraries: HostLibraries | null = null;
  isLocked = false;
  /** Whether the agent was switched or restarted by this run. */
  isSwitched = false;
  /** What became of a switch that began, or of a removal; `null` before. */
  end: SwitchEnd | null = null;
  #isFailureTold = false;

  constructor(host: InventoryHost) {
    this.host = host;
  }

  get name(): HostName {
    return this.host.name;
  }

  get hasFailed(): boolean {
    return this.#failure !== null;
  }

  get failure(): HostFailure | null {
    return this.#failure;
  }

  get isConnected(): boolean {
    return this.#session !== null;
  }

  get session(): Session {
    return present(this.#session, 'the host is connected');
  }

  set session(session: Session) {
    this.#session = session;
  }

  get facts(): HostFacts {
    return present(this.#facts, 'the facts of the host are known');
  }

  set facts(facts: HostFacts) {
    this.#facts = facts;
  }

  get hasFacts(): boolean {
    return this.#facts !== null;
  }

  /** Of the monitoring host alone. */
  get monitoring(): MonitoringFacts {
    return present(this.#monitoring, 'the host was asked for its monitoring');
  }

  set monitoring(monitoring: MonitoringFacts) {
    this.#monitoring = monitoring;
  }

  get actual(): ActualState {
    return present(this.#actual, 'the state of the host is known');
  }

  set actual(actual: ActualState) {
    this.#actual = actual;
  }

  get changes(): readonly Change[] {
    return this.#changes;
  }

  get desired(): readonly Resource[] {
    return this.#desired;
  }

  /** What shall be, and how it differs from what is. */
  plan(desired: readonly Resource[], changes: readonly Change[]): void {
    this.#desired = desired;
    this.#changes = changes;
  }

  changesIn(phase: PhaseName): readonly Change[] {
    return this.#changes.filter((change) => change.phase === phase && !this.#made.has(change.text));
  }

  noteMade(change: Change): void {
    this.#made.add(change.text);
  }

  /** With `--remove`: a piece that went, or with `--check` would. */
  noteRemoved(piece: string): void {
    this.#made.add(`remove ${piece}`);
  }

  /** They were taken back. */
  noteUndone(phases: readonly PhaseName[]): void {
    for (const { phase, text } of this.#changes) if (phases.includes(phase)) this.#made.delete(text);
  }

  /** The first failure counts. */
  fail(phase: PhaseName, error: P4Error): void {
    const isUnreachable = phase === 'connect' || error.code === 'HOST_LOST' || error.code === 'HOST_UNREACHABLE';
    this.#failure ??= { phase, error, isUnreachable };
  }

  /** The failure, once: it is told under the phase in which it happened. */
  untoldFailure(): HostFailure | null {
    if (this.#isFailureTold) return null;
    this.#isFailureTold = this.hasFailed;
    return this.#failure;
  }

  /** Phases of which changes were made and stand. */
  get standing(): ReadonlySet<PhaseName> {
    return new Set(this.#changes.filter(({ text }) => this.#made.has(text)).map(({ phase }) => phase));
  }

  /** Tells the failure in better words. */
  explain(error: P4Error): void {
    if (this.#failure !== null) this.#failure = { ...this.#failure, error };
  }

  get recap(): Recap {
    const changed = this.#made.size;
    const skipped = this.#changes.filter(({ text }) => !this.#made.has(text)).length;
    const isUnreachable = this.#failure?.isUnreachable === true;
    return {
      host: this.name,
      ok: Math.max(0, this.#desired.length - skipped),
      changed,
      unreachable: isUnreachable ? 1 : 0,
      failed: this.hasFailed && !isUnreachable ? 1 : 0,
      skipped,
    };
  }
}
