// numalign-node run: serves the containers of this node until it is ended.
import { existsSync } from 'node:fs';
import { type ListenAddress, parseAddress } from '@numalign/page/listening';
import type { Command } from 'commander';
import { ApiServer } from '../api-server/api-server.js';
import { inClusterConfiguration } from '../api-server/configuration.js';
import { NodeError } from '../base/errors.js';
import { type Log, logWriter } from '../base/log.js';
import {
  type Configuration,
  configurationJson,
  configurationText,
  readConfiguration,
  type Sources,
} from '../configuration/configuration.js';
import { LISTEN, PAGE, type Values } from '../configuration/fields.js';
import { firstLive } from '../configuration/live.js';
import { openConfigured } from '../configuration/open-configured.js';
import { Reloader } from '../configuration/reloader.js';
import { NO_METRICS } from '../metrics/metrics.js';
import { NodeAgent, type NodeAgentOptions } from '../node-agent.js';
import { addFieldFlags, addOutput, isJson, sourcesOf } from './field-flags.js';
import { factsOf, print, printJson } from './output.js';
import { openMetrics, serve } from './serving.js';
import { version } from './version.js';

interface RunFlags {
  check?: boolean;
  output?: 'text' | 'json';
  json?: boolean;
}

// A runtime waits for a plugin at most 2 s.
const LOCK_MS = 1000;
const ENDS = ['SIGINT', 'SIGTERM', 'SIGQUIT'] as const;

export function addRun(program: Command): void {
  const command: Command = program
    .command('run', { isDefault: true })
    .description('Places the containers of this node, until it is ended.');
  addFieldFlags(command);
  command.option('--check', 'print what would not work on this node, and exit');
  addOutput(command);
  command
    .addHelpText(
      'after',
      `
Examples:
  $ numalign-node --check
  $ numalign-node --policy single-numa-node --reserved 0-1
  $ numalign-node --config /etc/numalign/node.yaml     # SIGHUP, or a change of the file, applies it
  $ numalign-node --device-plugin --publish
  $ numalign-node --listen 0.0.0.0:9481 --log-format json
  $ numalign-node --page          # and in a pod: kubectl port-forward POD 9480
  $ numalign-node --no-nri        # beside a kubelet with the static policy: only record its assignments`,
    )
    .action((flags: RunFlags) => {
      const sources = sourcesOf(command);
      const configuration = readConfiguration(sources);
      if (flags.check) return check(configuration.values, isJson(flags));
      return runLogged(configuration, sources);
    });
}

const writerOf = ({ logFormat: format, logLevel: level }: Values): Log =>
  logWriter({ format, level, write: (line) => void process.stderr.write(line) });

/** An error that ends it is a line of the log, in the log's format. */
async function runLogged(configuration: Configuration, sources: Sources): Promise<void> {
  try {
    await run(configuration, sources);
  } catch (error) {
    if (configuration.values.logFormat !== 'json') throw error;
    const { code, message, facts } = factsOf(error);
    writerOf(configuration.values)('error', message, { ...facts, ...(code !== null && { code }) });
    process.exitCode = FAILURE;
  }
}

async function run(configuration: Configuration, sources: Sources): Promise<void> {
  // Node would open its inspector.
  process.on('SIGUSR1', () => {});
  let reload = () => {};
  process.on('SIGHUP', () => reload());
  const { values } = configuration;
  let write = writerOf(values);
  const log: Log = (...line) => write(...line);
  const parts = partsOf(values);
  checkParts(parts, values);
  const { pageTokenFile, maxGrants } = values;
  const pageToken =
    pageTokenFile === undefined ? undefined : (await import('@numalign/page')).readPageToken(pageTokenFile);
  const { manager, waiting } = await openConfigured(configuration, {
    stateDir: values.stateDir,
    lockTimeoutMs: LOCK_MS,
    // In a pod, it leaves exclusive CPUs with its container, whose cgroup belongs to the runtime.
    sharedMember: process.env.KUBERNETES_SERVICE_HOST === undefined,
    // The agent refuses a kubelet that places containers itself, and records any other.
    besideKubelet: true,
  });
  let servers: { close(): Promise<void> } | undefined;
  let reloader: Reloader | undefined;
  try {
    const listen = addressOf(values.listen, LISTEN);
    const page = addressOf(values.page, PAGE);
    const metrics = listen && (await openMetrics(manager, { maxGrants, version: version() }));
    const first = firstLive(configuration, manager);
    const live = () => reloader?.live ?? first;
    const agent = new NodeAgent({ ...parts, manager, log, live, ...(metrics && { metrics }) });
    servers = await serve({ manager, log, probed: agent, listen, metrics, page, pageToken });
    const ended = new Promise<void>((resolve) => {
      for (const signal of ENDS) process.once(signal, () => resolve());
    });
    log('info', `the configuration: ${configurationText(configuration)}`);
    log('debug', 'the whole configuration', { configuration: configurationJson(configuration) });
    reloader = new Reloader({
      ...{ manager, sources, configuration, live: first, waiting, log, metrics: metrics ?? NO_METRICS },
      recordEvent: agent.recordEvent,
      changed: () => {
        write = writerOf(live().values);
        agent.changed();
      },
    });
    await reloader.start();
    reload = () => void reloader!.reload();
    // A signal may also arrive while it waits for a runtime.
    const running = agent.start();
    await Promise.race([running.then(() => ended), ended]);
    await agent.close();
    await running.catch(() => {});
  } finally {
    await reloader?.close();
    await servers?.close();
    manager.close();
  }
}

const addressOf = (value: string | boolean, byDefault: string): ListenAddress | undefined =>
  value === false ? undefined : parseAddress(value === true ? byDefault : value);

/** Whether the kubelet has told this process of an API server. */
function isInCluster(): boolean {
  try {
    inClusterConfiguration();
    return true;
  } catch {
    return false;
  }
}

function partsOf(values: Values): Omit<NodeAgentOptions, 'manager' | 'log' | 'live'> {
  const { nri, nriSocket, name, index, cgroupRoot, devicePlugin, deviceUnit: unit, dra } = values;
  const { runtimeEndpoint: runtimeSocket, slices } = values;
  const { kubelet, kubeletFolder, wholePods, publish, onRefusal, events, nodeName, kubeconfig } = values;
  const node = { nodeName, ...(kubeconfig !== undefined && { apiServer: { kubeconfig } }) };
  const deviceFolder = `${kubeletFolder}/device-plugins`;
  return {
    nri: nri
      ? {
          ...{ nriSocket, name, index },
          ...(runtimeSocket !== undefined && { runtimeSocket }),
          ...(cgroupRoot !== undefined && { cgroupRoot }),
          ...(slices !== undefined && { slices }),
        }
      : null,
    devicePlugin:
      devicePlugin === false
        ? null
        : { unit, folder: deviceFolder, ...(devicePlugin !== true && { resource: devicePlugin }) },
    dra: dra ? draOf(values) : null,
    kubelet:
      kubelet && existsSync(kubeletFolder)
        ? {
            stateFolder: kubeletFolder,
            deviceFolder,
            podResourcesSocket: `${kubeletFolder}/pod-resources/kubelet.sock`,
          }
        : null,
    wholePods: nri && wholePods ? { ...(kubeconfig !== undefined && { apiServer: { kubeconfig } }) } : null,
    publish: publish ? node : null,
    refusals: onRefusal === 'keep' ? null : { ...node, mode: onRefusal },
    events: events && (kubeconfig !== undefined || isInCluster()) ? node : null,
  };
}

function draOf(values: Values): NonNullable<NodeAgentOptions['dra']> {
  const { POD_UID: instance } = process.env;
  const { kubeletFolder, cdiFolder, kubeconfig, nodeName } = values;
  return {
    ...{ kubeletFolder, cdiFolder },
    ...(instance && { instance }),
    slices: {
      ...{ nodeName, unit: values.draDevices, hasLists: values.draListAttributes },
      deletesAtClose: values.draRemoveSlices,
    },
    ...(kubeconfig !== undefined && { apiServer: { kubeconfig } }),
  };
}

function checkParts(parts: ReturnType<typeof partsOf>, { kubelet, kubeletFolder, slices }: Values): void {
  if (slices && !parts.nri)
    throw new NodeError('ERR_INVALID_OPTION', 'with --no-nri the containers in slices are unknown', {
      value: slices,
      valid: '--slices without --no-nri',
    });
  const { refusals, dra, events: _, ...others } = parts;
  if (dra && !parts.nri)
    throw new NodeError('ERR_INVALID_OPTION', 'with --no-nri no container of a claim could be placed', {
      value: true,
      valid: '--dra without --no-nri',
    });
  if (refusals && !parts.nri)
    throw new NodeError('ERR_INVALID_OPTION', 'with --no-nri nothing is refused', {
      value: refusals.mode,
      valid: '--on-refusal without --no-nri',
    });
  if (Object.values(others).some((part) => part !== null)) return;
  const why = kubelet ? `there is no ${kubeletFolder}` : '--no-kubelet is set';
  throw new NodeError('ERR_INVALID_OPTION', `there is nothing to do with --no-nri: ${why}`, {
    value: why,
    valid: 'a kubelet, --device-plugin or --publish',
  });
}

const FAILURE = 1;
const STATUS_WIDTH = 'problem'.length + 2;

async function check(values: Values, json: boolean): Promise<void> {
  const { nri, nriSocket, name, kubeletFolder, stateDir, publish, onRefusal, nodeName, kubeconfig, dra } =
    values;
  const server = kubeconfig === undefined ? undefined : new ApiServer({ kubeconfig });
  const { checkNode } = await import('../check/check-node.js');
  const findings = await checkNode({
    nriSocket: nri ? nriSocket : null,
    pluginName: name,
    kubeletFolder,
    stateDir,
    ...(publish && { publish: { nodeName, ...(server && { apiServer: server }) } }),
    ...(dra && { claims: { nodeName, ...(server && { apiServer: server }) } }),
    ...(onRefusal !== 'keep' && { refusals: { nodeName, mode: onRefusal } }),
  });
  server?.close();
  if (json) printJson(findings);
  else
    for (const { check, status, found, advice } of findings)
      print(`${status.padEnd(STATUS_WIDTH)}${check}: ${found}${advice === null ? '' : ` (${advice})`}`);
  if (findings.some(({ status }) => status === 'problem')) process.exitCode = FAILURE;
}
