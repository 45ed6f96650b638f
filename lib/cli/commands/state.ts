// numalign state: what numalign has given out as the kubelet's state files, and the other way.
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { NumalignError } from '../../base/errors.js';
import { parseCpuManagerState, parseMemoryManagerState } from '../../entries/kubelet.js';
import { openManager } from '../../index.js';
import { outputOption } from '../arguments/arguments.js';
import { readKubeletFolder, writeKubeletFolder } from '../arguments/kubelet-folder.js';
import { MACHINE_STATE_DIR, stateDirOption } from '../arguments/state-dir.js';
import { ofOneGeneration, withView } from '../arguments/view.js';
import { podTable } from '../pages/pod-text.js';
import { print } from '../terminal/output.js';
import { stdoutPage } from '../terminal/terminal.js';
import { counted, formatJson, printable } from '../terminal/text.js';

interface StateFlags {
  kubelet: string;
  stateDir?: string;
  allowUnverified?: boolean;
  output: 'text' | 'json';
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
    .description("Write or read the kubelet's state files.")
    .addHelpText(
      'after',
      `
Examples:
  $ numalign state export --kubelet ./kubelet-state
  $ numalign state import --kubelet /var/lib/kubelet`,
    );
  addExport(state);
  addImport(state);
}

function addExport(state: Command): void {
  state
    .command('export')
    .description("Write what is granted as the kubelet's (v1.32) state files.")
    .addOption(kubeletOption())
    .addOption(stateDirOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
Files that are there are replaced, both at once or neither. A kubelet that runs does not notice, and writes its own again: stop it first.
Nothing in the state folder is changed. Grants of dead owners are left out.

Exit code: 0 where the files are written; 1 for an error; 2 for a wrong command line.

Examples:
  $ numalign state export --kubelet ./kubelet-state
  $ numalign state export --kubelet ./kubelet-state --state-dir ~/numalign`,
    )
    .action(exportState);
}

async function exportState({ kubelet, stateDir = MACHINE_STATE_DIR, output }: StateFlags): Promise<void> {
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
  const paths = await writeKubeletFolder(kubelet, files);
  const cpu = parseCpuManagerState(files.cpuManagerState);
  const memory = parseMemoryManagerState(files.memoryManagerState);
  const sharedPool = cpu.defaultCpuSet;
  const pods = new Set([...cpu.entries.keys(), ...memory.entries.keys()]).size;
  if (output === 'json') {
    print(formatJson({ stateDir, generation, files: paths, pods, sharedPool }));
    return;
  }
  const lines = [...paths, `${counted(pods, 'pod')}, shared pool ${sharedPool}`];
  print(lines.map((line) => `${printable(line)}\n`).join(''));
}

function addImport(state: Command): void {
  state
    .command('import')
    .description(
      "Take over what the kubelet's (v1.32) state files say is given out. The pods stay until they are released.",
    )
    .addOption(kubeletOption())
    .option(
      '--allow-unverified',
      'read a CPU file without a checksum too: nothing tells whether it is damaged',
    )
    .addOption(stateDirOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
All pods are taken over, or none: where their CPUs or memory are not free here, nothing is changed. One of the files may be missing. The
kubelet should have ended: what it gives out later is not known here.

Exit code: 0 where all is taken over; 1 where nothing is, and for an error; 2 for a wrong command line.

Examples:
  $ numalign state import --kubelet /var/lib/kubelet
  $ numalign state import --kubelet ./kubelet-state --state-dir ~/numalign --output json | jq -r '.pods[].uid'`,
    )
    .action(importState);
}

async function importState(flags: StateFlags): Promise<void> {
  const { kubelet, allowUnverified = false, stateDir = MACHINE_STATE_DIR, output } = flags;
  const files = await readKubeletFolder(kubelet);
  // The kubelet that has left them may still be found.
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
      `${counted(pods.length, 'pod')} taken over, shared pool ${manager.sharedPool()}`,
      ...unverified,
    ];
    print([...tables, ...summary].map((line) => `${line}\n`).join(''));
  } finally {
    manager.close();
  }
}
