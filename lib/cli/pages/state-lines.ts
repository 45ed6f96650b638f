// The state of a machine's CPUs, below its tree. Pure.
import type { StateStatus } from '../../entries/diagnostics.js';
import type { Colors } from '../terminal/terminal.js';
import { labelled, printable } from '../terminal/text.js';
import { kubeletHolders } from './kubelet-text.js';
import { freeListed, freeText, named, sharedText } from './settings-text.js';

/** A state to colour the CPUs by, or why there is none. */
export type StateNote = { readonly status: StateStatus } | { readonly note: string };

/** Which state it is, and whether it can be relied on. */
export function stateTitle({ stateDir, scope, generation, isOfEarlierBoot, refusal }: StateStatus): string {
  const boot = isOfEarlierBoot ? ', of an earlier boot: its grants are void' : '';
  const why = refusal === null ? '' : `; nothing is granted: ${printable(refusal.message)}`;
  return `${stateDir} (${scope}), generation ${generation}${boot}${why}`;
}

/** The state of the CPUs in words, so that no colour is needed to read it. */
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
  const unmanaged = managesAll ? [] : [['managed:', named(managedCPUs)] as const];
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
            `${named(isolatedCPUs)} (not shared), free: ${freeListed(status, status.freeIsolated)}`,
          ] as const,
        ]),
    [
      'reserved:',
      `${named(reservedSystemCPUs)}${strictCPUReservation && !reservedSystemCPUs.isEmpty ? ' (strictly: not shared)' : ''}`,
    ],
    ['exclusive:', holders.length > 0 ? holders.join(', ') : 'none'],
  ] as const;
  const green = status.refusal === null ? 'free (shared until granted)' : 'not known to be exclusive';
  const legend = [colors.green(green), colors.yellow('reserved'), colors.red('exclusive')];
  if (!isolatedCPUs.isEmpty) legend.push(colors.cyan('isolated, free'));
  if (!managesAll) legend.push(colors.dim('not managed'));
  return [
    ...labelled(rows, width),
    ...(colors.isColorSupported ? [`${'colours:'.padEnd(12)}${legend.join('  ')}`] : []),
  ];
}
