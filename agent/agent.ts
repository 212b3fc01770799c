/** One agent: its parts put together, from an open journal to a listening server, and taken down again in order. */
import { basename } from 'node:path';
import type { AgentConfig } from '../protocol/agent-config.ts';
import { limits } from '../protocol/limits.ts';
import type { NetAddress } from '../protocol/net-address.ts';
import type { TlsIdentity } from '../protocol/tls-identity.ts';
import { AddressWatch } from './address-watch.ts';
import type { Input } from './inputs.ts';
import { HostSocket } from './host/host-socket.ts';
import { openJournal, type Journal } from './journal/journal.ts';
import { Leases } from './leases.ts';
import { LoadWatch } from './load-watch.ts';
import type { Log } from './log.ts';
import { JournalMeter } from './metrics/journal-meter.ts';
import { Metrics } from './metrics/metrics.ts';
import { PendingCalls } from './pending-calls.ts';
import { readinessOf } from './readiness.ts';
import { Rings } from './rings.ts';
import { startServer, type RpcServer, type ServerOptions } from './rpc/server.ts';
import { operatorService } from './services/operator-service.ts';
import { outerService } from './services/outer-service.ts';
import { sliceService } from './services/slice-service.ts';
import { SliceUploads } from './slices/slice-uploads.ts';
import { SliceWork } from './slices/slice-work.ts';
import { Shell, type EffectRunners } from './shell.ts';
import { Stages } from './stages.ts';
import { standingLoads } from './standing-loads.ts';
import { takeUpStages } from './stages/adoption.ts';
import { ChildLauncher } from './stages/child-launcher.ts';
import type { StageLauncher } from './stages/stage-launcher.ts';
import { stageOrders } from './stages/stage-orders.ts';
import { SystemdLauncher } from './stages/systemd-launcher.ts';
import type { AgentState } from './state.ts';
import { StatusReport } from './status-report.ts';
import { Transcripts } from './transcripts.ts';

export interface AgentOptions {
  readonly config: AgentConfig;
  readonly tls: TlsIdentity;
  readonly log: Log;
}

export interface Agent {
  readonly listen: readonly NetAddress[];
  /** Where its metrics are on loopback, `null` where they are not. */
  readonly metrics: NetAddress | null;
  /** What it does at the moment, on one line, for people. */
  readonly summary: () => string;
  /** Ends streams, ends or leaves stages, makes the journal whole and closes it. */
  stop(): Promise<void>;
}

/** @throws what the journal (J1, J5) or the server refuse to open with; then nothing is left open */
export async function startAgent(options: AgentOptions): Promise<Agent> {
  const { stateFolder: folder, journalLimitBytes: limitBytes } = options.config;
  const journalMeter = options.config.metrics === undefined ? null : new JournalMeter();
  const journal = await openJournal({ folder, limitBytes, ...(journalMeter === null ? {} : { watch: journalMeter }) });
  const metrics = journalMeter === null ? null : new Metrics({ ...options, journal, journalMeter });
  try {
    const launcher = launcherOf(options);
    const parts = await assemble(options, { journal, launcher, metrics });
    return {
      listen: parts.server.listen,
      metrics: metrics?.plain ?? null,
      summary: () => summaryOf(parts.shell.state),
      stop: () => stop(parts, { journal, launcher, metrics, runtimeFolder: options.config.runtimeFolder }),
    };
  } catch (error) {
    metrics?.stop();
    await journal.close();
    throw error;
  }
}

function launcherOf({ config, log }: AgentOptions): StageLauncher {
  switch (config.stages) {
    case 'child-processes':
      return new ChildLauncher();
    case 'systemd':
      return new SystemdLauncher(stageOrders(config.stageUnits), log);
  }
}

function summaryOf({ rings }: AgentState): string {
  const names = [...rings.values()].map((ring) => `${ring.ring} ${ring.kind === 'live' ? ring.phase.kind : 'empty'}`);
  return names.length === 0 ? 'no ring' : names.sort().join(', ');
}

interface Parts {
  readonly shell: Shell;
  readonly stages: Stages;
  readonly server: RpcServer;
  readonly addressWatch: AddressWatch;
  readonly hostSocket: HostSocket;
}

interface Foundation {
  readonly journal: Journal;
  readonly launcher: StageLauncher;
  /** `null` where nothing is counted. */
  readonly metrics: Metrics | null;
}

async function assemble(
  { config, tls, log }: AgentOptions,
  { journal, launcher, metrics }: Foundation,
): Promise<Parts> {
  const { host } = config;
  const calls = new PendingCalls();
  const transcripts = new Transcripts();
  const leases = new Leases();
  const watch = new LoadWatch();
  // The shell and what runs its effects know each other; `dispatch` is called only when all are there.
  const dispatch: Shell['dispatch'] = (input) => {
    shell.dispatch(input);
  };
  const state = (): Shell['state'] => shell.state;
  const rings = new Rings({
    host,
    tls,
    state,
    dispatch,
    trail: (hop) => {
      journal.trail(hop);
    },
    meters: metrics?.meters.rings ?? null,
  });
  const stages = new Stages({ config, launcher, rings, watch, state, dispatch, log });
  const shell = new Shell({
    initial: { host, rings: new Map(), nextIncarnation: 1, nextSuspension: 1 },
    journal,
    runners: effectRunners({ calls, transcripts, leases, rings, stages, dispatch }),
    onJournal: (error) => {
      transcripts.pauseAll(error === null ? null : { error, untilMs: null });
      if (error !== null) metrics?.journalFailed();
    },
    log,
    meter: metrics?.meters.rings ?? null,
  });
  journal.whenFailed((error) => {
    shell.journalFailed(error);
  });
  await takeUp({ config, launcher, journal, stages, dispatch, log });
  const addressWatch = new AddressWatch(config.listen[0]?.address ?? '', log);
  await metrics?.serve({
    state,
    readiness: () =>
      readinessOf(shell.state, { journalFailure: shell.journalFailure, stageSilentMs: (of) => stages.silentMs(of) }),
    linksOf: (load) => rings.linksOf(load),
    addressMissing: () => addressWatch.missing,
    stages,
  });
  const core = { shell, stages, rings, calls, transcripts, leases, watch, dispatch, addressWatch };
  return { shell, stages, addressWatch, ...(await startServices({ config, tls, log }, { journal, metrics }, core)) };
}

interface Core extends Pick<Parts, 'shell' | 'stages' | 'addressWatch'>, Omit<EffectTargets, 'stages'> {
  readonly watch: LoadWatch;
}

/** What others call: the gRPC server, and the socket of this host. */
async function startServices(
  { config, tls, log }: AgentOptions,
  { journal, metrics }: Omit<Foundation, 'launcher'>,
  { shell, stages, rings, calls, transcripts, leases, watch, dispatch, addressWatch }: Core,
): Promise<Pick<Parts, 'server' | 'hostSocket'>> {
  const state = (): Shell['state'] => shell.state;
  const report = new StatusReport({
    state,
    addressMissing: () => addressWatch.missing,
    journal: () => journal.stats(),
    journalFailure: () => shell.journalFailure,
    linksOf: (load) => rings.linksOf(load),
    stageReport: (of) => stages.report(of),
    stageSilentMs: (of) => stages.silentMs(of),
    slicesFolder: config.slicesFolder,
    metrics: () => metrics?.places ?? { urls: [], fault: '' },
    samples: async (ring) => (await metrics?.samples(ring)) ?? null,
  });
  const { host, slicesFolder, stateFolder } = config;
  const work = new SliceWork();
  const uploads = new SliceUploads({ folder: slicesFolder, host, work });
  const slices = sliceService({ state, slicesFolder, stateFolder, uploads, work });
  const handlers = {
    Agent: { ...operatorService({ state, dispatch, calls, watch, report }), ...slices },
    Outer: outerService({ state, dispatch, calls, transcripts, leases, stages, journal }),
  };
  const gate: Rings['answer'] = (edge, peer) => rings.answer(edge, peer);
  const failed: ServerOptions['failed'] =
    metrics === null
      ? undefined
      : (method, code) => {
          metrics.meters.calls.failed(method, code);
        };
  const server = await startServer({ config, tls, handlers, gate, log, failed });
  const hostSocket = await HostSocket.listen(config.runtimeFolder, {
    forget: (ring) =>
      calls.ask('unloaded', (call) => {
        dispatch({ kind: 'forget', call, ring });
      }),
    journal: () => journal.report(),
  });
  return { server, hostSocket };
}

/** What the former agent left: loads in the journal, and stages that live (R2). */
async function takeUp(parts: {
  readonly config: AgentConfig;
  readonly launcher: StageLauncher;
  readonly journal: Journal;
  readonly stages: Stages;
  readonly dispatch: Shell['dispatch'];
  readonly log: Log;
}): Promise<void> {
  const { config, launcher, journal, stages, dispatch, log } = parts;
  const loads = await standingLoads(journal, config.host);
  for (const { restored } of loads) {
    const { ring, load, fault } = restored;
    if (fault !== null) log({ event: 'load-not-readable', ring, load, code: fault.code, ...fault.facts });
    dispatch(restored);
  }
  // After the journal is locked (J5): these are no stages of an agent that lives.
  const handles = await launcher.former(config.runtimeFolder, (folder, line) => {
    log({
      event: 'stage-said',
      stage: basename(folder),
      said: line.kind === 'text' ? line.text : JSON.stringify(line.record),
    });
  });
  for (const { adoption, stages: former } of await takeUpStages(handles, { host: config.host, loads, log })) {
    for (const stage of former) stages.adopt(stage);
    dispatch({ kind: 'adopted', ...adoption, atMs: performance.now() });
  }
}

interface EffectTargets {
  readonly calls: PendingCalls;
  readonly transcripts: Transcripts;
  readonly leases: Leases;
  readonly rings: Rings;
  readonly stages: Stages;
  readonly dispatch: Shell['dispatch'];
}

function effectRunners({ calls, transcripts, leases, rings, stages, dispatch }: EffectTargets): EffectRunners {
  const after = (ms: number, input: (atMs: number) => Input): void => {
    setTimeout(() => {
      dispatch(input(performance.now()));
    }, ms).unref();
  };
  return {
    reply: ({ call, reply }) => {
      calls.answer(call, reply);
    },
    'start-stage': (effect) => {
      stages.start(effect);
    },
    'attach-stage': (effect) => {
      stages.attach(effect);
    },
    'stop-stage': (effect) => {
      stages.stop(effect);
    },
    'dial-links': (effect) => {
      rings.dial(effect);
    },
    'cut-ring': ({ load, error }) => {
      rings.cut(load, error);
    },
    'tell-loading': (effect) => {
      rings.tellLoading(effect);
    },
    'send-frame': (effect) => {
      rings.send(effect);
    },
    'await-probe': ({ ring, load, nonce }) => {
      after(limits.probeMs, (atMs) => ({ kind: 'probe-timeout', ring, load, nonce, atMs }));
    },
    'await-retry': ({ ring, load, suspension, attempt, ms }) => {
      after(ms, (atMs) => ({ kind: 'retry', ring, load, suspension, attempt, atMs }));
    },
    'await-deadline': ({ ring, load, suspension, ms }) => {
      after(ms, (atMs) => ({ kind: 'recovery-deadline', ring, load, suspension, atMs }));
    },
    'await-lease': ({ of }) => {
      leases.expect(of, limits.orphanLeaseMs, () => {
        dispatch({ kind: 'lease-expired', ...of });
      });
    },
    'publish-pause': ({ load, error, ms }) => {
      transcripts.pauseRing(load, { error, untilMs: performance.now() + ms });
    },
    'publish-resume': ({ load }) => {
      transcripts.pauseRing(load, null);
    },
    'publish-begin': ({ of }) => {
      transcripts.begin(of);
    },
    'publish-token': ({ of, index, token, text }) => {
      transcripts.addToken(of, { index, token, text });
    },
    'publish-end': ({ of, end }) => {
      transcripts.addEnd(of, end);
    },
    'end-lease': ({ of }) => {
      leases.end(of);
    },
    'serve-queue': (queue) => {
      dispatch(queue);
    },
  };
}

async function stop(
  { shell, stages, server, addressWatch, hostSocket }: Parts,
  { journal, launcher, metrics, runtimeFolder }: Foundation & { readonly runtimeFolder: string },
): Promise<void> {
  metrics?.stop();
  addressWatch.stop();
  shell.stop();
  await hostSocket.close();
  await server.stop(limits.rpcStopMs);
  await stages.leave();
  // Children of a former agent that still were ending when this one began.
  if (!launcher.outlivesAgent) await launcher.former(runtimeFolder, () => undefined);
  await shell.settled();
  await journal.close();
}
