// The descriptors of this process that lead into a folder.
import { readdirSync, readlinkSync } from 'node:fs';

const FOLDER = '/proc/self/fd';

export function openFilesIn(path: string): string[] {
  return readdirSync(FOLDER).flatMap((fd) => {
    try {
      const target = readlinkSync(`${FOLDER}/${fd}`);
      return target === path || target.startsWith(`${path}/`) ? [target] : [];
    } catch {
      // The one by which the list was read.
      return [];
    }
  });
}
