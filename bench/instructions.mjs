// Instructions of the core's hot functions. Unlike times they are repeatable, whatever else runs.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const description = 'instructions a call of the core takes, without Node, by callgrind';
export const explanation = `
The core as it ships (\`-O3\`, x86-64 without extensions); the mean of 640 calls.`;

const SCRIPT = fileURLToPath(new URL('../scripts/core-bench.sh', import.meta.url));

export async function run() {
  const { status, stdout, stderr } = spawnSync('bash', [SCRIPT, '--instructions'], { encoding: 'utf8' });
  const missing = /\S.* is missing: .*/.exec(stderr);
  if (missing) return [{ name: 'every function', skipped: missing[0] }];
  if (status !== 0) throw new Error(`core-bench.sh ended with ${status}: ${stderr}`);
  return [...stdout.matchAll(/^ *(\d+) {2}(.+)$/gm)].map(([, instructions, name]) => ({
    name,
    instructions: Number(instructions),
  }));
}
