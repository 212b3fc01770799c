/** Values of the stages of a ring on this host: what the plan says, and what each told last. */
import { layersText } from '../../protocol/plan.ts';
import type { StageReport } from '../../protocol/stage-control.ts';
import type { LiveRing } from '../state.ts';
import type { RingMeter } from './ring-meter.ts';
import type { Samples } from './samples.ts';
import type { StageFigures } from './stage-figures.ts';

export interface MeteredStages {
  readonly ring: LiveRing;
  readonly meter: RingMeter;
  readonly figures: readonly StageFigures[];
  readonly nowMs: number;
}

export function addStages(samples: Samples, { ring: live, meter, figures, nowMs }: MeteredStages): void {
  const { ring, plan, nodes } = live;
  for (const [node, state] of nodes) {
    const labels = { ring, stage: String(node) };
    const planned = plan.stages[node];
    if (planned === undefined) continue;
    const { layers, device, threads } = planned;
    samples.addInfo('p4_stage_info', {
      ...labels,
      ...{ layers: layersText(layers), device: device.kind, threads: String(threads) },
    });
    samples.addState('p4_stage_up', labels, state.kind === 'loaded');
    samples.add('p4_stage_restarts_total', labels, meter.stageLosses.get(node) ?? 0);
    samples.add('p4_stage_kv_cells_limit', labels, plan.contextTokens * plan.sessions);
    const told = figures.find((each) => each.node === node);
    samples.add('p4_stage_load_progress_ratio', labels, told?.loaded ?? 0);
    if (told !== undefined) addTold(samples, labels, { told, nowMs });
  }
}

interface StageLabels {
  readonly ring: string;
  readonly stage: string;
}

function addTold(
  samples: Samples,
  labels: StageLabels,
  { told: { facts, report }, nowMs }: { readonly told: StageFigures; readonly nowMs: number },
): void {
  if (facts !== null) {
    samples.add('p4_stage_load_duration_seconds', labels, facts.loadMs / 1000);
    samples.add('p4_stage_weights_bytes', labels, facts.weightBytes);
  }
  if (report === null) return;
  samples.add('p4_stage_report_age_seconds', labels, (nowMs - report.atMs) / 1000);
  addReport(samples, labels, report.values);
}

function addReport(samples: Samples, labels: StageLabels, report: StageReport): void {
  const rows = {
    ...{ prefill: report.prefilledRows, decode: report.decodedRows },
    ...{ recompute: report.recomputedRows, padding: report.paddingRows },
  };
  for (const [phase, count] of Object.entries(rows)) samples.add('p4_stage_rows_total', { ...labels, phase }, count);
  samples.add('p4_stage_decodes_total', labels, report.decodes);
  samples.add('p4_stage_compute_seconds_total', labels, report.computeSeconds);
  samples.add('p4_stage_cpu_seconds_total', labels, report.cpuSeconds);
  samples.add('p4_stage_resident_memory_bytes', labels, report.residentBytes);
  samples.add('p4_stage_kv_cells_used', labels, report.kvCellsUsed);
  samples.add('p4_stage_kv_cells_kept', labels, report.kvCellsKept);
}
