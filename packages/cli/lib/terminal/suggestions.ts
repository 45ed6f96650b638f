// What a wrong command or flag probably means: what other programs call it, or what is spelt nearly
// so. Commander compares spellings alone, and takes pin for plan.
import { Command, type ErrorOptions } from 'commander';
import { nearestOf } from 'numalign/tools';

/** From `meaning: name name`, a line each: [name, meaning]. */
const synonyms = (text: string) =>
  text
    .trim()
    .split(/\n */)
    .map((line) => line.split(': ') as [string, string])
    .flatMap(([meaning, names]) => names.split(' ').map((name): [string, string] => [name, meaning]));

export const COMMANDS_MEANT = synonyms(`
  run --cpus 1 -- ./server: pin exec execute start launch spawn taskset numactl cset chrt isolate
  plan: explain simulate predict dry-run
  status: list ls ps info get show grants
  top: watch monitor stats htop live
  topology: topo lstopo hwloc-ls lscpu machine nodes numa cpus
  admit: apply create allocate alloc acquire request
  release: free rm delete kill unpin stop drop end
  attach: join move migrate
  defragment: compact rebalance repack
  doctor: check verify diagnose health test validate
  configure: set settings reserve
  setup: install init enable
  uninstall: remove disable purge clean
  systemd-unit: unit systemd service
  agent: serve server daemon metrics page
  state show: journal history log
  state export: export
  state import: import restore
  completion: bash zsh fish
  help: man usage`);

// The first meaning that the command has counts.
export const FLAGS_MEANT = synonyms(`
  --output json: --json --format -o -j
  --cpus: --cpu -c -n -C --cores --core --count --exclusive --cpuset-cpus --physcpubind
  --memory: --mem -m --ram
  --state-dir: --folder --dir --directory --state --path -d
  --watch: --follow -w -F
  --file: --manifest --filename --pod --pods --yaml
  --dry-run: --dry --simulate -n --plan
  --policy single-numa-node: --numa --numa-node --node --nodes --membind --cpunodebind -N
  --require: --level --min-level --require-level
  --enforcement: --enforce --max-level
  --resource: --resources --hugepages --gpu
  --remove: --uninstall --delete --undo
  --reserved: --reserve --housekeeping
  --sort: --order
  --silent: -q -s
  --listen: --bind --host --address
  --interval: --every --seconds -i
  --version: -v --ver`);

const flagsOf = (command: Command) => command.options.flatMap(({ long }) => long ?? []);

/** The one of `valid`, or the meaning of the one of `known`, that is `word` or nearly so. */
function nearest(word: string, valid: readonly string[], known: readonly [string, string][]) {
  const meanings = new Map(known);
  if (meanings.has(word) || word.length <= 2) return meanings.get(word);
  const name = nearestOf(word.toLowerCase(), [...valid, ...meanings.keys()]);
  return name && (meanings.get(name) ?? name);
}

// Options of a command do not count before it.
function placeOf(program: Command, flag: string): string | undefined {
  const commands = program.commands.filter((command) => flagsOf(command).includes(flag));
  const command = commands.find((each) => program.args.includes(each.name())) ?? commands[0];
  return command && `${command.name()} ${flag}`;
}

function meantBy(command: Command, kind: string | undefined, word: string): string | undefined {
  if (kind === 'command') {
    const names = command.commands.map((each) => each.name());
    return nearest(word, names, command.parent ? [] : COMMANDS_MEANT);
  }
  const own = flagsOf(command);
  const known = FLAGS_MEANT.filter(
    ([name, meaning]) => own.includes(meaning.split(' ')[0]!) && !own.includes(name),
  );
  return nearest(word, own, known) ?? placeOf(command, word);
}

/** A command whose errors say what was probably meant. */
export class HelpfulCommand extends Command {
  override createCommand(name?: string): Command {
    return new HelpfulCommand(name);
  }

  override error(message: string, options?: ErrorOptions): never {
    const [start, kind, word = ''] = /^error: unknown (command|option) '(.*)'/.exec(message) ?? [];
    // It describes a machine.
    const isJson = message.startsWith("error: option '--json <file>' argument missing");
    const meant = isJson ? '--output json' : start && meantBy(this, kind, word);
    return super.error(meant ? `${start ?? message}\n(Did you mean ${meant}?)` : message, options);
  }
}
