// Opens a state folder and falls behind others' commits, since it waits for them without a turn of
// its event loop. Prints as JSON, for each number of commits asked for, the CPU time of the next
// plan, which reads them.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { cpuOf } from './cpu-time.mjs';
import { COMMITTER, manyPod, openAt } from './nodes.mjs';

const { stateDir, machine, steps } = JSON.parse(process.argv[2]);
const committer = fileURLToPath(new URL('committer.mjs', import.meta.url));
const commit = (commits) =>
  execFileSync(process.execPath, [committer, JSON.stringify({ stateDir, machine, commits })]);

let manager;
const plan = () => manager.plan(manyPod(machine));
const times = [];
for (const commits of steps) {
  // A new file takes the most lines before another one replaces it.
  if (manager === undefined || commits >= 1000) commit('to a new file');
  manager ??= await openAt(stateDir, machine, COMMITTER);
  plan();
  commit(commits);
  times.push(await cpuOf(plan));
}
manager.close();
console.log(JSON.stringify(times));
