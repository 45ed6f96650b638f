// numalign agent: keeps a manager open, repairs drift, and serves metrics for Prometheus.
import { isIP } from 'node:net';
import { collectMetrics, type GrantMetricsOptions } from '@numalign/metrics';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type Manager, openManager } from 'numalign';
import { ailments } from '../agent/agent-health.js';
import { Rounds } from '../agent/agent-rounds.js';
import {
  type Answer,
  addressText,
  end,
  type ListenAddress,
  listen,
  PLAIN_TEXT,
} from '../agent/agent-server.js';
import { outputOption } from '../arguments/arguments.js';
import { type DeviceFlags, deviceOptions, devicesOf } from '../arguments/devices.js';
import { checkStandardInput } from '../arguments/documents.js';
import { managerOptions, type OpeningFlags, openingOptions } from '../arguments/placement.js';
import { besideKubeletOption, stateDirOption } from '../arguments/state-dir.js';
import { openingLines } from '../pages/pod-text.js';
import { print, tell } from '../terminal/output.js';
import { abortAtEnd } from '../terminal/signals.js';
import { jsonLine, printable } from '../terminal/text.js';

interface AgentFlags extends OpeningFlags, DeviceFlags {
  port?: number;
  listen?: ListenAddress;
  maxGrants?: number;
  memoryElsewhere?: boolean;
  stateDir?: string;
  besideKubelet?: boolean;
  output: 'text' | 'json';
}

const LOOPBACK = '127.0.0.1';
const PORT = 9479;

export function addAgent(program: Command): void {
  const command: Command = program
    .command('agent')
    .description(
      'Free the CPUs of dead owners, repair drift, and serve metrics on loopback, until interrupted.',
    )
    .addOption(
      new Option('--port <port>', `port on ${LOOPBACK} (default: ${PORT}; 0: a free one)`).argParser(portOf),
    )
    .addOption(
      new Option(
        '--listen <address:port>',
        'another address, such as [::1]:9479 or 0.0.0.0:9479; there is no authentication',
      )
        .argParser(listenAddress)
        .conflicts('port'),
    )
    .addOption(
      new Option(
        '--max-grants <count>',
        'how many grants get metrics of their own; the others are summed (default: 100)',
      ).argParser(grantsOf),
    )
    .addOption(
      new Option('--memory-elsewhere', 'also measure at each scrape how much memory is on other NUMA nodes'),
    );
  for (const option of [...openingOptions(), ...deviceOptions()]) command.addOption(option);
  command
    .addOption(stateDirOption())
    .addOption(besideKubeletOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
Prints a line once it listens, and runs until SIGINT, SIGTERM, SIGHUP or SIGQUIT. Grants outlive it, and no other process needs it.

  GET /metrics   for Prometheus
  GET /healthz   200 if numalign can read and change the state and the last reconciling succeeded, else 503 and why

JSON: one line once it listens, with url, host, port, pid, stateDir, scope.

Exit code: 0 after a signal that ends it; 1 for an error, such as a port that is in use; 2 for a wrong command line.

Examples:
  $ numalign agent
  $ numalign agent --port 0 --output json --state-dir ~/numalign
  $ curl -s http://127.0.0.1:${PORT}/metrics | grep exclusive`,
    )
    .action((flags: AgentFlags) => {
      checkStandardInput(command, flags);
      return run(flags);
    });
}

const portOf = (value: string) => numberUpTo(0xffff, value);

const grantsOf = (value: string) => numberUpTo(10_000, value);

function numberUpTo(most: number, value: string): number {
  const number = Number(value);
  if (!/^\d+$/.test(value) || number > most)
    throw new InvalidArgumentError(`It must be a number from 0 to ${most}.`);
  return number;
}

function listenAddress(value: string): ListenAddress {
  const [, inBrackets, plain, port] = /^(?:\[([^\]]*)\]|([^:]*)):(\d+)$/.exec(value) ?? [];
  const host = inBrackets ?? plain;
  const isAddress = inBrackets === undefined ? isIP(plain ?? '') === 4 : isIP(inBrackets) === 6;
  if (!isAddress) {
    throw new InvalidArgumentError(
      'It must be an IP address and a port, such as 127.0.0.1:9479 or [::1]:9479.',
    );
  }
  return { host: host!, port: portOf(port!) };
}

async function run(flags: AgentFlags): Promise<void> {
  const { port = PORT, stateDir, besideKubelet, output } = flags;
  const manager = await openManager({
    ...(await managerOptions(flags)),
    // The agent's own rounds reconcile, so that /healthz can report the last one.
    cpuManagerReconcilePeriod: 0,
    devices: await devicesOf(flags),
    ...(stateDir !== undefined && { stateDir }),
    ...(besideKubelet !== undefined && { besideKubelet }),
  });
  openingLines(manager.warnings).forEach(tell);
  const { signal, stop } = abortAtEnd();
  const rounds = new Rounds(manager);
  try {
    const fail = onceEach(tell);
    manager.on('error', fail);
    const metrics = metricsOf(manager, grantMetrics(flags));
    // With this listener the manager takes back the grants of dead owners.
    manager.on('change', () => rounds.run());
    rounds.run();
    const answers = { '/metrics': metrics, '/healthz': () => healthOf(manager, rounds.lastFailure) };
    const { server, address } = await listen(flags.listen ?? { host: LOOPBACK, port }, answers, fail);
    print(readyText(manager, address, output));
    if (!signal.aborted)
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    await end(server);
  } finally {
    rounds.stop();
    manager.close();
    stop();
  }
}

function readyText(
  { stateDir, scope }: Manager,
  address: ListenAddress,
  output: AgentFlags['output'],
): string {
  const url = `http://${addressText(address)}`;
  if (output === 'json') return jsonLine({ url, ...address, pid: process.pid, stateDir, scope });
  return `listening on ${url}: /metrics and /healthz of ${printable(stateDir)} (${scope})\n`;
}

// The manager repeats an error at each look: tell only changes.
function onceEach(tell: (text: string) => void): (error: Error) => void {
  let last: string | undefined;
  return ({ message }) => {
    if (message !== last) tell(message);
    last = message;
  };
}

function grantMetrics({ maxGrants, memoryElsewhere }: AgentFlags): GrantMetricsOptions {
  return {
    ...(maxGrants !== undefined && { max: maxGrants }),
    ...(memoryElsewhere !== undefined && { memory: memoryElsewhere }),
  };
}

function metricsOf(manager: Manager, grants: GrantMetricsOptions): () => Promise<Answer> {
  const { register } = collectMetrics(manager, { watch: true, audit: true, requests: false, grants });
  return async () => ({ status: 200, type: register.contentType, text: await register.metrics() });
}

function healthOf(manager: Manager, lastFailure: unknown): Answer {
  const lines = ailments(manager, lastFailure);
  const text = lines.length === 0 ? 'ok\n' : `${lines.map(printable).join('\n')}\n`;
  return { status: lines.length === 0 ? 200 : 503, type: PLAIN_TEXT, text };
}
