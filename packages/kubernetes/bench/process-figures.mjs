// The memory and CPU time of processes, and their lines in the output.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const TICKS = 100;

export const show = (name, value, unit) =>
  console.log(`${name.padEnd(44)} ${value.toFixed(1).padStart(9)} ${unit}`);

/** The CPU time of a process so far. */
export const cpuMs = (pid) => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS;
};
// Pages of files, such as Node itself, are shared with other processes: `Pss` has a part of them.
const MEMORY = ['Rss', 'Pss', 'Private_Dirty'];
export const memory = (pid) => {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  return MEMORY.map((name) => +new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)[1] / 1024);
};
export const showMemory = (when, values, bare) => {
  for (const [i, name] of MEMORY.entries()) {
    const more = `${(values[i] - bare[i]).toFixed(1)} more than a bare Node process`;
    console.log(`${`${name} ${when}`.padEnd(44)} ${values[i].toFixed(1).padStart(9)} MB, ${more}`);
  }
};
/** Of a Node process that does nothing. */
export async function bareMemory() {
  const script = "setInterval(() => {}, 1e6); process.stdout.write('up')";
  const bare = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(bare.stdout, 'data');
  await sleep(500);
  const values = memory(bare.pid);
  bare.kill();
  await once(bare, 'exit');
  return values;
}
