// Settings of a kernel in memory, for hardware that is not here: files answer as the kernel's
// documentation says.
import type { KernelFiles } from '../../lib/quiet/kernel/kernel-files.js';

/** What happens to a text that is written: an error's code, or the text that is read from then on. */
export type Rule = (value: string, texts: Map<string, string>) => { refusal: string } | { text: string };

export interface KernelTree extends KernelFiles {
  readonly texts: Map<string, string>;
  /** The paths written, in order. */
  readonly writes: string[];
}

const errorOf = (code: string, path: string) => Object.assign(new Error(`${code}: ${path}`), { code });

/** `rules`: by the end of a path. `unreadable`: the error that reading ends with, by path. */
export function kernelTree(
  files: Record<string, string>,
  rules: Record<string, Rule> = {},
  unreadable: Record<string, string> = {},
): KernelTree {
  const texts = new Map(Object.entries(files));
  const writes: string[] = [];
  const below = (path: string) => [...texts.keys()].filter((name) => name.startsWith(`${path}/`));
  return {
    texts,
    writes,
    read(path) {
      if (path in unreadable) throw errorOf(unreadable[path]!, path);
      return texts.get(path)?.trim();
    },
    write(path, value) {
      if (!texts.has(path)) throw errorOf('ENOENT', path);
      const rule = Object.entries(rules).find(([end]) => path.endsWith(end))?.[1];
      const answer = rule?.(value, texts) ?? { text: value };
      if ('refusal' in answer) throw errorOf(answer.refusal, path);
      texts.set(path, answer.text);
      writes.push(path);
    },
    list: (path) =>
      [...new Set(below(path).map((name) => name.slice(path.length + 1).split('/')[0]!))].sort(),
    exists: (path) => texts.has(path) || below(path).length > 0,
    isWritable: () => true,
    link: (path) => texts.get(path),
    makeFolder: () => undefined,
    removeFolder: () => undefined,
  };
}
