/** Writes METRICS.md. */
import { writeFileSync } from 'node:fs';

import { metricDocument, metricDocumentName } from './metric-document.ts';

writeFileSync(new URL(`../../../${metricDocumentName}`, import.meta.url), metricDocument());
