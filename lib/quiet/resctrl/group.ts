// Group: a class of service of resctrl. It is a folder with cache masks, and the CPUs whose tasks
// use them.
import { unlessRefused } from '../../base/errors.js';
import { CpuSet } from '../../machine/cpu-set.js';
import type { KernelFiles } from '../kernel/kernel-files.js';
import { RESCTRL } from './cache-info.js';
import { parseSchemata, printSchemata, type Schemata } from './schemata.js';

export interface Group {
  readonly schemata: Schemata;
  readonly cpus: CpuSet;
}

/** The value of a group that does not exist. */
export const ABSENT = 'absent';

const CPUS = 'cpus=';

const GROUP = `${RESCTRL}/numalign-`;

export const pathOfGroup = (uid: string): string => GROUP + encodeURIComponent(uid);

/** Whether a path on record can be the group of a grant. It must not lead elsewhere. */
export const isPathOfGroup = (path: string): boolean =>
  path.startsWith(GROUP) && !path.slice(GROUP.length).includes('/');

/** Equal groups have equal texts. */
export const printGroup = ({ schemata, cpus }: Group): string => `${printSchemata(schemata)}\n${CPUS}${cpus}`;

const cpusOf = (text: string | undefined): CpuSet =>
  unlessRefused(() => CpuSet.parse(text ?? ''), CpuSet.EMPTY);

/** Parses what {@link printGroup} prints; undefined for {@link ABSENT}. */
export function parseGroup(text: string): Group | undefined {
  if (text === ABSENT) return undefined;
  const cpus = text.split('\n').find((line) => line.startsWith(CPUS));
  return { schemata: parseSchemata(text), cpus: cpusOf(cpus?.slice(CPUS.length)) };
}

/** Undefined if there is no such group. `path`: {@link RESCTRL} for the default group. */
export function readGroup(files: KernelFiles, path: string): Group | undefined {
  const schemata = files.read(`${path}/schemata`);
  if (schemata === undefined) return undefined;
  return { schemata: parseSchemata(schemata), cpus: cpusOf(files.read(`${path}/cpus_list`)) };
}

/** Paths of all groups but the default one. */
export function groupPaths(files: KernelFiles): readonly string[] {
  const paths = files.list(RESCTRL).map((name) => `${RESCTRL}/${name}`);
  return paths.filter((path) => files.exists(`${path}/schemata`));
}

// Does something in resctrl. If it is refused, the error has resctrl's reason.
function attempt(files: KernelFiles, what: string, action: () => void): void {
  try {
    action();
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const status = files.read(`${RESCTRL}/info/last_cmd_status`);
    const reason = status === undefined || status === 'ok' ? message : `${code}, ${status}`;
    const advice = code === 'ENOSPC' ? '; remove an unused group (rmdir)' : '';
    throw Object.assign(new Error(`resctrl refuses ${what}: ${reason}${advice}`, { cause }), { code });
  }
}

/** @throws an error with the kernel's code, which quotes `last_cmd_status` */
export function writeSchemata(files: KernelFiles, path: string, schemata: string): void {
  const what = `${JSON.stringify(schemata)} in ${path}/schemata`;
  attempt(files, what, () => files.write(`${path}/schemata`, `${schemata}\n`));
}

/**
 * Makes the group if it does not exist. Its CPUs come last: until then the group has no effect. A
 * group without CPUs is removed, like {@link ABSENT}: its CPUs fall back to the default group.
 * @throws like {@link writeSchemata}
 */
export function writeGroup(files: KernelFiles, path: string, group: Group | undefined): void {
  if (group === undefined || group.cpus.isEmpty) {
    attempt(files, `to remove ${path}`, () => files.removeFolder(path));
    return;
  }
  const isNew = !files.exists(path);
  if (isNew) attempt(files, `to make ${path}`, () => files.makeFolder(path));
  try {
    writeSchemata(files, path, printSchemata(group.schemata));
    const cpus = String(group.cpus);
    attempt(files, `${cpus} in ${path}/cpus_list`, () => files.write(`${path}/cpus_list`, cpus));
  } catch (error) {
    // A new group takes one of the few classes of service.
    if (isNew) files.removeFolder(path);
    throw error;
  }
}
