// numalign-node run: serves the containers of this node until it is ended.
import { existsSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { readPageToken } from '@numalign/page';
import { type ListenAddress, parseAddress } from '@numalign/page/listening';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { MACHINE_STATE_DIR, type ManagerOptions, openManager } from 'numalign';
import { parse } from 'yaml';
import { inClusterConfiguration } from '../api-server/configuration.js';
import { NodeError } from '../base/errors.js';
import { LOG_FORMATS, LOG_LEVELS, type Log, type LogFormat, type LogLevel, logWriter } from '../base/log.js';
import { checkNode } from '../check/check-node.js';
import { DEVICE_UNITS, type DeviceUnit } from '../device-plugin/inventory.js';
import { KUBELET_FOLDER } from '../kubelet/pod-resources.js';
import { NRI_SOCKET } from '../node.js';
import { NodeAgent, type NodeAgentOptions } from '../node-agent.js';
import { factsOf, print, printJson } from './output.js';
import { openMetrics, serve } from './serving.js';
import { version } from './version.js';

interface RunFlags {
  nri: boolean;
  nriSocket: string;
  name: string;
  index: string;
  runtimeEndpoint?: string;
  cgroupRoot?: string;
  devicePlugin?: string | true;
  deviceUnit: DeviceUnit;
  kubelet: boolean;
  kubeletFolder: string;
  publish?: boolean;
  nodeName: string;
  policy?: NonNullable<ManagerOptions['policy']>;
  reserved?: string;
  kubeletConfiguration?: string;
  stateDir: string;
  listen?: ListenAddress;
  maxGrants: number;
  events: boolean;
  page?: ListenAddress;
  pageTokenFile?: string;
  logFormat: LogFormat;
  logLevel: LogLevel;
  check?: boolean;
  json?: boolean;
}

const POLICIES = ['none', 'best-effort', 'restricted', 'single-numa-node'];
// A runtime waits for a plugin at most 2 s.
const LOCK_MS = 1000;
const PAGE = '127.0.0.1:9480';
const LISTEN = '127.0.0.1:9481';
const MOST_GRANTS = 10_000;
const ENDS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

export function addRun(program: Command): void {
  program
    .command('run', { isDefault: true })
    .description('Places the containers of this node, until it is ended.')
    .option('--nri-socket <socket>', "the container runtime's socket for plugins", NRI_SOCKET)
    .option('--no-nri', 'leave containers to the runtime and the kubelet')
    .option('--name <name>', 'the name of the plugin; another for each runtime of a machine', 'numalign')
    .option('--index <digits>', 'two digits: the order in which runtimes call plugins', '90')
    .option('--runtime-endpoint <socket>', "the runtime's CRI socket (default: the one that exists)")
    .option('--cgroup-root <dir>', 'the hierarchy with cpusets (default: where it is mounted)')
    .option('--device-plugin [resource]', 'offer CPUs to the kubelet as devices (default: numalign.io/cpu)')
    .addOption(new Option('--device-unit <unit>', 'what a device is').choices(DEVICE_UNITS).default('cpu'))
    .option('--kubelet-folder <dir>', "the kubelet's folder", KUBELET_FOLDER)
    .option('--no-kubelet', 'do not record what the kubelet assigns')
    .option('--publish', "keep the node's NodeResourceTopology up to date at the API server")
    .option(
      '--node-name <name>',
      'of the Node (default: $NODE_NAME, else the host name)',
      process.env.NODE_NAME || hostname(),
    )
    .addOption(new Option('--policy <policy>', "the Topology Manager's").choices(POLICIES))
    .option('--reserved <cpus>', 'CPUs that are never exclusive, such as 0-1')
    .option('--kubelet-configuration <file>', 'a KubeletConfiguration with the policies and options to use')
    .option('--state-dir <dir>', 'folder of the state', (text) => resolve(text), MACHINE_STATE_DIR)
    .addOption(
      new Option(
        '--listen [address:port]',
        `serve /metrics, /healthz and /readyz, without authentication (default: ${LISTEN})`,
      )
        .argParser(addressOf)
        .preset(LISTEN),
    )
    .option('--max-grants <count>', 'how many grants have metrics of their own; 0: none', countOf, 100)
    .option('--no-events', 'write no Events; else they are written if an API server is known')
    .addOption(
      new Option('--page [address:port]', `serve a live page of the machine (default: ${PAGE})`)
        .argParser(addressOf)
        .preset(PAGE),
    )
    .option('--page-token-file <file>', 'the page asks for the token in this file; needed beyond loopback')
    .addOption(new Option('--log-format <format>', 'of stderr').choices(LOG_FORMATS).default('text'))
    .addOption(
      new Option('--log-level <level>', 'messages below it are left out').choices(LOG_LEVELS).default('info'),
    )
    .option('--check', 'print what would not work on this node, and exit')
    .option('--json', 'with --check: print JSON')
    .addHelpText(
      'after',
      `
Examples:
  $ numalign-node --check
  $ numalign-node --policy single-numa-node --reserved 0-1
  $ numalign-node --device-plugin --publish
  $ numalign-node --listen 0.0.0.0:9481 --log-format json
  $ numalign-node --page          # and in a pod: kubectl port-forward POD 9480
  $ numalign-node --no-nri        # beside a kubelet with the static policy: only record its assignments`,
    )
    .action((flags: RunFlags) => (flags.check ? check(flags) : runLogged(flags)));
}

/** An error that ends it is a line of the log, in the log's format. */
async function runLogged(flags: RunFlags): Promise<void> {
  const { logFormat: format, logLevel: level } = flags;
  const log = logWriter({ format, level, write: (line) => void process.stderr.write(line) });
  try {
    await run(flags, log);
  } catch (error) {
    if (format !== 'json') throw error;
    const { code, message, facts } = factsOf(error);
    log('error', message, { ...facts, ...(code !== null && { code }) });
    process.exitCode = FAILURE;
  }
}

async function run(flags: RunFlags, log: Log): Promise<void> {
  // Node would open its inspector.
  process.on('SIGUSR1', () => {});
  const { stateDir, policy, reserved, kubeletConfiguration: file } = flags;
  const parts = partsOf(flags);
  checkParts(parts, flags);
  const { listen, page, pageTokenFile, maxGrants } = flags;
  const pageToken = pageTokenFile === undefined ? undefined : readPageToken(pageTokenFile);
  const manager = await openManager({
    stateDir,
    lockTimeoutMs: LOCK_MS,
    // In a pod, it leaves exclusive CPUs with its container, whose cgroup belongs to the runtime.
    sharedMember: process.env.KUBERNETES_SERVICE_HOST === undefined,
    // The agent refuses a kubelet that places containers itself, and records any other.
    besideKubelet: true,
    ...(policy !== undefined && { policy }),
    ...(reserved !== undefined && { reservedSystemCPUs: reserved }),
    ...(file !== undefined && { kubeletConfiguration: kubeletConfiguration(file) }),
  });
  let servers: { close(): Promise<void> } | undefined;
  try {
    const metrics = listen && (await openMetrics(manager, { maxGrants, version: version() }));
    const agent = new NodeAgent({ ...parts, manager, log, ...(metrics && { metrics }) });
    servers = await serve({ manager, log, probed: agent, listen, metrics, page, pageToken });
    const ended = new Promise<void>((resolve) => {
      for (const signal of ENDS) process.once(signal, () => resolve());
    });
    // A signal may also arrive while it waits for a runtime.
    const running = agent.start();
    await Promise.race([running.then(() => ended), ended]);
    await agent.close();
    await running.catch(() => {});
  } finally {
    await servers?.close();
    manager.close();
  }
}

function addressOf(value: string): ListenAddress {
  const address = parseAddress(value);
  if (address) return address;
  throw new InvalidArgumentError(
    'It must be an IP address and a port, such as 127.0.0.1:9480 or [::1]:9480.',
  );
}

function countOf(text: string): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && count <= MOST_GRANTS) return count;
  throw new InvalidArgumentError(`It must be a whole number from 0 to ${MOST_GRANTS}.`);
}

/** Whether the kubelet has told this process of an API server. */
function isInCluster(): boolean {
  try {
    inClusterConfiguration();
    return true;
  } catch {
    return false;
  }
}

function partsOf(flags: RunFlags): Omit<NodeAgentOptions, 'manager' | 'log'> {
  const { nri, nriSocket, name, index, cgroupRoot, devicePlugin, deviceUnit: unit } = flags;
  const { kubelet, kubeletFolder, publish, events, nodeName } = flags;
  const { runtimeEndpoint: runtimeSocket } = flags;
  const deviceFolder = `${kubeletFolder}/device-plugins`;
  return {
    nri: nri
      ? {
          ...{ nriSocket, name, index },
          ...(runtimeSocket !== undefined && { runtimeSocket }),
          ...(cgroupRoot !== undefined && { cgroupRoot }),
        }
      : null,
    devicePlugin:
      devicePlugin === undefined
        ? null
        : { unit, folder: deviceFolder, ...(typeof devicePlugin === 'string' && { resource: devicePlugin }) },
    kubelet:
      kubelet && existsSync(kubeletFolder)
        ? {
            stateFolder: kubeletFolder,
            deviceFolder,
            podResourcesSocket: `${kubeletFolder}/pod-resources/kubelet.sock`,
          }
        : null,
    publish: publish ? { nodeName } : null,
    events: events && isInCluster() ? { nodeName } : null,
  };
}

function checkParts(parts: ReturnType<typeof partsOf>, { kubelet, kubeletFolder }: RunFlags): void {
  const { events: _, ...others } = parts;
  if (Object.values(others).some((part) => part !== null)) return;
  const why = kubelet ? `there is no ${kubeletFolder}` : '--no-kubelet is set';
  throw new NodeError('ERR_INVALID_OPTION', `there is nothing to do with --no-nri: ${why}`, {
    value: why,
    valid: 'a kubelet, --device-plugin or --publish',
  });
}

function kubeletConfiguration(file: string): object {
  try {
    return parse(readFileSync(file, 'utf8')) as object;
  } catch (cause) {
    throw new NodeError('ERR_INVALID_OPTION', `${file} cannot be read: ${(cause as Error).message}`, {
      value: file,
      valid: 'a KubeletConfiguration, as YAML or JSON',
      cause,
    });
  }
}

const FAILURE = 1;
const STATUS_WIDTH = 'problem'.length + 2;

async function check({
  nri,
  nriSocket,
  kubeletFolder,
  stateDir,
  publish,
  nodeName,
  json,
}: RunFlags): Promise<void> {
  const findings = await checkNode({
    nriSocket: nri ? nriSocket : null,
    kubeletFolder,
    stateDir,
    ...(publish && { publish: { nodeName } }),
  });
  if (json) printJson(findings);
  else
    for (const { check, status, found, advice } of findings)
      print(`${status.padEnd(STATUS_WIDTH)}${check}: ${found}${advice === null ? '' : ` (${advice})`}`);
  if (findings.some(({ status }) => status === 'problem')) process.exitCode = FAILURE;
}
