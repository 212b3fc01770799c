/** A ring's stages from head to tail, the links between them, and the way home. Pure. */
import { layersText } from '../../protocol/plan.ts';
import { bytesText } from '../text-table.ts';
import { bar, orUnknown, percentText, secondsText, unknown } from './figure-text.ts';
import type { LinkFigures, RingFigures, StageFigures } from './ring-figures.ts';
import { span, type Line, type Marks, type Span } from './styled-line.ts';

/** `whole`: a line for each stage and one for each link; `short`: one for both. */
export type StageForm = 'whole' | 'short';

export interface StagePicture {
  readonly heading: Line;
  readonly lines: readonly Line[];
}

/** Columns of a host's name; longer ones are cut. */
const hostColumns = 16;
const barColumns = 20;
/** Width from which there is room for bars. */
const barWidth = 72;

export function stagePicture(
  { stages, links }: Pick<RingFigures, 'stages' | 'links'>,
  { form, width, marks }: { readonly form: StageForm; readonly width: number; readonly marks: Marks },
): StagePicture {
  const names = stages.map(({ host }) => host.length);
  const layout = { host: Math.min(hostColumns, Math.max(4, ...names)), hasBar: width >= barWidth, form, marks };
  const lines = stages.flatMap((stage, place) => {
    const link = links[place];
    const own = stageLine(stage, { edge: edgeOf(link, layout), link, layout });
    return link === undefined || form === 'short' ? [own] : [own, linkLine(link, layout)];
  });
  return { heading: [span(`     ${heading(layout)}`, 'faint')], lines };
}

/** A short form has no line for the way home. */
function edgeOf(link: LinkFigures | undefined, { form, marks }: Layout): string {
  if (link === undefined) return ' '.repeat(marks.side.length);
  if (link.source === 0) return marks.head;
  return form === 'short' && link.destination === 0 ? marks.home : marks.side;
}

interface Layout {
  readonly host: number;
  readonly hasBar: boolean;
  readonly form: StageForm;
  readonly marks: Marks;
}

const heading = ({ host, hasBar, form }: Layout): string =>
  [
    ...['STAGE', 'HOST'.padEnd(host), 'LAYERS ', '  DECODE', ' IDLE'],
    ...(form === 'short' ? ['     HOP'] : []),
    ...(hasBar ? ['BUSY'] : []),
  ].join('  ');

function stageLine(
  stage: StageFigures,
  { edge, link, layout }: { readonly edge: string; readonly link: LinkFigures | undefined; readonly layout: Layout },
): Line {
  const { host, layers, decodeSeconds, idleShare } = stage;
  const before = [
    `${edge}  ${String(stage.stage).padStart(5)}`,
    host.slice(0, layout.host).padEnd(layout.host),
    layersText(layers).padEnd(7),
  ].join('  ');
  if (stage.state !== 'loaded') return [span(`${before}  `), stateSpan(stage)];
  const figures = [orUnknown(decodeSeconds, secondsText).padStart(8), orUnknown(idleShare, percentText).padStart(5)];
  const hop = layout.form === 'short' ? [hopText(link).padStart(8)] : [];
  const busy = layout.hasBar && idleShare !== null ? bar(1 - idleShare, barColumns, layout.marks) : '';
  return [span(`${[before, ...figures, ...hop].join('  ')}  `), span(busy, 'good')];
}

function stateSpan({ state, loadProgress }: StageFigures): Span {
  switch (state) {
    case 'silent':
      return span('its agent does not answer', 'bad');
    case 'absent':
      return span('nothing here', 'bad');
    case 'loading':
      return span(`loading ${orUnknown(loadProgress, percentText)}`, 'warning');
    default:
      return span(state, state === 'lost' ? 'bad' : 'warning');
  }
}

const hopText = (link: LinkFigures | undefined): string => {
  if (link === undefined || link.kind === 'within-agent') return unknown;
  return link.isUp === false ? 'down' : orUnknown(link.hopSeconds, secondsText);
};

function linkLine(link: LinkFigures, { marks }: Layout): Line {
  const isHome = link.destination === 0;
  const edge = span(`${isHome ? marks.home : marks.hop}         `);
  const to = isHome ? `home to ${link.host}` : `to ${link.host}`;
  switch (link.kind) {
    case 'within-agent':
      return [edge, span(isHome ? `home within ${link.host}` : `within ${link.host}`, 'faint')];
    case 'between-agents': {
      if (link.isUp === false) return [edge, span(`the link ${to} is down`, 'bad')];
      const bytes = orUnknown(link.bytesPerSecond, (each) => `${bytesText(each)}/s`);
      return [edge, span(`hop ${orUnknown(link.hopSeconds, secondsText)} ${to}, ${bytes}`)];
    }
  }
}
