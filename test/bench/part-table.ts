/** Every part of the benchmark by its name. */
import { arrivalPart } from './arrival-part.ts';
import { decayPart } from './decay-part.ts';
import { metricsPart } from './metrics-part.ts';
import { modesPart } from './modes-part.ts';
import type { Part, PartName } from './part.ts';
import { prefillPart } from './prefill-part.ts';
import { sessionsPart } from './sessions-part.ts';
import { largePart, singlePart } from './single-part.ts';
import { stagesPart } from './stages-part.ts';
import { turnsPart } from './turns-part.ts';

export const partTable: Readonly<Record<PartName, Part>> = {
  single: singlePart,
  large: largePart,
  sessions: sessionsPart,
  prefill: prefillPart,
  arrival: arrivalPart,
  stages: stagesPart,
  turns: turnsPart,
  modes: modesPart,
  metrics: metricsPart,
  decay: decayPart,
};
