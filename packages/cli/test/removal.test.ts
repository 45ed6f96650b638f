// needs: machine
// In a mount namespace with /etc and /run of the test's own, and a cgroup root of its own.
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openManager } from '../../../lib/index.js';
import { sealLine } from '../../../lib/state/format/sealed-json.js';
import { isUsable } from '../../../test/cgroups/own-root.js';
import { partsOf } from '../lib/commands/service/state-removal.js';
import { MAIN, newFolder } from './numalign.js';
import { hasSystemd } from './systemd.js';

const CGROUPS = `/sys/fs/cgroup/cpuset/numalign-removal-${process.pid}`;

// Each step prints its code behind its output.
const SCRIPT = `
mount -t tmpfs none /run && mount --bind "$1/etc" /etc || exit 1
step() { echo "== $1"; shift; "$@" 2>&1; echo "code $?"; }
numalign() { "$NODE" "$MAIN" "$@"; }
numalign setup --reserved 0 >/dev/null
numalign configure --reserved 0 --cgroup-root "/\${2##*/}" >/dev/null
numalign admit -f "$1/pod.json" >/dev/null
"$NODE" "$MAIN" run --cpus 1 --name live -- sleep 1000 2>/dev/null &
program=$!
until grep -qx sleep "/proc/$program/comm"; do sleep 0.05; done
step shown numalign uninstall --dry-run
step refused numalign setup --remove
step units ls /etc/systemd/system
step forced numalign uninstall --force
step state ls /run/numalign
kill $program; wait $program 2>/dev/null
step removed numalign setup --remove
step again numalign uninstall
step left ls /run
`;

describe('what a state has on the machine', () => {
  it('includes kernel settings that are still on record, by the latest line that names them', async () => {
    const stateDir = newFolder();
    (await openManager({ stateDir, cgroupRoot: null, sharedMember: false })).close();
    const [, state] = readFileSync(join(stateDir, 'state.json'), 'utf8').split('\n');
    const { bootId, writtenAt, generation } = JSON.parse(state!);
    const setting = (path: string, original: string) => ({
      ...{
        part: 'frequency',
        path,
        identity: null,
        original,
        written: ['1'],
        refusal: null,
        isLeftover: true,
      },
    });
    const lines = [
      { quiet: { settings: [setting('/sys/first', '2'), setting('/sys/second', '3')] } },
      { quiet: { settings: [setting('/sys/second', '3')] } },
      { released: [] },
    ].map((change, i) => ({ line: 'change', generation: generation + 1 + i, bootId, writtenAt, ...change }));
    for (const line of lines) appendFileSync(join(stateDir, 'state.json'), sealLine(JSON.stringify(line)));
    expect(await partsOf(stateDir)).toEqual({
      ...{ folder: stateDir, grants: [], cgroups: [] },
      settings: [{ path: '/sys/second', original: '3' }],
    });
  });
});

describe.runIf(isUsable && hasSystemd)('numalign uninstall', () => {
  it('refuses while grants live, and removes all that numalign has made', () => {
    const folder = newFolder();
    mkdirSync(join(folder, 'etc'));
    writeFileSync(join(folder, 'etc/passwd'), 'root:x:0:0::/:/bin/sh\n');
    writeFileSync(join(folder, 'etc/group'), 'root:x:0:\n');
    const pod = {
      uid: 'pod-1',
      name: 'web',
      containers: [{ name: 'main', limits: { cpu: 0.1, memory: 1 } }],
    };
    writeFileSync(join(folder, 'pod.json'), JSON.stringify(pod));
    const env = { ...process.env, NODE: process.execPath, MAIN, NODE_EXTRA_CA_CERTS: '' };
    const args = ['--mount', 'sh', '-c', SCRIPT, 'sh', folder, CGROUPS];
    const { stdout, stderr } = spawnSync('unshare', args, { encoding: 'utf8', env, timeout: 240_000 });
    const steps = Object.fromEntries(
      stdout
        .split('== ')
        .slice(1)
        .map((text) => text.split(/(?<=^\w+)\n/, 2)),
    ) as Record<string, string>;
    expect(stderr).toBe('');

    const living = /^numalign: \/run\/numalign has grants that live: .*\(live\) of process \d+ \(sleep\)/m;
    expect(steps.shown).toMatch(living);
    expect(steps.shown).toMatch(/^release grant pod-1 \(web\), which is persistent$/m);
    expect(steps.shown).toContain(`remove the cgroup ${CGROUPS}/shared\nremove the cgroup ${CGROUPS}\n`);
    expect(steps.shown).toMatch(/^run groupdel numalign\n[\s\S]*code 0\n$/m);

    expect(steps.refused).toMatch(living);
    expect(steps.refused).toMatch(/--force.* \[ERR_OWNER_ALIVE\]\ncode 1\n$/);
    expect(steps.units).toContain('numalign.service');

    expect(steps.forced).toMatch(/^released grant pod-1 \(web\), which is persistent$/m);
    expect(steps.forced).toMatch(/^numalign: grant .*\(live\) of process \d+ \(sleep\) lives, and stays$/m);
    expect(steps.forced).toContain('kept for the group and the folder: /etc/sysusers.d/numalign.conf');
    expect(steps.forced).toMatch(/^numalign: the cgroup .*%2Fmain stays: a process is in it$/m);
    expect(steps.forced).toMatch(/^numalign: \/run\/numalign stays: .*\ncode 0$/m);
    expect(steps.state).toContain('state.json');

    expect(steps.removed).toMatch(/^removed \/run\/numalign$/m);
    expect(steps.removed).toMatch(/^ran groupdel numalign$/m);
    expect(steps.again).toMatch(/^missing: \/etc\/sysusers.d\/numalign.conf\ncode 0$/m);
    expect(steps.left).toBe('mount\ncode 0\n');
    expect(existsSync(CGROUPS)).toBe(false);
    expect(readFileSync(join(folder, 'etc/group'), 'utf8')).toBe('root:x:0:\n');
    expect(readdirSync(join(folder, 'etc/systemd/system'))).toEqual([]);
  });
});
