// numalign state: shows the state file line by line; exports grants as the kubelet's state files,
// and imports those.
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { NumalignError, openManager } from 'numalign';
import { outputOption } from '../arguments/arguments.js';
import { MACHINE_STATE_DIR, type StateFlags, stateDirOption } from '../arguments/state-dir.js';
import { ofOneGeneration, withView } from '../arguments/view.js';
import { journalText } from '../pages/journal-text.js';
import { podTable } from '../pages/pod-text.js';
import { print } from '../terminal/output.js';
import { stdoutPage } from '../terminal/terminal.js';
import { countText, formatJson, printable } from '../terminal/text.js';

interface KubeletFlags extends StateFlags {
  kubelet: string;
  allowUnverified?: boolean;
}

function kubeletOption(): Option {
  return new Option('--kubelet <dir>', 'the folder of cpu_manager_state and memory_manager_state')
    .argParser((value) => {
      if (value === '') throw new InvalidArgumentError('It is empty.');
      return resolve(value);
    })
    .makeOptionMandatory();
}

export function addState(program: Command): void {
  const state = program
    .command('state')
    .description("Show the state file; write or read the kubelet's state files.")
    .addHelpText(
      'after',
      `
Examples:
  $ numalign state show --last 10
  $ numalign state export --kubelet ./kubelet-state
  $ numalign state import --kubelet /var/lib/kubelet`,
    );
  addShow(state);
  addExport(state);
  addImport(state);
}

function addShow(state: Command): void {
  state
    .command('show')
    .description('Show the state file, one line for each commit, even if it is damaged.')
    .addOption(stateDirOption())
    .addOption(outputOption())
    .addOption(new Option('--last <count>', 'only the last lines').argParser(lineCount))
    .addHelpText(
      'after',
      `
Reads only, and takes no lock. "+" is a new grant, "~" a changed one, "-" one that ended. docs/state-format.md describes the file.

JSON: stateDir, file, version, bytes, generation, highest (committed), copy (its generation), damage, lines (offset, bytes, kind: head, state,
change, damaged, unfinished or other, generation, writtenAt, record).

Exit code: 0, also if there is no state; 1 if the file is damaged, and for an error; 2 for a wrong command line.

Examples:
  $ numalign state show
  $ numalign state show --last 10 --state-dir ~/numalign
  $ numalign state show --output json | jq -c '.lines[].record'`,
    )
    .action(showState);
}

function lineCount(value: string): number {
  if (!/^[1-9]\d{0,14}$/.test(value))
    throw new InvalidArgumentError('It must be a whole number, at least 1.');
  return Number(value);
}

async function showState({
  stateDir = MACHINE_STATE_DIR,
  output,
  last = Number.MAX_SAFE_INTEGER,
}: StateFlags & { last?: number }): Promise<void> {
  const { stateJournal } = await import('numalign/diagnostics');
  const journal = stateJournal({ stateDir });
  const { lines, damage } = journal;
  if (output === 'json') print(formatJson({ stateDir, ...journal, lines: lines.slice(-last) }));
  else if (lines.length === 0 && damage === null) print(printable(`no state in ${stateDir}`) + '\n');
  else print(journalText(journal, last, stdoutPage()));
  if (damage !== null) process.exitCode = 1;
}

function addExport(state: Command): void {
  state
    .command('export')
    .description("Write all grants as the kubelet's state files.")
    .addOption(kubeletOption())
    .addOption(stateDirOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
Replaces both files, or neither. Stop the kubelet first: a running kubelet overwrites the files. The state folder does not change. Grants of
dead owners are left out.

JSON: stateDir, generation, files, pods, sharedPool.

Exit code: 0 if the files are written; 1 for an error; 2 for a wrong command line.

Examples:
  $ numalign state export --kubelet ./kubelet-state
  $ numalign state export --kubelet ./kubelet-state --state-dir ~/numalign`,
    )
    .action(exportState);
}

async function exportState({ kubelet, stateDir = MACHINE_STATE_DIR, output }: KubeletFlags): Promise<void> {
  const { files, generation } = await withView({ stateDir, memoryManagerPolicy: 'Static' }, (view) =>
    ofOneGeneration(view, () => {
      const { exists, refusal, generation } = view.status();
      if (!exists) {
        const message = `there is no state in ${stateDir}, and nothing to export`;
        const valid = 'a folder that numalign has used';
        throw new NumalignError('ERR_STATE_FOLDER', message, { value: stateDir, valid });
      }
      if (refusal) throw refusal;
      return { files: view.exportKubelet(), generation };
    }),
  );
  const { writeKubeletFolder } = await import('../arguments/kubelet-folder.js');
  const { parseCpuManagerState, parseMemoryManagerState } = await import('numalign/kubelet');
  const paths = await writeKubeletFolder(kubelet, files);
  const format = { podLevelResourceManagers: true };
  const cpu = parseCpuManagerState(files.cpuManagerState, format);
  const memory = parseMemoryManagerState(files.memoryManagerState, format);
  const sharedPool = cpu.defaultCpuSet;
  const pods = new Set([...cpu.entries.keys(), ...memory.entries.keys()]).size;
  if (output === 'json') {
    print(formatJson({ stateDir, generation, files: paths, pods, sharedPool }));
    return;
  }
  const lines = [...paths, `${countText(pods, 'pod')}, shared pool ${sharedPool}`];
  print(lines.map((line) => `${printable(line)}\n`).join(''));
}

function addImport(state: Command): void {
  state
    .command('import')
    .description("Take over the pods in the kubelet's state files. They stay until you release them.")
    .addOption(kubeletOption())
    .option('--allow-unverified', 'also read a CPU file without a checksum, which may be damaged')
    .addOption(stateDirOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
Takes over all pods, or none if their CPUs or memory are not free here. One of the files may be missing. Stop the kubelet first: numalign does
not know what it grants later.

JSON: stateDir, verified, pods, sharedPool.

Exit code: 0 if all pods are taken over; 1 if none is, and for an error; 2 for a wrong command line.

Examples:
  $ numalign state import --kubelet /var/lib/kubelet
  $ numalign state import --kubelet ./kubelet-state --state-dir ~/numalign --output json | jq -r '.pods[].uid'`,
    )
    .action(importState);
}

async function importState(flags: KubeletFlags): Promise<void> {
  const { kubelet, allowUnverified = false, stateDir = MACHINE_STATE_DIR, output } = flags;
  const { readKubeletFolder } = await import('../arguments/kubelet-folder.js');
  const files = await readKubeletFolder(kubelet);
  // The kubelet that wrote the files may still be visible.
  const manager = await openManager({ stateDir, besideKubelet: true, sharedMember: false });
  try {
    const { pods, verified } = await manager.importKubelet(files, { allowUnverified });
    if (output === 'json') {
      print(formatJson({ stateDir, verified, pods, sharedPool: manager.sharedPool() }));
      return;
    }
    const page = stdoutPage();
    const tables = pods.flatMap(({ uid, containers }) => [
      page.colors.bold(`pod ${printable(uid)}`),
      ...podTable(containers, page),
      '',
    ]);
    const unverified = verified ? [] : ['unverified: the CPU file has no checksum'];
    const summary = [
      `${countText(pods.length, 'pod')} taken over, shared pool ${manager.sharedPool()}`,
      ...unverified,
    ];
    print([...tables, ...summary].map((line) => `${line}\n`).join(''));
  } finally {
    manager.close();
  }
}
