// The mounts that this process sees.
import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { kernelText } from '../../base/errors.js';

/** A line of /proc/self/mountinfo. */
export interface Mount {
  /** The mount point. */
  readonly point: string;
  /**
   * The part of the file system that is mounted. Not `/` if a container sees only a part of a
   * hierarchy.
   */
  readonly root: string;
  /** The type of the file system: `cgroup`, `cgroup2`, … */
  readonly type: string;
  /** For a cgroup v1 hierarchy, these include its controllers. */
  readonly options: readonly string[];
}

export function readMounts(): Mount[] {
  return kernelText('/proc/self/mountinfo')
    .trimEnd()
    .split('\n')
    .map((line) => {
      const fields = line.split(' ');
      const [type, , options] = fields.slice(fields.indexOf('-', 6) + 1);
      return {
        point: unescaped(fields[4]!),
        root: unescaped(fields[3]!),
        type: type!,
        options: options!.split(','),
      };
    });
}

// The kernel writes blanks and the like as \040.
function unescaped(text: string): string {
  if (!text.includes('\\')) return text;
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}

export function isAtOrBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

/** The mount that a path leads into. */
export function mountOf(path: string, mounts = readMounts()): Mount | undefined {
  const ancestors = mounts.filter(({ point }) => isAtOrBelow(path, point));
  // The deepest mount point, and its latest mount, which hides earlier ones.
  const deepest = Math.max(...ancestors.map(({ point }) => point.length));
  return ancestors.filter(({ point }) => point.length === deepest).at(-1);
}

const UPPER = 'upperdir=';

/**
 * The overlay mount whose upper layer contains the path, under any name. Files have other locks
 * there than in the mount. Undefined if no visible mount does.
 */
export function overlayOf(path: string): Mount | undefined {
  const overlays = readMounts().filter(({ type }) => type === 'overlay');
  if (overlays.length === 0) return undefined;
  const identities = new Set<string>();
  for (let folder = path; ; folder = dirname(folder)) {
    for (const identity of identityOf(folder)) identities.add(identity);
    if (folder === dirname(folder)) break;
  }
  const isAbove = (option: string) =>
    option.startsWith(UPPER) &&
    namesIn(option)
      .flatMap(identityOf)
      .some((identity) => identities.has(identity));
  return overlays.find(({ options }) => options.some(isAbove));
}

// In mount(8)'s options a comma has a backslash before it, which the kernel keeps.
function namesIn(option: string): string[] {
  const name = unescaped(option.slice(UPPER.length));
  return name.includes('\\') ? [name, name.replace(/\\(.)/g, '$1')] : [name];
}

// Empty if nothing is there, or this process may not see it.
function identityOf(folder: string): string[] {
  try {
    const { dev, ino } = statSync(folder, { bigint: true });
    return [`${dev}:${ino}`];
  } catch {
    return [];
  }
}
