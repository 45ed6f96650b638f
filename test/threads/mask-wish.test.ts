// needs: machine
// The mask of a process: a wish if it was chosen, and none if it comes from numalign.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { CpuSet } from '../../lib/index.js';
import { affinity } from '../../lib/machine/affinity.js';
import { type MaskFacts, originOf } from '../../lib/threads/mask-wish.js';
import { isLong } from '../support/budget.mjs';
import { makeStateDir } from '../support/state-dir.js';

const cpus = (list: string) => CpuSet.parse(list);

interface Given {
  readonly mask: string;
  readonly limit?: string;
  readonly pool?: string;
  readonly grants?: readonly string[];
  readonly wasGiven?: boolean;
}

const facts = ({ mask, limit = '0-7', pool = '0-7', grants = [], wasGiven = false }: Given): MaskFacts => ({
  mask: cpus(mask),
  limit: cpus(limit),
  pool: cpus(pool),
  grants: () => grants.map(cpus),
  isFromBefore: () => wasGiven,
});

describe('a mask', () => {
  it.each([
    ['of all CPUs is no choice', { mask: '0-7' }, 'wide'],
    ['of the whole cpuset is no choice', { mask: '0-3', limit: '0-3' }, 'wide'],
    ['of a member, or of its shell, is that of the shared pool', { mask: '2-7', pool: '2-7' }, 'wide'],
    ['of a process on a grant, or of its child, is numalign’s', { mask: '2-3', grants: ['2-3'] }, 'numalign'],
    ['of a child on a part of a grant is numalign’s', { mask: '2', grants: ['2-3'] }, 'numalign'],
    ['of some CPUs of the shared pool is a choice', { mask: '4-5', pool: '2-7' }, 'chosen'],
    ['of CPUs of two grants is a choice', { mask: '2-5', grants: ['2-3', '4-5'] }, 'chosen'],
    ['beyond the cpuset counts inside it', { mask: '4-9', limit: '0-5', grants: ['4-5'] }, 'numalign'],
  ] as const)('%s', (_, given, expected) => {
    expect(originOf(facts(given))).toBe(expected);
  });
});

const LIBRARY = fileURLToPath(new URL('../../dist/index.js', import.meta.url));
const DIAGNOSTICS = fileURLToPath(new URL('../../dist/entries/diagnostics.js', import.meta.url));

/** The output of a program that has numalign, started with this mask. */
function outputOf(mask: string, program: string): string {
  const script = `const { CpuSet, openManager, NumalignError } = await import(${JSON.stringify(LIBRARY)});
    const stateDir = ${JSON.stringify(makeStateDir())};
    const manager = await openManager({ stateDir, cgroupRoot: null });
    ${program}`;
  const { stdout, stderr } = spawnSync(
    'taskset',
    ['-c', mask, process.execPath, '--input-type=module', '-e', script],
    { encoding: 'utf8' },
  );
  return stdout.trim() || stderr;
}

const last = () => String([...affinity()].at(-1));

// Other programs keep the rest of the CPUs.
describe.runIf(affinity().size > 1)('a process that taskset has started', () => {
  it('gets its grant within its mask', () => {
    const program = 'console.log(String((await manager.acquire({ cpu: 1 })).cpus));';
    expect(outputOf(last(), program)).toBe(last());
  });

  it('gets any CPU if it says so', () => {
    const program = 'console.log(String((await manager.acquire({ cpu: 1, ignoreMask: true })).cpus));';
    expect(outputOf(last(), program)).toBe(String(affinity().first));
  });

  it('keeps to the same mask after its grant has ended', () => {
    const program = `const grant = await manager.acquire({ cpu: 1 });
      grant.pin();
      await grant.release();
      console.log(String((await manager.acquire({ cpu: 1 })).cpus));`;
    expect(outputOf(last(), program)).toBe(last());
  });

  it('is told about the mask if its CPUs do not suffice', () => {
    const program = `await manager.acquire({ cpu: 2 }).catch((error) => console.log(error.code, error.message));`;
    const output = outputOf(last(), program);
    expect(output).toContain('ERR_INSUFFICIENT_CPUS');
    expect(output).toContain(`this process was given the mask ${last()}, to which numalign keeps`);
  });

  it('has a mask that says nothing of a grant for others', () => {
    const program = `console.log(String((await manager.acquire({ cpu: 1, owner: 'persistent' })).cpus));`;
    expect(outputOf(last(), program)).toBe(String(affinity().first));
  });

  it.runIf(isLong)('keeps to no mask that it has as a member, after it has closed its manager', () => {
    const program = `const { spawn } = await import('node:child_process');
      const { once } = await import('node:events');
      const other = \`const { openManager } = await import(${JSON.stringify(LIBRARY)});
        const stateDir = \${JSON.stringify(stateDir)};
        const manager = await openManager({ stateDir, cgroupRoot: null, sharedMember: false });
        console.log(String((await manager.acquire({ cpu: 1 })).cpus));
        process.stdin.resume();\`;
      const holder = spawn(process.execPath, ['--input-type=module', '-e', other]);
      const [first] = await once(holder.stdout, 'data');
      const { affinity } = await import(${JSON.stringify(DIAGNOSTICS)});
      while (affinity().has(Number(first))) await new Promise((resolve) => setTimeout(resolve, 20));
      manager.close();
      holder.kill();
      await once(holder, 'exit');
      const again = await openManager({ stateDir, cgroupRoot: null });
      console.log((await again.acquire({ cpu: 1 })).cpus.first === Number(first));
      process.exit();`;
    expect(outputOf(String(affinity()), program)).toBe('true');
  });

  it('has children on its grant that do not keep to its CPUs, because numalign chose them', () => {
    const program = `const { execFileSync } = await import('node:child_process');
      const grant = await manager.acquire({ cpu: 1 });
      grant.pin();
      const child = \`const { openManager } = await import(${JSON.stringify(LIBRARY)});
        const manager = await openManager({ stateDir: \${JSON.stringify(stateDir)}, cgroupRoot: null });
        process.stdin.once('data', async () => {
          console.log(String((await manager.acquire({ cpu: 1 })).cpus));
          process.exit();
        });
        console.log('ready');\`;
      const { spawn } = await import('node:child_process');
      const started = spawn(process.execPath, ['--input-type=module', '-e', child]);
      started.stderr.pipe(process.stderr);
      started.stdout.on('data', async (text) => {
        if (!String(text).includes('ready')) return console.log(String(text).trim());
        await grant.release();
        started.stdin.write('go');
      });
      await new Promise((resolve) => started.once('exit', resolve));
      process.exit();`;
    expect(outputOf(last(), program)).toBe(String(affinity().first));
  });
});
