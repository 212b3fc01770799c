/** The dashboards, by the file that each is built to. */
import { dashboard, type DashboardDefinition } from './dashboard.ts';
import { fleetDashboard } from './fleet-dashboard.ts';
import { journalDashboard } from './journal-dashboard.ts';
import { ringDashboard } from './ring-dashboard.ts';

export const dashboards: Readonly<Record<string, DashboardDefinition>> = {
  'ring.json': ringDashboard,
  'fleet.json': fleetDashboard,
  'journal.json': journalDashboard,
};

/** Texts by the names of their files. */
export const dashboardFiles = (): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(dashboards).map(([name, definition]) => [
      name,
      `${JSON.stringify(dashboard(definition), null, 2)}\n`,
    ]),
  );

/** Metrics of the table that no rule and no panel reads, and why. */
export const unshown = {
  p4_ring_requests_admitted_total: 'those that ended, by reason, and those that run say the same',
  p4_ring_requests_settled_total: 'a check on those that ended: they differ for the time of one round',
  p4_ring_first_hour_token_seconds: '`npm run watch` shows it; rules keep the first hour’s medians themselves',
  p4_link_sent_frames_total: 'the histogram of acknowledgements counts frames too',
  p4_link_received_bytes_total: 'the sender’s figure is shown',
} as const;
