// numalign defragment: moves grants that consent, so that one NUMA node has room for more.
import type { Command } from 'commander';
import { openManager } from 'numalign';
import type { Defragmentation } from 'numalign/diagnostics';
import { cpusNamed } from 'numalign/tools';
import { outputOption } from '../arguments/arguments.js';
import { MACHINE_STATE_DIR, type StateFlags, stateDirOption } from '../arguments/state-dir.js';
import { withView } from '../arguments/view.js';
import { print } from '../terminal/output.js';
import { formatJson, printable } from '../terminal/text.js';

interface DefragmentFlags extends StateFlags {
  dryRun?: boolean;
}

export function addDefragment(program: Command): void {
  program
    .command('defragment')
    .description('Move grants that consent, so that one NUMA node has room for a larger request.')
    .option('--dry-run', 'only show which grants would move, and the gain')
    .addOption(stateDirOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
A grant moves only if it was acquired or admitted as movable, and if its owner does not refuse.

JSON: dryRun, nodes (node, before, after), moves, unmoved, isBounded.

Exit code: 0, also if there is nothing to gain; 1 for an error; 2 for a wrong command line.

Examples:
  $ numalign defragment --dry-run
  $ numalign defragment --output json | jq .nodes`,
    )
    .action(defragment);
}

async function defragment({
  dryRun = false,
  stateDir = MACHINE_STATE_DIR,
  output,
}: DefragmentFlags): Promise<void> {
  const result = dryRun
    ? await withView({ stateDir }, (view) => view.defragment({ dryRun: true }))
    : await makeMoves(stateDir);
  print(output === 'json' ? formatJson(result) : `${linesOf(result).join('\n')}\n`);
}

async function makeMoves(stateDir: string): Promise<Defragmentation> {
  // This command grants nothing.
  const manager = await openManager({ stateDir, besideKubelet: true, sharedMember: false });
  try {
    return await manager.defragment();
  } finally {
    manager.close();
  }
}

/** The result for people. */
export function linesOf({ dryRun, nodes, moves, unmoved, isBounded }: Defragmentation): string[] {
  const name = (grant: { readonly name: string }) => printable(grant.name);
  return [
    ...moves.map((move) => {
      const places = `${cpusNamed(move.before)} to ${move.cpus}, NUMA ${move.nodes}`;
      return `${dryRun ? 'would move' : 'moved'} ${name(move)}: ${places}`;
    }),
    ...unmoved.map((grant) => `not moved ${name(grant)}: ${grant.reason ?? grant.code}`),
    ...(moves.length + unmoved.length === 0 ? ['no move of a grant that consents would help'] : []),
    ...(isBounded ? ['not all moves were tried'] : []),
    ...nodes.map(({ node, before, after }) => {
      const earlier = before === after ? '' : ` (${before} before)`;
      return `NUMA node ${node}: one request can have ${after} CPU${after === 1 ? '' : 's'}${earlier}`;
    }),
  ];
}
