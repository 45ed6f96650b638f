// A state folder that a newer version has taken over.
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Nothing can be made out of its state any more, unless `isReadable`: then it can be looked at and
 * not changed.
 */
export function makeNewer(stateDir: string, isReadable = false): void {
  const state = join(stateDir, 'state.json');
  const newer = readFileSync(state, 'utf8')
    .replace('"version":2', '"version":99')
    // With the right checksum the number would be taken for damaged.
    .replace(/,"checksum":.*$/gm, ',"seal":"of another kind"}');
  writeFileSync(join(stateDir, 'newer'), isReadable ? newer : newer.replaceAll('"pods":', '"grants":'));
  renameSync(join(stateDir, 'newer'), state);
}
