// numalign-node run: serves the containers of this node until it is ended.
import { existsSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { machinePage, readPageToken } from '@numalign/page';
import { addressText, end, type ListenAddress, listen, parseAddress } from '@numalign/page/listening';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { MACHINE_STATE_DIR, type Manager, type ManagerOptions, openManager } from 'numalign';
import { parse } from 'yaml';
import { NodeError } from '../base/errors.js';
import { checkNode } from '../check/check-node.js';
import { DEVICE_UNITS, type DeviceUnit } from '../device-plugin/inventory.js';
import { KUBELET_FOLDER } from '../kubelet/pod-resources.js';
import { NRI_SOCKET } from '../node.js';
import { NodeAgent, type NodeAgentOptions } from '../node-agent.js';
import { REFUSAL_MODES, type RefusalMode } from '../refusals/refusals.js';
import { logToStderr, print, printJson } from './output.js';

interface RunFlags {
  nri: boolean;
  nriSocket: string;
  name: string;
  index: string;
  cgroupRoot?: string;
  devicePlugin?: string | true;
  deviceUnit: DeviceUnit;
  kubelet: boolean;
  kubeletFolder: string;
  publish?: boolean;
  nodeName: string;
  onRefusal: RefusalMode;
  policy?: NonNullable<ManagerOptions['policy']>;
  reserved?: string;
  kubeletConfiguration?: string;
  stateDir: string;
  page?: ListenAddress;
  pageTokenFile?: string;
  check?: boolean;
  json?: boolean;
}

const POLICIES = ['none', 'best-effort', 'restricted', 'single-numa-node'];
// A runtime waits for a plugin at most 2 s.
const LOCK_MS = 1000;
const PAGE = '127.0.0.1:9480';
const ENDS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

export function addRun(program: Command): void {
  program
    .command('run', { isDefault: true })
    .description('Places the containers of this node, until it is ended.')
    .option('--nri-socket <socket>', "the container runtime's socket for plugins", NRI_SOCKET)
    .option('--no-nri', 'leave containers to the runtime and the kubelet')
    .option('--name <name>', 'the name of the plugin; another for each runtime of a machine', 'numalign')
    .option('--index <digits>', 'two digits: the order in which runtimes call plugins', '90')
    .option('--cgroup-root <dir>', 'the hierarchy with cpusets (default: where it is mounted)')
    .option('--device-plugin [resource]', 'offer CPUs to the kubelet as devices (default: numalign.io/cpu)')
    .addOption(new Option('--device-unit <unit>', 'what a device is').choices(DEVICE_UNITS).default('cpu'))
    .option('--kubelet-folder <dir>', "the kubelet's folder", KUBELET_FOLDER)
    .option('--no-kubelet', 'do not record what the kubelet assigns')
    .option('--publish', "keep the node's NodeResourceTopology up to date at the API server")
    .addOption(
      new Option('--on-refusal <what>', 'for pods without a place here, at the API server')
        .choices(REFUSAL_MODES)
        .default('keep'),
    )
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
      new Option('--page [address:port]', `serve a live page of the machine (default: ${PAGE})`)
        .argParser(pageAddress)
        .preset(PAGE),
    )
    .option('--page-token-file <file>', 'the page asks for the token in this file; needed beyond loopback')
    .option('--check', 'print what would not work on this node, and exit')
    .option('--json', 'with --check: print JSON')
    .addHelpText(
      'after',
      `
Examples:
  $ numalign-node --check
  $ numalign-node --policy single-numa-node --reserved 0-1
  $ numalign-node --device-plugin --publish
  $ numalign-node --page          # and in a pod: kubectl port-forward POD 9480
  $ numalign-node --no-nri        # beside a kubelet with the static policy: only record its assignments`,
    )
    .action((flags: RunFlags) => (flags.check ? check(flags) : run(flags)));
}

async function run(flags: RunFlags): Promise<void> {
  // Node would open its inspector.
  process.on('SIGUSR1', () => {});
  const { stateDir, policy, reserved, kubeletConfiguration: file } = flags;
  const parts = partsOf(flags);
  checkParts(parts, flags);
  const { page: address, pageTokenFile } = flags;
  const token = pageTokenFile === undefined ? undefined : readPageToken(pageTokenFile);
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
  let page: { close(): Promise<void> } | undefined;
  try {
    page = address && (await servePage(manager, address, token));
    const agent = new NodeAgent({ ...parts, manager, log: logToStderr });
    const ended = new Promise<void>((resolve) => {
      for (const signal of ENDS) process.once(signal, () => resolve());
    });
    // A signal may also arrive while it waits for a runtime.
    const running = agent.start();
    await Promise.race([running.then(() => ended), ended]);
    await agent.close();
    await running.catch(() => {});
  } finally {
    await page?.close();
    manager.close();
  }
}

function pageAddress(value: string): ListenAddress {
  const address = parseAddress(value);
  if (address) return address;
  throw new InvalidArgumentError('It must be an IP address and a port, such as 127.0.0.1:9480.');
}

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

function partsOf(flags: RunFlags): Omit<NodeAgentOptions, 'manager' | 'log'> {
  const { nri, nriSocket, name, index, cgroupRoot, devicePlugin, deviceUnit: unit } = flags;
  const { kubelet, kubeletFolder, publish, nodeName, onRefusal } = flags;
  const deviceFolder = `${kubeletFolder}/device-plugins`;
  return {
    nri: nri ? { nriSocket, name, index, ...(cgroupRoot !== undefined && { cgroupRoot }) } : null,
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
    refusals: onRefusal === 'keep' ? null : { nodeName, mode: onRefusal },
  };
}

function checkParts(parts: ReturnType<typeof partsOf>, { kubelet, kubeletFolder }: RunFlags): void {
  const { refusals, ...others } = parts;
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
  name,
  kubeletFolder,
  stateDir,
  publish,
  nodeName,
  onRefusal,
  json,
}: RunFlags): Promise<void> {
  const findings = await checkNode({
    nriSocket: nri ? nriSocket : null,
    pluginName: name,
    kubeletFolder,
    stateDir,
    ...(publish && { publish: { nodeName } }),
    ...(onRefusal !== 'keep' && { refusals: { nodeName, mode: onRefusal } }),
  });
  if (json) printJson(findings);
  else
    for (const { check, status, found, advice } of findings)
      print(`${status.padEnd(STATUS_WIDTH)}${check}: ${found}${advice === null ? '' : ` (${advice})`}`);
  if (findings.some(({ status }) => status === 'problem')) process.exitCode = FAILURE;
}
