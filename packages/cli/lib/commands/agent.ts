// numalign agent: keeps a manager open, repairs drift, and serves a page and metrics for Prometheus.
import { type ListenAddress, parseAddress } from '@numalign/page/listening';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { ServeFlags } from '../agent/serve.js';
import { outputOption } from '../arguments/arguments.js';
import { deviceOptions } from '../arguments/devices.js';
import { checkStandardInput } from '../arguments/documents.js';
import { openingOptions } from '../arguments/placement-flags.js';
import { besideKubeletOption, stateDirOption } from '../arguments/state-dir.js';

interface AgentFlags extends ServeFlags {
  port?: number;
  listen?: ListenAddress | boolean;
}

const LOOPBACK = '127.0.0.1';
const PORT = 9479;

export function addAgent(program: Command): void {
  const command: Command = program
    .command('agent')
    .description(
      'Free the CPUs of dead owners, repair drift, and serve a live page and metrics on loopback, until interrupted.',
    )
    .addOption(
      new Option('--port <port>', `port on ${LOOPBACK} (default: ${PORT}; 0: a free one)`).argParser(portOf),
    )
    .addOption(
      new Option(
        '--listen <address:port>',
        'another address, such as [::1]:9479 or 0.0.0.0:9479; metrics have no authentication, and the page needs --page-token-file there',
      )
        .argParser(listenAddress)
        .conflicts('port'),
    )
    .addOption(new Option('--no-listen', 'serve nothing: the service of "numalign setup"').conflicts('port'))
    .addOption(
      new Option(
        '--max-grants <count>',
        'how many grants get metrics of their own; the others are summed (default: 100)',
      ).argParser(grantsOf),
    )
    .addOption(
      new Option(
        '--memory-elsewhere',
        'also measure how much memory is on other NUMA nodes, at each scrape and for the page',
      ),
    )
    .addOption(
      new Option(
        '--page-token-file <file>',
        'the page asks for the token in this file, as password, and answers beyond loopback',
      ),
    );
  for (const option of [...openingOptions(), ...deviceOptions()]) command.addOption(option);
  command
    .addOption(stateDirOption(true))
    .addOption(besideKubeletOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
Prints a line once it listens, and runs until SIGINT, SIGTERM, SIGHUP or SIGQUIT. Grants outlive it. With --no-listen it waits for a state
if there is none, and its line has no url, host and port.

  GET /          the machine with its grants, live in a browser; without one open, it costs nothing
  GET /metrics   for Prometheus
  GET /healthz   200 if numalign can read and change the state and the last reconciling succeeded, else 503 and why

JSON: one line once it listens, with url, host, port, pid, stateDir, scope.

Exit code: 0 after a signal that ends it; 1 for an error, such as a port that is in use; 2 for a wrong command line.

Examples:
  $ numalign agent
  $ numalign agent --port 0 --output json --state-dir ~/numalign
  $ curl -s http://127.0.0.1:${PORT}/metrics | grep exclusive
  $ numalign agent --listen 0.0.0.0:${PORT} --page-token-file /etc/numalign/page-token`,
    )
    .action(async (flags: AgentFlags) => {
      checkStandardInput(command, flags);
      const { port = PORT, listen = true, ...others } = flags;
      if (listen === false) return (await import('../agent/watch.js')).watch(others);
      const address = listen === true ? { host: LOOPBACK, port } : listen;
      return (await import('../agent/serve.js')).serve(others, address);
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
  const address = parseAddress(value);
  if (address) return address;
  throw new InvalidArgumentError(
    'It must be an IP address and a port, such as 127.0.0.1:9479 or [::1]:9479.',
  );
}
