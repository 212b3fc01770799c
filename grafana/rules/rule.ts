/** What a file of rules is made of; `rule-file.ts` writes it. */
import type { Windows } from '../windows.ts';

export interface RuleGroup {
  readonly name: string;
  readonly rules: readonly Rule[];
}

export type Rule = RecordingRule | AlertRule;

/** The result of an expression, under a name. Rules of one group see what those before them found. */
export interface RecordingRule {
  readonly kind: 'recording';
  /** `level:metric:operation`; the level is what it is one value of. */
  readonly name: string;
  readonly expression: string;
}

/** `critical`: requests fail or wait now. `warning`: they will, or take longer than they did. */
export type Severity = 'critical' | 'warning';

export interface AlertRule {
  readonly kind: 'alert';
  readonly name: string;
  readonly expression: string;
  /** How long the expression must hold before it is told. */
  readonly holds: keyof Windows['holdSeconds'];
  readonly severity: Severity;
  /** One line; labels and value as templates of Prometheus. */
  readonly summary: string;
  /** The first thing to do; the runbook has the rest. */
  readonly action: string;
}

export const recording = (name: string, expression: string): RecordingRule => ({ kind: 'recording', name, expression });
export const alert = (rule: Omit<AlertRule, 'kind'>): AlertRule => ({ kind: 'alert', ...rule });
