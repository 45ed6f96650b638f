// A state folder that a newer version has taken over.
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Its state is unreadable, unless `isReadable`: then it can be read, but not changed. */
export function makeNewer(stateDir: string, isReadable = false): void {
  const state = join(stateDir, 'state.json');
  const newer = readFileSync(state, 'utf8')
    .replace(/"version":\d/, '"version":99')
    // With a correct checksum the number would count as damage.
    .replace(/,"checksum":.*$/gm, ',"seal":"of another kind"}');
  writeFileSync(join(stateDir, 'newer'), isReadable ? newer : newer.replaceAll('"pods":', '"grants":'));
  renameSync(join(stateDir, 'newer'), state);
}
