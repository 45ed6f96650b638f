// Commits this many changes in a state folder, or until a new file begins, and ends. It leaves no
// grants.
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { COMMITTER, manyPod, openAt } from './nodes.mjs';

const { stateDir, machine, commits } = JSON.parse(process.argv[2]);
const inode = () => statSync(join(stateDir, 'state.json')).ino;
const before = inode();
const isEnough = (i) => (commits === 'to a new file' ? inode() !== before : i >= commits);
const manager = await openAt(stateDir, machine, COMMITTER);
for (let i = 0; !isEnough(i); i += 2) {
  const { uid } = await manager.admit(manyPod(machine));
  await manager.release(uid);
}
manager.close();
