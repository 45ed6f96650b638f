// numalign-node run: serves the containers of this node until it is ended.
import { existsSync } from 'node:fs';
import { machinePage, readPageToken } from '@numalign/page';
import { addressText, end, type ListenAddress, listen, parseAddress } from '@numalign/page/listening';
import type { Command } from 'commander';
import type { Manager } from 'numalign';
import { ApiServer } from '../api-server/api-server.js';
import { NodeError } from '../base/errors.js';
import { checkNode } from '../check/check-node.js';
import {
  type Configuration,
  configurationJson,
  configurationText,
  readConfiguration,
  type Sources,
} from '../configuration/configuration.js';
import { PAGE, type Values } from '../configuration/fields.js';
import { firstLive } from '../configuration/live.js';
import { openConfigured } from '../configuration/open-configured.js';
import { Reloader } from '../configuration/reloader.js';
import { NO_METRICS } from '../metrics/metrics.js';
import { NodeAgent, type NodeAgentOptions } from '../node-agent.js';
import { addFieldFlags, addOutput, isJson, sourcesOf } from './field-flags.js';
import { logToStderr, print, printJson } from './output.js';

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
  $ numalign-node --page          # and in a pod: kubectl port-forward POD 9480
  $ numalign-node --no-nri        # beside a kubelet with the static policy: only record its assignments`,
    )
    .action((flags: RunFlags) => {
      const sources = sourcesOf(command);
      const configuration = readConfiguration(sources);
      return flags.check ? check(configuration.values, isJson(flags)) : run(configuration, sources);
    });
}

async function run(configuration: Configuration, sources: Sources): Promise<void> {
  // Node would open its inspector.
  process.on('SIGUSR1', () => {});
  const hangup = new EventTarget();
  process.on('SIGHUP', () => hangup.dispatchEvent(new Event('hangup')));
  const log = logToStderr;
  const { values } = configuration;
  const parts = partsOf(values);
  checkParts(parts, values);
  const { pageTokenFile } = values;
  const token = pageTokenFile === undefined ? undefined : readPageToken(pageTokenFile);
  const { manager, waiting } = await openConfigured(configuration, {
    stateDir: values.stateDir,
    lockTimeoutMs: LOCK_MS,
    // In a pod, it leaves exclusive CPUs with its container, whose cgroup belongs to the runtime.
    sharedMember: process.env.KUBERNETES_SERVICE_HOST === undefined,
    // The agent refuses a kubelet that places containers itself, and records any other.
    besideKubelet: true,
  });
  let page: { close(): Promise<void> } | undefined;
  let reloader: Reloader | undefined;
  try {
    const address = addressOf(values.page);
    page = address && (await servePage(manager, address, token));
    const live = () => reloader?.live ?? firstLive(manager);
    const agent = new NodeAgent({ ...parts, manager, log, live });
    reloader = new Reloader({
      ...{ manager, sources, configuration, waiting, log, metrics: NO_METRICS },
      live: firstLive(manager),
      recordEvent: agent.recordEvent,
      changed: () => agent.changed(),
    });
    const ended = new Promise<void>((resolve) => {
      for (const signal of ENDS) process.once(signal, () => resolve());
    });
    log('info', `the configuration: ${configurationText(configuration)}`, {
      configuration: configurationJson(configuration),
    });
    await reloader.start();
    hangup.addEventListener('hangup', () => void reloader!.reload());
    // A signal may also arrive while it waits for a runtime.
    const running = agent.start();
    await Promise.race([running.then(() => ended), ended]);
    await agent.close();
    await running.catch(() => {});
  } finally {
    await reloader?.close();
    await page?.close();
    manager.close();
  }
}

const addressOf = (page: Values['page']): ListenAddress | undefined =>
  page === false ? undefined : parseAddress(page === true ? PAGE : page);

async function servePage(
  manager: Manager,
  address: ListenAddress,
  token: string | undefined,
): Promise<{ close(): Promise<void> }> {
  const page = machinePage(manager, token === undefined ? {} : { token });
  const fail = ({ message }: Error) => logToStderr('error', `the page: ${message}`);
  const { server, address: actual } = await listen(address, page.handler, fail);
  logToStderr('info', `the page is at http://${addressText(actual)}`);
  return {
    close: () => {
      page.close();
      return end(server);
    },
  };
}

function partsOf(values: Values): Omit<NodeAgentOptions, 'manager' | 'log' | 'live'> {
  const { nri, nriSocket, name, index, cgroupRoot, devicePlugin, deviceUnit: unit } = values;
  const { kubelet, kubeletFolder, publish, nodeName, kubeconfig } = values;
  const deviceFolder = `${kubeletFolder}/device-plugins`;
  return {
    nri: nri ? { nriSocket, name, index, ...(cgroupRoot !== undefined && { cgroupRoot }) } : null,
    devicePlugin:
      devicePlugin === false
        ? null
        : { unit, folder: deviceFolder, ...(devicePlugin !== true && { resource: devicePlugin }) },
    kubelet:
      kubelet && existsSync(kubeletFolder)
        ? {
            stateFolder: kubeletFolder,
            deviceFolder,
            podResourcesSocket: `${kubeletFolder}/pod-resources/kubelet.sock`,
          }
        : null,
    publish: publish ? { nodeName, ...(kubeconfig !== undefined && { apiServer: { kubeconfig } }) } : null,
  };
}

function checkParts(parts: ReturnType<typeof partsOf>, { kubelet, kubeletFolder }: Values): void {
  if (Object.values(parts).some((part) => part !== null)) return;
  const why = kubelet ? `there is no ${kubeletFolder}` : '--no-kubelet is set';
  throw new NodeError('ERR_INVALID_OPTION', `there is nothing to do with --no-nri: ${why}`, {
    value: why,
    valid: 'a kubelet, --device-plugin or --publish',
  });
}

const FAILURE = 1;
const STATUS_WIDTH = 'problem'.length + 2;

async function check(values: Values, json: boolean): Promise<void> {
  const { nri, nriSocket, kubeletFolder, stateDir, publish, nodeName, kubeconfig } = values;
  const server = kubeconfig === undefined ? undefined : new ApiServer({ kubeconfig });
  const findings = await checkNode({
    nriSocket: nri ? nriSocket : null,
    kubeletFolder,
    stateDir,
    ...(publish && { publish: { nodeName, ...(server && { apiServer: server }) } }),
  });
  server?.close();
  if (json) printJson(findings);
  else
    for (const { check, status, found, advice } of findings)
      print(`${status.padEnd(STATUS_WIDTH)}${check}: ${found}${advice === null ? '' : ` (${advice})`}`);
  if (findings.some(({ status }) => status === 'problem')) process.exitCode = FAILURE;
}
