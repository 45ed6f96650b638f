// numalign top: shows what happens on the CPUs of grants. It only reads.
import { type Command, Option } from 'commander';
import { intervalOption, outputOption } from '../arguments/arguments.js';
import { MACHINE_STATE_DIR, type StateFlags, stateDirOption } from '../arguments/state-dir.js';
import { SORTS, type Sort } from '../top/figures.js';

interface TopFlags extends StateFlags {
  interval?: number;
  sort: Sort;
  once?: boolean;
}

export function addTop(program: Command): void {
  program
    .command('top')
    .description('Show what happens on the CPUs of each grant until you press q.')
    .addOption(stateDirOption())
    .addOption(intervalOption())
    .addOption(new Option('--sort <column>', 'what comes first').choices(Object.keys(SORTS)).default('delay'))
    .option('--once', 'look twice, one interval apart, print the difference and end')
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
Reads only. It runs on the CPUs of the shared pool, so that grants do not notice it. While it is stopped by Ctrl-Z it reads nothing.

Amounts are those of a second. RUN: how long threads of the grant ran, as a share of one CPU; DELAY: how long they waited for a CPU; INVOLUNTARY: how
often they had to leave it; FOREIGN: tasks of other processes that ran there, named below; INTERRUPTS: on its CPUs; ELSEWHERE: memory on other NUMA
nodes, every 10 seconds, on machines that have several; KERNEL: kernel threads that ran there; THROTTLED: how often a quota stopped it. A narrow
terminal shows the first of these. "-" means that the value cannot be read here, or not yet; "0+" that none was seen, but some processes are hidden.

A key sorts by the column whose letter it is, the same key again the other way round; q and Ctrl-C end it. Without a terminal it prints a page for each
interval, as JSON one document a line.

JSON: time, stateDir, generation, grants (uid, name, cpus, owner, flags, figures).

Exit code: 0, also if there is no state, and after an end by q or a signal; 1 for an error; 2 for a wrong command line.

Examples:
  $ numalign top
  $ numalign top --sort involuntary --interval 5
  $ numalign top --once --output json | jq '.grants[] | {name, delay: .figures.runDelayNsPerSecond}'`,
    )
    .action(async (flags: TopFlags) => {
      const { stateDir = MACHINE_STATE_DIR, interval = 1, sort, once = false, output } = flags;
      const { showTop } = await import('../top/top.js');
      await showTop({ stateDir, seconds: interval, sort, output, once });
    });
}
