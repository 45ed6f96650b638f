// Checks of other managers of CPUs.
import { kubeletConflict } from '../kubelet/kubelet-conflict.js';
import type { KubeletStatus } from '../kubelet/record/kubelet-status.js';
import type { CpuSet } from '../machine/cpu-set.js';
import { listSome } from './advice.js';
import type { MachineFacts } from './facts.js';
import { ok, problem, unknown, type Verdict, warning } from './finding.js';

export function kubelet(facts: MachineFacts): Verdict {
  const { kubelet, kubeletRecord: record, managed, online, stateFolder, seesAllProcesses } = facts;
  if (record && !record.keeper.alive) return unkept(record);
  if (kubelet.found.length === 0 && !record) {
    return seesAllProcesses
      ? ok('none was found')
      : unknown('none was found, but not every process can be seen from here');
  }
  const found = kubelet.found.length === 0 ? 'none was found' : `one was found: ${kubelet.found.join(', ')}`;
  const conflict = kubeletConflict(kubelet, managed, online, record);
  if (!conflict && record)
    return ok(`${found}; ${heldText(record)} on record, kept by ${keeperText(record)}`);
  if (!conflict) return ok(`${found}; CPUs ${managed} are left to numalign`);
  const text = `${found}; it may give CPUs ${managed} to others`;
  const advice = conflict.ways.join('; or ');
  // A private folder is not for the whole machine, so nothing is refused.
  return stateFolder.scope === 'machine' ? problem(text, advice) : warning(text, advice);
}

const keeperText = ({ keeper: { pid, command } }: KubeletStatus) => `process ${pid} (${command})`;

function heldText({ pods, cpus }: KubeletStatus): string {
  const cpusText = cpus.isEmpty ? '' : ` with CPUs ${cpus}`;
  return `${pods.length} of its pods${cpusText} ${pods.length === 1 ? 'is' : 'are'}`;
}

// No process records what the kubelet assigns from now on.
function unkept(record: KubeletStatus): Verdict {
  return problem(
    `${heldText(record)} on record, as of ${record.updatedAt}: ${keeperText(record)}, which kept the record, has ended`,
    'start `numalign-node` again; or remove the record if there is no kubelet any more (`manager.recordKubelet(null)`)',
  );
}

const STOPS: Readonly<Record<string, (candidates: CpuSet) => string>> = {
  irqbalance: (cpus) =>
    `\`IRQBALANCE_BANNED_CPULIST=${cpus}\` in its environment, or \`systemctl stop irqbalance\``,
  numad: () => '`systemctl stop numad`',
};

export function movers({ movers, seesAllProcesses, candidates }: MachineFacts): Verdict {
  if (movers.length > 0) {
    const stops = [...new Set(movers.map(({ name }) => name))].map(
      (name) => `${name}: ${STOPS[name]!(candidates)}`,
    );
    return warning(
      `${listSome(movers, ({ name, pid }) => `${name} (process ${pid})`)}: it moves interrupts or processes onto granted CPUs`,
      stops.join('; '),
    );
  }
  return seesAllProcesses
    ? ok('neither irqbalance nor numad runs')
    : unknown('neither irqbalance nor numad was found, but not every process can be seen from here');
}
