// needs: machine
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { affinity } from 'numalign/diagnostics';
import { describe, expect, it } from 'vitest';
import { cpus, hierarchy, idler, isUsable, ownRoot, ROOT } from '../../../test/cgroups/own-root.js';
import { choose, strangeGroup } from '../../../test/enforcement/members.js';
import { endLater, MAIN, newFolder, numalign, type Running, start, until } from './numalign.js';

const RUN = ['run', '--cpus', '1', '--reserved', '0', '--cgroup-root', ROOT, '--state-dir'];
const SUPERVISE = ['run', '--supervise', ...RUN.slice(1)];
const POD = `
apiVersion: v1
kind: Pod
metadata: { name: gateway }
spec:
  containers:
    - { name: main, resources: { limits: { cpu: 1, memory: 16Mi } } }
    - { name: log, resources: { limits: { cpu: 100m, memory: 16Mi } } }
`;

const allowed = (pid: number) =>
  cpus(/^Cpus_allowed_list:\t(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]!);
const cpusetOf = (pid: number) => readFileSync(`/proc/${pid}/cpuset`, 'utf8').trim();

interface StatusJson {
  settings: { cgroupRoot: string | null };
  sharedPool: string;
  sharedMembers: object[];
  waiting: object[];
  grants: { uid: string; enforcement: string; cgroup: string | null; alive: boolean }[];
}

async function status(folder: string): Promise<StatusJson> {
  return JSON.parse((await numalign(['status', '--output', 'json', '--state-dir', folder])).stdout);
}

// One CPU to grant, on any machine.
async function configured(cgroupRoot: string): Promise<string> {
  const folder = newFolder();
  const flags = ['--managed', '0-1', '--reserved', '0', '--cgroup-root', cgroupRoot, '--state-dir', folder];
  expect((await numalign(['configure', ...flags])).code).toBe(0);
  return folder;
}

/** A process that has chosen only managed CPUs: it would keep others. */
function member(): number {
  const pid = idler();
  choose(pid, '0-1');
  return pid;
}

function podFile(): string {
  const file = join(newFolder(), 'pod.yaml');
  writeFileSync(file, POD);
  return file;
}

async function printedPid({ output }: Running): Promise<number> {
  const pid = Number(await until(() => /^(\d+)\n/.exec(output.stdout)?.[1], 'the pid of the command'));
  const grant = await until(() => /grant ([0-9a-f-]{36})/.exec(output.stderr)?.[1], 'the line of numalign');
  endLater(pid, `NUMALIGN_GRANT=${grant}`);
  return pid;
}

describe.runIf(isUsable)('numalign run, with cgroups', () => {
  it('puts the command into the cgroup of its grant, waits outside itself, and leaves nothing behind', async () => {
    const { tree } = ownRoot();
    const folder = await configured(ROOT);
    const run = start([...SUPERVISE, folder, '--', 'sh', '-c', 'echo $$; exec sleep 1000']);
    const pid = await printedPid(run);
    expect(run.output.stderr).toMatch(/^numalign: CPU 1 on NUMA node 0 \(cpuset\), grant \S+\n$/);
    const { grants, sharedMembers } = await status(folder);
    expect(grants).toMatchObject([
      { enforcement: 'cpuset', cgroup: `${tree.rootPath}/${grants[0]!.uid}%2Fmain`, alive: true },
    ]);
    expect(sharedMembers).toMatchObject([{ kind: 'process', pid: run.process.pid }]);
    expect([cpusetOf(pid), `${allowed(pid)}`]).toEqual([`${ROOT}/${grants[0]!.uid}%2Fmain`, '1']);
    expect([cpusetOf(run.process.pid!), `${allowed(run.process.pid!)}`]).toEqual([`${ROOT}/shared`, '0']);
    run.process.kill('SIGTERM');
    expect((await run.ended).signal).toBe('SIGTERM');
    expect(await status(folder)).toMatchObject({ grants: [], sharedMembers: [] });
    expect(existsSync(grants[0]!.cgroup!)).toBe(false);
    expect(readdirSync(join(folder, 'members'))).toEqual([]);
  });

  it('becomes the command in the cgroup of its grant, which the next run removes', async () => {
    const { tree } = ownRoot();
    const folder = await configured(ROOT);
    const script = 'cat /proc/$$/cpuset; grep Cpus_allowed_list /proc/$$/status; exec sleep 1000';
    const run = start([...RUN, folder, '--', 'sh', '-c', script]);
    const pid = run.process.pid!;
    await until(() => run.output.stdout.split('\n').length > 2, 'the command');
    const { grants, sharedMembers } = await status(folder);
    const [grant] = grants;
    expect(grant).toMatchObject({ enforcement: 'cpuset', alive: true, owner: { pid, command: 'sh' } });
    expect(grant!.cgroup).toBe(`${tree.rootPath}/${grant!.uid}%2Fmain`);
    expect(run.output.stdout).toBe(`${ROOT}/${grant!.uid}%2Fmain\nCpus_allowed_list:\t1\n`);
    expect([sharedMembers, readdirSync(join(folder, 'members'))]).toEqual([[], []]);
    run.process.kill('SIGKILL');
    await run.ended;
    expect((await numalign([...SUPERVISE, folder, '--', 'true'])).code).toBe(0);
    expect([existsSync(grant!.cgroup!), (await status(folder)).grants]).toEqual([false, []]);
  });

  it('leaves no cgroup if the kernel refuses to execute the command', async () => {
    const { tree } = ownRoot();
    const folder = await configured(ROOT);
    const file = join(folder, 'script');
    writeFileSync(file, '#!/no/such/interpreter\n', { mode: 0o700 });
    const { code, stderr } = await numalign([...RUN, folder, '--', file]);
    expect([code, stderr]).toEqual([127, expect.stringMatching(/\(cpuset\), grant .*\n.*: not found/)]);
    const left = readdirSync(tree.rootPath).filter((name) => name.includes('%2F'));
    expect([left, (await status(folder)).grants]).toEqual([[], []]);
  });

  it('exits with the code of the command', async () => {
    ownRoot();
    expect((await numalign([...RUN, newFolder(), '--', 'sh', '-c', 'exit 7'])).code).toBe(7);
  });

  it('keeps the cgroup for the command when it is killed itself; the next opener removes both', async () => {
    ownRoot();
    const folder = await configured(ROOT);
    const run = start([...SUPERVISE, folder, '--', 'sh', '-c', 'echo $$; exec sleep 1000']);
    const pid = await printedPid(run);
    run.process.kill('SIGKILL');
    await run.ended;
    const [grant] = (await status(folder)).grants;
    expect([grant?.alive, cpusetOf(pid)]).toEqual([true, `${ROOT}/${grant?.uid}%2Fmain`]);
    process.kill(pid, 'SIGKILL');
    await until(async () => (await status(folder)).grants[0]?.alive === false, 'the death of the grant');
    expect((await numalign([...SUPERVISE, folder, '--', 'true'])).code).toBe(0);
    expect(existsSync(grant!.cgroup!)).toBe(false);
    expect(await status(folder)).toMatchObject({ grants: [], sharedMembers: [] });
  });

  it('gives the command its cgroup even if another shared member is kept off only by its mask', async () => {
    ownRoot();
    const folder = await configured(ROOT);
    const pid = idler();
    const group = strangeGroup('0-1');
    writeFileSync(join(group, 'cgroup.procs'), `${pid}`);
    await numalign(['share', `${pid}`, '--state-dir', folder]);
    const script = 'grep Cpus_allowed_list /proc/self/status';
    const { code, stdout, stderr } = await numalign([...RUN, folder, '--', 'sh', '-c', script]);
    expect([code, stdout]).toEqual([0, 'Cpus_allowed_list:\t1\n']);
    expect(stderr).toMatch(
      /\(members\).*\nnumalign: warning: enforced by the level members: some shared members/,
    );
  });

  it('falls back to affinity if cgroups may not be written, and says why', async () => {
    const folder = await configured(ROOT);
    const mount = hierarchy!.mount.point;
    const readOnly = `mount --bind ${mount} ${mount} && mount -o remount,bind,ro ${mount} && exec "$@"`;
    const script = 'cat /proc/self/cpuset; grep Cpus_allowed_list /proc/self/status';
    const program = ['unshare', '-m', 'sh', '-c', readOnly, 'sh', process.execPath, MAIN] as const;
    const { code, stdout, stderr } = await start([...RUN, folder, '--', 'sh', '-c', script], {
      program: [...program],
    }).ended;
    expect([code, stdout]).toEqual([0, `${cpusetOf(process.pid)}\nCpus_allowed_list:\t1\n`]);
    expect(stderr).toMatch(/\(members\), grant .*\nnumalign: warning: enforced by the level members: .*\n$/);
    const needs = await start([...RUN, folder, '--require', 'cpuset', '--', 'true'], {
      program: [...program],
    }).ended;
    expect([needs.code, needs.stderr]).toEqual([1, expect.stringContaining('[ERR_ENFORCEMENT]')]);
  });

  it('leaves the CPUs of the command even if a shared member cannot leave them', async () => {
    const folder = await configured('none');
    const group = strangeGroup('1');
    const member = idler();
    writeFileSync(join(group, 'cgroup.procs'), `${member}`);
    await numalign(['share', `${member}`, '--state-dir', folder]);
    const line = [
      'run',
      '--supervise',
      '--cpus',
      '1',
      '--unmovable-members',
      'report',
      '--state-dir',
      folder,
    ];
    const command = ['--', 'sh', '-c', 'echo $$; exec sleep 1000'];
    const run = start([...line, ...command], { program: ['taskset', '-c', '1', process.execPath, MAIN] });
    await printedPid(run);
    expect(await status(folder)).toMatchObject({ grants: [{ enforcement: 'recorded' }] });
    expect([`${allowed(run.process.pid!)}`, `${allowed(member)}`]).toEqual(['0', '1']);
    run.process.kill('SIGTERM');
    await run.ended;
  });

  it('waits on the CPUs of the command if it cannot leave them', async () => {
    const folder = await configured('none');
    const group = strangeGroup('1');
    const line = [
      'exec',
      process.execPath,
      MAIN,
      'run',
      '--supervise',
      '--cpus',
      '1',
      '--state-dir',
      folder,
      '--',
      'echo',
      'ran',
    ];
    const script = `echo $$ > ${group}/cgroup.procs; ${line.join(' ')}`;
    const { code, stdout, stderr } = await start([], { program: ['sh', '-c', script] }).ended;
    expect([code, stdout]).toEqual([0, 'ran\n']);
    expect(stderr).toMatch(/^numalign: CPU 1 on NUMA node 0 \(members\), grant \S+\n$/);
    expect(await status(folder)).toMatchObject({ grants: [], sharedMembers: [] });
  });
});

describe('numalign run, without cgroups', () => {
  it('leaves the CPUs of the command, even if it was started on exactly these', async () => {
    const folder = await configured('none');
    const line = [
      'run',
      '--supervise',
      '--cpus',
      '1',
      '--state-dir',
      folder,
      '--',
      'sh',
      '-c',
      'echo $$; exec sleep 1000',
    ];
    const run = start(line, { program: ['taskset', '-c', '1', process.execPath, MAIN] });
    const pid = await printedPid(run);
    await until(() => `${allowed(run.process.pid!)}` === '0', 'numalign on the shared pool');
    expect(`${allowed(pid)}`).toBe('1');
    run.process.kill('SIGTERM');
    await run.ended;
  });

  it('says why a requested level is not reached, and does not run below a required one', async () => {
    const folder = await configured('none');
    const own = ['run', '--cpus', '1', '--state-dir', folder];
    const usual = await numalign([...own, '--', 'true']);
    expect(usual.stderr).toMatch(/^numalign: CPU 1 on NUMA node 0 \(members\), grant \S+\n$/);
    const named = await numalign([...own, '--enforcement', 'cpuset', '--', 'true']);
    expect(named.stderr).toMatch(
      /\(members\), grant .*\nnumalign: warning: enforced by the level members: the settings of this state have no cgroup root, so no cgroups are used; as root, `numalign configure --cgroup-root \/numalign --state-dir \S+` changes that\n$/,
    );
    const required = await numalign([...own, '--require', 'cpuset', '--', 'echo', 'ran']);
    expect(required).toMatchObject({ code: 1, stdout: '' });
    expect(required.stderr).toMatch(
      /^numalign: cpuset is required, but only members .* \[ERR_ENFORCEMENT\]\n$/,
    );
    expect(await status(folder)).toMatchObject({ grants: [], sharedMembers: [] });
    await printedPid(start([...own, '--', 'sh', '-c', 'echo $$; exec sleep 1000']));
    expect((await numalign(['status', '--state-dir', folder])).stdout.replaceAll(/\s+/g, ' ')).toContain(
      `members: only masks keep others off; as root, \`numalign configure --cgroup-root /numalign --state-dir ${folder}\` allows more`,
    );
  });

  it.runIf(isUsable)('says which state folder uses the cgroup root', async () => {
    ownRoot();
    const [mine, other] = [await configured(ROOT), await configured(ROOT)];
    const line = ['run', '--cpus', '1', '--state-dir', other, '--', 'sh', '-c', 'echo $$; exec sleep 1000'];
    await printedPid(start(line));
    const page = (await numalign(['status', '--state-dir', mine])).stdout.replaceAll(/\s+/g, ' ');
    expect(page).toContain(
      `members: the state folder ${other} uses the cgroup root ${ROOT}, and does not know of grants in ${mine}: use one state folder for both, or other CPUs and another root: \`numalign configure --cgroup-root ${ROOT}-2 --managed LIST --state-dir ${mine}\``,
    );
    expect((await numalign(['status', '--state-dir', other])).stdout).not.toContain('use one state folder');
  });

  it.each([
    [['run', '--cpus', '1', '--require', 'much', '--', 'true'], 'Allowed choices are recorded, members'],
    [
      ['run', '--cpus', '1', '--enforcement', 'recorded', '--', 'true'],
      'Allowed choices are members, cpuset',
    ],
    [['run', '--cpus', '1', '--unmovable-members', 'kill', '--', 'true'], 'Allowed choices are fail, report'],
    [['run', '--cpus', '1', '--cgroup-root', 'numalign', '--', 'true'], 'such as /numalign'],
    [['admit', '-f', 'pod.yaml', '--cgroup-root', '/a/../b'], 'such as /numalign'],
    [['configure', '--cgroup-root', ''], 'It is empty'],
    [['attach', 'gateway', '0'], 'numalign: "0" is not a process id, a whole number'],
    [['attach', 'gateway'], "missing required argument 'pid'"],
    [['share', 'sshd'], '"sshd" is not a process id, a whole number'],
    [['share'], "missing required argument 'member'"],
  ])('calls %j a wrong command line', async (args, message) => {
    const { code, stderr } = await numalign(args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });
});

describe('numalign admit and attach', () => {
  it.runIf(isUsable)(
    'move a running process into the cgroup of a pod, and out of it at the release',
    async () => {
      ownRoot();
      const folder = await configured(ROOT);
      const admitted = await numalign([
        'admit',
        '-f',
        podFile(),
        '--require',
        'cpuset',
        '--state-dir',
        folder,
      ]);
      expect(admitted.code).toBe(0);
      const { grants, sharedMembers } = await status(folder);
      expect(grants).toMatchObject([{ enforcement: 'cpuset' }]);
      // From numalign admit, which has ended.
      expect(sharedMembers).toEqual([]);
      const pid = idler();
      const moved = await numalign([
        'attach',
        'gateway',
        `${pid}`,
        '--container',
        'main',
        '--state-dir',
        folder,
      ]);
      expect(moved).toMatchObject({
        code: 0,
        stdout: `process ${pid} is on CPU 1 of gateway, with memory of NUMA node 0\n`,
      });
      expect([cpusetOf(pid), `${allowed(pid)}`]).toEqual([`${ROOT}/${grants[0]!.uid}%2Fmain`, '1']);
      const text = (await numalign(['status', '--state-dir', folder])).stdout;
      expect(text).toContain(
        `\n  ${grants[0]!.uid.slice(0, 8)} gateway, container main: ${grants[0]!.cgroup}, memory of NUMA node 0\n`,
      );
      expect((await numalign(['release', 'gateway', '--state-dir', folder])).code).toBe(0);
      expect([cpusetOf(pid), `${allowed(pid)}`]).toEqual([`${ROOT}/shared`, '0-1']);
    },
  );

  it.runIf(isUsable)('appear in status by container, with their cgroups', async () => {
    ownRoot();
    const folder = await configured(ROOT);
    await numalign(['admit', '-f', podFile(), '--state-dir', folder]);
    const look = async () => (await numalign(['status', '--state-dir', folder])).stdout;
    const [grant] = (await status(folder)).grants;
    const [uid, cgroup] = [grant!.uid, grant!.cgroup!];
    const title = `${uid.slice(0, 8)} gateway, container main: ${cgroup}`;
    expect(await look()).toContain(`\n  ${title} (not made yet)\n`);
    const [main, log] = [idler(), idler()];
    await numalign(['attach', 'gateway', `${main}`, '--container', 'main', '--state-dir', folder]);
    await numalign(['attach', 'gateway', `${log}`, '--container', 'log', '--state-dir', folder]);
    const text = await look();
    expect(text).toContain(`\n  ${title}, memory of NUMA node 0\n`);
    expect(text).toContain(`\nattached to grants:\n  process ${main} (sleep): gateway, container main\n`);
    expect(text).toContain(`\nshared members:\n  process ${log} (sleep)\n`);
    const { grants, sharedMembers } = await status(folder);
    expect(grants).toMatchObject([{ cgroups: [{ container: 'main', path: cgroup, isMade: true }] }]);
    expect(grants).toMatchObject([
      {
        memoryEnforcement: [
          {
            ...{ container: 'main', cgroup, wanted: '0', nodes: '0' },
            ...{ applied: true, migrates: false, reason: null },
          },
          {
            ...{ container: 'log', cgroup: null, wanted: '0', nodes: null },
            ...{ applied: false, migrates: null, reason: 'no-cgroup' },
          },
        ],
      },
    ]);
    expect(sharedMembers).toContainEqual(
      expect.objectContaining({ pid: main, grant: uid, container: 'main' }),
    );
    const all = idler();
    await numalign(['attach', 'gateway', `${all}`, '--state-dir', folder]);
    expect(await look()).toContain(
      `gateway, all containers: ${join(cgroup, '..')}/${uid}%2F%2Eall, memory of NUMA node 0\n`,
    );
    await numalign(['release', 'gateway', '--state-dir', folder]);
  });

  it('move it by its masks without cgroups, and into the shared pool for a container without CPUs', async () => {
    const folder = await configured('none');
    await numalign(['admit', '-f', podFile(), '--state-dir', folder]);
    const [pid, other] = [idler(), idler()];
    const moved = await numalign(['attach', 'gateway', `${pid}`, '--state-dir', folder]);
    expect(moved.stdout).toBe(
      `process ${pid} is on CPU 1 of gateway, by the masks of its threads; its memory is not bound to NUMA node 0: no-cgroup\n`,
    );
    expect(`${allowed(pid)}`).toBe('1');
    const json = ['--container', 'log', '--output', 'json', '--state-dir', folder];
    const shared = await numalign(['attach', 'gateway', `${other}`, ...json]);
    expect(JSON.parse(shared.stdout)).toMatchObject({
      container: 'log',
      pid: other,
      cpus: '0',
      guaranteed: false,
      memory: { container: 'log', applied: false, reason: 'no-cgroup' },
    });
    const pids = (await status(folder)).sharedMembers.map((member) => (member as { pid: number }).pid);
    expect(pids.sort()).toEqual([pid, other].sort());
    await numalign(['release', 'gateway', '--state-dir', folder]);
  });

  it('name what does not exist', async () => {
    const folder = await configured('none');
    await numalign(['admit', '-f', podFile(), '--state-dir', folder]);
    const attach = async (...args: string[]) => {
      const { code, stderr } = await numalign(['attach', ...args, '--state-dir', folder]);
      return [code, /\[(\w+)\]/.exec(stderr)?.[1]];
    };
    expect(await attach('unknown', `${process.pid}`)).toEqual([1, 'ERR_UNKNOWN_GRANT']);
    expect(await attach('gateway', '4194304')).toEqual([1, 'ERR_UNKNOWN_MEMBER']);
    expect(await attach('gateway', `${process.pid}`, '--container', 'web')).toEqual([
      1,
      'ERR_UNKNOWN_CONTAINER',
    ]);
    const folderless = join(newFolder(), 'state');
    const { code } = await numalign(['attach', 'gateway', `${process.pid}`, '--state-dir', folderless]);
    expect([code, existsSync(folderless)]).toEqual([1, false]);
  });
});

describe('numalign run --wait', () => {
  it('is listed in status as long as it waits', async () => {
    const folder = await configured('none');
    await numalign(['admit', '-f', podFile(), '--state-dir', folder]);
    expect(await status(folder)).toMatchObject({ waiting: [] });
    const run = start(['run', '--cpus', '1', '--wait', '--state-dir', folder, '--', 'true']);
    const { pid } = run.process;
    await until(async () => (await status(folder)).waiting.length > 0, 'the request that waits');
    expect((await status(folder)).waiting).toMatchObject([
      { pid, command: expect.stringContaining('-- true') },
    ]);
    expect((await numalign(['status', '--state-dir', folder])).stdout).toContain(
      `\nwaiting for CPUs, the next first:\n  process ${pid} (numalign run -- true)\n`,
    );
    await numalign(['release', 'gateway', '--state-dir', folder]);
    expect(await run.ended).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^numalign: waiting for 1 CPU\nnumalign: CPU /),
    });
    expect(await status(folder)).toMatchObject({ waiting: [] });
  });

  it('does not say that it waits if there is room', async () => {
    const folder = await configured('none');
    const run = start(['run', '--cpus', '1', '--wait', '--state-dir', folder, '--', 'true']);
    expect(await run.ended).toMatchObject({ code: 0, stderr: expect.stringMatching(/^numalign: CPU .*\n$/) });
  });
});

describe('a grant whose owner was killed', () => {
  it('names the processes that still run on it, in status and on release', async () => {
    const folder = await configured('none');
    const run = start([
      'run',
      '--supervise',
      '--cpus',
      '1',
      '--state-dir',
      folder,
      '--',
      'sh',
      '-c',
      'echo $$; exec sleep 1000',
    ]);
    const pid = await printedPid(run);
    const { grants } = await status(folder);
    expect(grants).toMatchObject([{ survivors: [] }]);
    const before = await numalign(['release', grants[0]!.uid, '--state-dir', folder]);
    expect(before.stderr).toMatch(
      new RegExp(`belongs to process ${run.process.pid} .*, which still runs on its CPUs`),
    );
    run.process.kill('SIGKILL');
    await run.ended;
    expect((await status(folder)).grants).toMatchObject([
      { alive: true, survivors: [{ pid, command: 'sleep' }] },
    ]);
    // Wide enough for any process ids.
    const wide = { env: { COLUMNS: '200' } };
    const text = (await numalign(['status', '--state-dir', folder], wide)).stdout;
    expect(text).toContain(`pid ${run.process.pid} ended: ${pid} sleep`);
    const release = await numalign(['release', grants[0]!.uid, '--state-dir', folder]);
    expect([release.code, release.stderr]).toEqual([1, expect.stringContaining('[ERR_OWNER_ALIVE]')]);
    expect(release.stderr).toMatch(
      new RegExp(
        `process ${run.process.pid} .*, which has ended, but .*: process ${pid} \\(sleep\\). End that`,
      ),
    );
    process.kill(pid, 'SIGKILL');
    await until(async () => (await status(folder)).grants[0]?.alive === false, 'the death of the grant');
    expect((await numalign(['release', grants[0]!.uid, '--state-dir', folder])).code).toBe(0);
  });
});

describe('numalign share', () => {
  it('makes a process leave granted CPUs and come back, until it is removed', async () => {
    const folder = await configured('none');
    const pid = member();
    const shared = await numalign(['share', `${pid}`, '--state-dir', folder]);
    expect(shared).toMatchObject({ code: 0, stdout: `process ${pid} runs in the shared pool: CPUs 0-1\n` });
    expect((await numalign(['status', '--state-dir', folder])).stdout).toMatch(
      new RegExp(`\nshared members:\n {2}process ${pid} \\(sleep\\)\n$`),
    );
    await numalign(['admit', '-f', podFile(), '--state-dir', folder]);
    expect(`${allowed(pid)}`).toBe('0');
    await numalign(['release', 'gateway', '--state-dir', folder]);
    expect(`${allowed(pid)}`).toBe('0-1');
    const json = ['--remove', '--output', 'json', '--state-dir', folder];
    const removed = await numalign(['share', `${pid}`, ...json]);
    expect(JSON.parse(removed.stdout)).toEqual({
      stateDir: folder,
      sharedPool: '0-1',
      sharedMembers: [],
      cpus: '0-1',
    });
    const again = await numalign(['share', `${pid}`, ...json]);
    expect([again.code, JSON.parse(again.stderr).error.code]).toEqual([1, 'ERR_UNKNOWN_MEMBER']);
  });

  it.runIf(isUsable)('moves a removed process back to its cgroup, or says how to move it', async () => {
    ownRoot();
    const folder = await configured(ROOT);
    const pid = idler();
    const share = async (...args: string[]) =>
      (await numalign(['share', `${pid}`, ...args, '--state-dir', folder])).stdout;
    await share();
    expect(cpusetOf(pid)).toBe(`${ROOT}/shared`);
    expect(await share('--remove')).toBe(`process ${pid} is no longer a shared member\n`);
    expect([cpusetOf(pid), `${allowed(pid)}`]).toEqual(['/', `${affinity()}`]);
    await share();
    await numalign(['admit', '-f', podFile(), '--state-dir', folder]);
    const notice = await share('--remove');
    expect([cpusetOf(pid), `${allowed(pid)}`]).toEqual([`${ROOT}/shared`, '0']);
    expect(notice).toContain(`is no longer a shared member, but stays in the cgroup ${ROOT}/shared`);
    const [, command] = /`(.*)`/.exec(notice)!;
    execFileSync('sh', ['-c', command!]);
    expect(cpusetOf(pid)).toBe('/');
    await numalign(['release', 'gateway', '--state-dir', folder]);
  });

  it('reports a process that stays on the CPUs of a grant, or refuses it', async () => {
    const folder = await configured('none');
    const run = start([
      'run',
      '--cpus',
      '1',
      '--state-dir',
      folder,
      '--',
      'sh',
      '-c',
      'echo $$; exec sleep 1000',
    ]);
    const pid = await printedPid(run);
    const shared = await numalign(['share', `${pid}`, '--state-dir', folder]);
    const stays = `process ${pid} is a shared member, but stays on CPUs 1 until the grant that it runs for ends\n`;
    expect([shared.code, shared.stdout, `${allowed(pid)}`]).toEqual([0, stays, '1']);
    run.process.kill('SIGTERM');
    await run.ended;
    await numalign(['admit', '-f', podFile(), '--state-dir', folder]);
    const other = member();
    await numalign(['attach', 'gateway', `${other}`, '--container', 'main', '--state-dir', folder]);
    const refused = await numalign(['share', `${other}`, '--state-dir', folder]);
    expect([refused.code, refused.stdout]).toEqual([1, '']);
    expect(refused.stderr).toContain(`process ${other} is attached to gateway (container main)`);
    await numalign(['attach', 'gateway', `${other}`, '--container', 'log', '--state-dir', folder]);
    const moved = await numalign(['share', `${other}`, '--state-dir', folder]);
    expect([moved.stdout, `${allowed(other)}`]).toEqual([
      `process ${other} runs in the shared pool: CPUs 0\n`,
      '0',
    ]);
    await numalign(['release', 'gateway', '--state-dir', folder]);
  });

  it.runIf(isUsable)(
    'accepts a cgroup, however its path is written; commands from it stay on their own CPUs',
    async () => {
      const folder = await configured('none');
      const group = strangeGroup('0-1');
      expect((await numalign(['share', `${group}/`, '--state-dir', folder])).code).toBe(0);
      expect((await status(folder)).sharedMembers).toEqual([{ kind: 'cgroup', path: group }]);
      const line = [
        'exec',
        process.execPath,
        MAIN,
        'run',
        '--supervise',
        '--cpus',
        '1',
        '--state-dir',
        folder,
        '--',
      ].join(' ');
      const script = `echo $$ > ${group}/cgroup.procs; ${line} sh -c 'echo $$; exec sleep 1000'`;
      const run = start([], { program: ['sh', '-c', script] });
      const pid = await printedPid(run);
      // Another process's transaction checks all members again.
      expect((await numalign(['share', `${idler()}`, '--state-dir', folder])).code).toBe(0);
      expect([`${allowed(pid)}`, `${allowed(run.process.pid!)}`]).toEqual(['1', '0']);
      run.process.kill('SIGTERM');
      await run.ended;
      expect((await numalign(['share', `${group}/`, '--remove', '--state-dir', folder])).code).toBe(0);
    },
  );
});

describe('numalign agent', () => {
  it('is a shared member as long as it runs, with the cgroup root of its options', async () => {
    const folder = await configured('none');
    const wrong = await numalign(['agent', '--port', '0', '--cgroup-root', ROOT, '--state-dir', folder]);
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('cgroupRoot is none, not')]);
    const agent = start(['agent', '--port', '0', '--cgroup-root', 'none', '--state-dir', folder]);
    await until(() => agent.output.stdout.includes('listening'), 'the agent');
    expect((await status(folder)).sharedMembers).toMatchObject([{ kind: 'process', pid: agent.process.pid }]);
    agent.process.kill('SIGTERM');
    expect((await agent.ended).code).toBe(0);
    expect(readdirSync(join(folder, 'members'))).toEqual([]);
  });
});

describe('settings and read-only commands', () => {
  it.runIf(isUsable)('numalign configure keeps the cgroup root while CPUs are exclusive', async () => {
    ownRoot();
    const folder = await configured(ROOT);
    expect((await status(folder)).settings.cgroupRoot).toBe(ROOT);
    await numalign(['admit', '-f', podFile(), '--state-dir', folder]);
    const refused = await numalign(['configure', '--cgroup-root', 'none', '--state-dir', folder]);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('[ERR_CONFIG_CONFLICT]')]);
    await numalign(['release', 'gateway', '--state-dir', folder]);
    const { code, stdout } = await numalign(['configure', '--cgroup-root', 'none', '--state-dir', folder]);
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(new RegExp(`^cgroups: +below ${ROOT} +none$`, 'm')),
    ]);
  });

  it('numalign status and topology register and forget no process', async () => {
    const folder = await configured('none');
    const pid = idler();
    await numalign(['share', `${pid}`, '--state-dir', folder]);
    const names = () => readdirSync(join(folder, 'members')).sort();
    const before = names();
    expect(before).toHaveLength(1);
    process.kill(pid, 'SIGKILL');
    await until(async () => (await status(folder)).sharedMembers.length === 0, 'its end');
    await numalign(['topology', '--state-dir', folder]);
    expect(names()).toEqual(before);
  });
});
