// needs: machine
// A mask that somebody chose is a wish, one from numalign is none, and a cpuset is a limit: `run` and
// `doctor` agree.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { affinity } from 'numalign/diagnostics';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isUsable } from '../../../test/cgroups/own-root.js';
import { strangeGroup } from '../../../test/enforcement/members.js';
import { MAIN, newFolder } from './numalign.js';

const ALL = String(affinity());
const [FIRST, LAST] = [String(affinity().first), String([...affinity()].at(-1))];

// What the program of `run` may run on, and what doctor says of that.
const RUN = `numalign run --cpus 1 $IGNORE -- grep -h Cpus_allowed_list /proc/self/status 2>/dev/null`;
const DOCTOR = `numalign doctor --output json | tr -d '\\n' | grep -o '"allowed-cpus"[^}]*'`;

interface Answers {
  readonly cpus: string;
  readonly doctor: string;
}

/** The answers of both in a shell; `prefix`: what starts it. */
function answersIn(prefix: readonly string[], ignore = ''): Answers {
  const script = `numalign() { '${process.execPath}' '${MAIN}' "$@"; }; ${RUN}; ${DOCTOR}`;
  const [command, ...args] = [...prefix, 'sh', '-c', script];
  const env = { ...process.env, NUMALIGN_STATE_DIR: newFolder(), IGNORE: ignore };
  const { stdout, stderr } = spawnSync(command!, args, { encoding: 'utf8', env });
  const [, cpus, doctor] = /^Cpus_allowed_list:\s*(\S+)\n(.*)/s.exec(stdout) ?? [undefined, stderr, ''];
  return { cpus: cpus!, doctor: doctor! };
}

describe.runIf(affinity().size > 1)('a mask', () => {
  it.each([
    ['that taskset gave, or CPUAffinity=', ['taskset', '-c', LAST]],
    ['of the parent', ['taskset', '-c', LAST, 'sh', '-c', '"$@"; true', 'sh']],
  ])('%s is kept to, and doctor says so', (_, prefix) => {
    const { cpus, doctor } = answersIn(prefix);
    expect(cpus).toBe(LAST);
    expect(doctor).toContain(`${LAST} of ${ALL}: the mask of this shell, to which grants keep`);
  });

  it('is left by --ignore-mask', () => {
    expect(answersIn(['taskset', '-c', LAST], '--ignore-mask').cpus).toBe(FIRST);
  });

  it('of all CPUs is no wish', () => {
    const { cpus, doctor } = answersIn([]);
    expect([cpus, doctor.includes('"ok"')]).toEqual([FIRST, true]);
  });

  it('that the shell of a member has from numalign is no wish, though the grant has ended since', async () => {
    const stateDir = newFolder();
    // Waits beside a grant of the first CPU, which ends meanwhile.
    const numalign = `'${process.execPath}' '${MAIN}'`;
    const script = `${numalign} share $$ >/dev/null
      ${numalign} run --cpus 1 --name holder -- sleep 60 2>/dev/null & holder=$!
      until ${numalign} status | grep -q holder; do sleep 0.1; done
      grep Cpus_allowed_list /proc/$$/status
      ${numalign} doctor --output json | tr -d '\\n' | grep -o '"allowed-cpus"[^}]*'
      ${numalign} run --cpus 1 --wait -- grep Cpus_allowed_list /proc/self/status 2>/dev/null & waiting=$!
      until ${numalign} status | grep -q waiting; do sleep 0.1; done
      kill $holder; wait $waiting`;
    const shell = spawn('sh', ['-c', script], {
      env: { ...process.env, NUMALIGN_STATE_DIR: stateDir },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void shell.kill());
    let output = '';
    shell.stdout.on('data', (text) => (output += text));
    await once(shell, 'close');
    const [before, doctor, after] = output.trim().split('\n');
    expect([before, after].map((line) => line?.split('\t')[1])).toEqual([LAST, FIRST]);
    expect(doctor).toContain('"ok"');
  });
});

// CPUs 0 and 1 of cgroup v1.
describe.runIf(isUsable)('a cpuset', () => {
  it('is a limit, which doctor names, whatever the options say', () => {
    const group = strangeGroup(LAST);
    const enter = ['sh', '-c', `echo $$ > ${join(group, 'cgroup.procs')}; exec "$@"`, 'sh'];
    for (const ignore of ['', '--ignore-mask']) {
      const { cpus, doctor } = answersIn(enter, ignore);
      expect(cpus).toBe(LAST);
      expect(doctor).toContain(`${LAST} of ${ALL}: the cpuset of this process has no CPU ${FIRST}`);
    }
    writeFileSync(join(group, 'cpuset.cpus'), ALL);
  });
});
