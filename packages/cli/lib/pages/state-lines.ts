// The state of a machine's CPUs in lines below its tree. Pure.
import { cpusOrNone, freeCpusText, freeText, kubeletHolders, sharedText } from '@numalign/page/words';
import type { StateStatus } from 'numalign/diagnostics';
import type { Colors } from '../terminal/terminal.js';
import { labelRows, printable } from '../terminal/text.js';

/** The state that colours the CPUs, or why there is none. */
export type StateNote = { readonly status: StateStatus } | { readonly note: string };

/** The state's folder and generation, and why not to rely on it. */
export function stateTitle({ stateDir, scope, generation, isOfEarlierBoot, refusal }: StateStatus): string {
  const boot = isOfEarlierBoot ? ', of an earlier boot: its grants are void' : '';
  const why = refusal === null ? '' : `; nothing is granted: ${printable(refusal.message)}`;
  return `${stateDir} (${scope}), generation ${generation}${boot}${why}`;
}

/** The state of the CPUs in words, for readers without colours. */
export function stateLines(status: StateStatus, width: number, colors: Colors): string[] {
  const { managesAll, managedCPUs, reservedSystemCPUs, strictCPUReservation, isolatedCPUs } = status.settings;
  // Pods may have no exclusive CPUs at all.
  const others = kubeletHolders(status.kubelet).map((holder) => ({ ...holder, alive: true }));
  const holders = [...status.grants, ...others]
    .filter(({ cpus }) => !cpus.isEmpty)
    .map(
      ({ name, cpus, alive }) =>
        `${cpus} (${printable(name)}${alive ? '' : ', dead: taken back at the next transaction'})`,
    );
  const unmanaged = managesAll ? [] : [['managed:', cpusOrNone(managedCPUs)] as const];
  const rows = [
    ['state:', stateTitle(status)],
    ...unmanaged,
    ['free:', freeText(status)],
    ['shared:', sharedText(status)],
    ...(isolatedCPUs.isEmpty
      ? []
      : [
          [
            'isolated:',
            `${cpusOrNone(isolatedCPUs)} (not shared), free: ${freeCpusText(status, status.freeIsolated)}`,
          ] as const,
        ]),
    [
      'reserved:',
      `${cpusOrNone(reservedSystemCPUs)}${strictCPUReservation && !reservedSystemCPUs.isEmpty ? ' (strictly: not shared)' : ''}`,
    ],
    ['exclusive:', holders.length > 0 ? holders.join(', ') : 'none'],
  ] as const;
  const green = status.refusal === null ? 'free (shared until granted)' : 'not known to be exclusive';
  const legend = [colors.green(green), colors.yellow('reserved'), colors.red('exclusive')];
  if (!isolatedCPUs.isEmpty) legend.push(colors.cyan('isolated, free'));
  if (!managesAll) legend.push(colors.dim('not managed'));
  return [
    ...labelRows(rows, width),
    ...(colors.isColorSupported ? [`${'colours:'.padEnd(12)}${legend.join('  ')}`] : []),
  ];
}
