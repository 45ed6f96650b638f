// needs: process
// The machine's folder and the group that shares it, in namespaces with their own /run, /etc/group
// and processes.
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, linkSync, lstatSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { closedPart, giveToGroup } from '../../lib/state/folder/machine-group.js';
import { canUnshare } from '../support/rights.js';
import { makeStateDir } from '../support/state-dir.js';
import { canBeStranger, forStrangers } from '../support/strangers.js';

const [GROUP, BOB] = [54321, 54322];
const canTry = canBeStranger && canUnshare;

// For bob and for root.
const numalign = canTry ? `${process.execPath} ${forStrangers('packages/cli/dist/main.cjs')}` : '';
const asBob = (groups: number | 'none') =>
  `setpriv --reuid ${BOB} --regid ${BOB} ${groups === 'none' ? '--clear-groups' : `--groups ${groups}`}`;
const run = `run --cpus 1 --cgroup-root none -- true`;
const configure = `${numalign} configure --reserved none --managed 0-1 --cgroup-root none`;
const addGroup = `echo numalign:x:${GROUP}:bob >> /etc/group`;

/** The output of a script of root in such a namespace: both streams. */
function inNamespace(...lines: string[]): string {
  const folder = join(makeStateDir(), '..');
  // For bob, a user without a group of root's.
  chmodSync(folder, 0o755);
  const files = ['group', 'passwd'].map((name) => {
    const file = join(folder, name);
    writeFileSync(
      file,
      name === 'group' ? 'root:x:0:\n' : `root:x:0:0::/:/bin/sh\nbob:x:${BOB}:${BOB}::/:/bin/sh\n`,
    );
    return `mount --bind ${file} /etc/${name}`;
  });
  const script = ['set -e', 'mount -t tmpfs -o mode=755 tmpfs /run', ...files, 'set +e', ...lines].join('\n');
  // A kubelet of the machine is not visible there.
  const namespaces = ['-mpf', '--mount-proc'];
  const { stdout, stderr } = spawnSync('unshare', [...namespaces, 'sh', '-c', `exec 2>&1\n${script}`], {
    encoding: 'utf8',
  });
  return `${stdout}${stderr}`;
}

describe.runIf(canTry)('the group of the machine’s folder', () => {
  it('gets what root made before the group existed, once root opens it again', () => {
    const printed = inNamespace(
      `${configure} > /dev/null`,
      addGroup,
      `${asBob(GROUP)} ${numalign} ${run}`,
      `${numalign} doctor | grep -A3 state-folder`,
      `${configure} > /dev/null`,
      `stat -c '%U:%g %a %n' /run/numalign /run/numalign/*`,
      `${asBob(GROUP)} ${numalign} ${run} && echo bob ran`,
      `${numalign} doctor | grep state-folder`,
    );
    expect(printed).toContain(
      'members of the group numalign may use it, but /run/numalign belongs to another group: as root run `chgrp -R numalign /run/numalign && chmod 2770 /run/numalign`',
    );
    expect(printed).toMatch(/warning +state-folder[^`]*not by members of its\s+group[^`]*`chgrp -R numalign/);
    expect(printed).toContain(`root:${GROUP} 2770 /run/numalign\n`);
    for (const name of ['lock', 'state.json'])
      expect(printed).toContain(`root:${GROUP} 660 /run/numalign/${name}\n`);
    for (const name of ['owners', 'waiting', 'members'])
      expect(printed).toContain(`root:${GROUP} 2770 /run/numalign/${name}\n`);
    expect(printed).toContain('bob ran\n');
    expect(printed).toMatch(/ok +state-folder/);
  });

  it('explains to each user why the folder is closed, with a command that repairs it', () => {
    const printed = inNamespace(
      `${configure} > /dev/null`,
      `echo no group; ${asBob('none')} ${numalign} status`,
      addGroup,
      `install -d -m 2770 -g ${GROUP} /run/numalign`,
      `echo not yet; ${asBob('none')} ${numalign} ${run}`,
      'sed -i s/bob// /etc/group 2> /dev/null || sed s/bob// /etc/group > /run/group && cat /run/group > /etc/group',
      `echo stranger; ${asBob('none')} ${numalign} ${run}`,
      `echo member; ${asBob(GROUP)} ${numalign} status`,
      `${asBob(GROUP)} ${numalign} ${run}`,
      `echo doctor; ${asBob(GROUP)} ${numalign} doctor | grep -A3 state-folder`,
      'chgrp -R numalign /run/numalign && chmod 2770 /run/numalign',
      `${asBob(GROUP)} ${numalign} ${run} && echo bob ran`,
    );
    expect(printed).toMatch(/no group\nthe grants cannot be read: .*the machine has no group numalign/);
    expect(printed).toMatch(
      /not yet\n.*was started before user bob became one: log in again.*\n.*--state-dir DIR/,
    );
    expect(printed).toMatch(
      /stranger\n.*members of the group numalign may use it, and user bob is not one: as root run `usermod -aG numalign bob`, then log in again.*\n.*--state-dir DIR/,
    );
    expect(printed).toMatch(
      /member\n.*the grants cannot be read: .*lock belongs to another group: as root run `chgrp -R.*\n[^`]*lock belongs to another group.*\[ERR_STATE_FOLDER\]/,
    );
    expect(printed).toMatch(/doctor\n.*problem +state-folder[^`]*`chgrp -R numalign/);
    expect(printed).toContain('bob ran\n');
  });

  it('is not needed for reading', () => {
    const pod = 'kind: Pod\\nspec: {containers: [{name: main, resources: {limits: {cpu: 1, memory: 1Mi}}}]}';
    const bob = `${asBob('none')} ${numalign}`;
    const look = [
      `${bob} status; echo "status $?"`,
      `${bob} status --output json | tr -d ' \\n'; echo`,
      `${bob} topology > /run/bob && grep -c 'Machine:' /run/bob`,
      `${bob} plan -f /run/pod.yaml | tail -1`,
      `${bob} doctor | grep -c state-folder`,
    ];
    const printed = inNamespace(
      `echo "${pod}" > /run/pod.yaml; touch /run/bob; chmod 666 /run/bob`,
      ...look,
      `${configure} > /dev/null`,
      'echo closed',
      ...look,
      `${bob} status --state-dir /run/numalign > /dev/null; echo "asked for: $?"`,
    );
    const [open, closed] = printed.split('closed\n');
    const admitted = 'admitted under best-effort, scope container\n';
    expect(open).toMatch(/^no state in \/run\/numalign: nothing is granted\nstatus 0\n/);
    expect(closed).toMatch(/^the grants cannot be read: .*\nstatus 0\n\{.*"closed":".*","grants":null\}\n/);
    for (const part of [open, closed]) expect(part).toContain(`\n1\n`);
    expect(open).toContain(`\n${admitted}1\n`);
    expect(closed).toMatch(
      /\nnumalign: planned as if nothing were granted, since the state cannot be read: .*\nadmitted under best-effort, scope container\n1\n/,
    );
    expect(closed).toMatch(/\[ERR_STATE_FOLDER\][\s\S]*asked for: 1\n$/);
  });

  it('is repaired for an ordinary user of a fresh machine by the one command in the message', () => {
    const printed = inNamespace(
      // Like groupadd and usermod of shadow, which cannot rename /etc/group because of the bind
      // mount.
      'mkdir /run/bin',
      `printf '#!/bin/sh\\n${addGroup.replace('bob', '')}\\n' > /run/bin/groupadd`,
      `printf '#!/bin/sh\\nsed s/^numalign:.*/numalign:x:${GROUP}:$3/ /etc/group > /run/group; cat /run/group > /etc/group\\n' > /run/bin/usermod`,
      'chmod +x /run/bin/*; PATH=/run/bin:$PATH',
      `${asBob('none')} ${numalign} ${run} 2> /run/report; cat /run/report`,
      "command=$(sed -n 's/.*as root run `\\(.*\\)`.*/\\1/p' /run/report)",
      'eval "$command" && echo mended',
      `${asBob('none')} ${numalign} ${run}`,
      `${asBob(GROUP)} ${numalign} ${run} && echo bob ran`,
    );
    expect(printed).toMatch(
      /^numalign: .* cannot be used: as root run `groupadd -rf numalign && usermod -aG numalign bob && install -d.*\nnumalign: use --state-dir DIR/,
    );
    expect(printed).toMatch(/`, then log in again .*\[ERR_STATE_FOLDER\]\n/);
    expect(printed).toMatch(
      /mended\n.*was started before user bob became one: log in again.*\n.*--state-dir DIR/,
    );
    expect(printed).toContain('bob ran\n');
    expect(printed).not.toContain('stateDir');
  });

  it('gets no links, no files with a second name, and no folder that was closed', () => {
    const printed = inNamespace(
      `${configure} > /dev/null`,
      addGroup,
      'echo secret > /run/secret; chmod 600 /run/secret; mkdir /run/elsewhere; echo x > /run/elsewhere/file',
      'ln /run/secret /run/numalign/owners/hard; ln -s /run/secret /run/numalign/soft',
      'ln -s /run/elsewhere /run/numalign/folder; mkfifo /run/numalign/pipe',
      'chmod 700 /run/numalign',
      `${configure} > /dev/null; stat -c 'closed %g' /run/numalign/lock`,
      'chmod 2770 /run/numalign',
      `${configure} > /dev/null; stat -c 'open %g' /run/numalign/lock`,
      'stat -c "%n %g" /run/secret /run/elsewhere /run/elsewhere/file /run/numalign/pipe',
    );
    expect(printed).toContain('closed 0\n');
    expect(printed).toContain(`open ${GROUP}\n`);
    for (const path of ['secret', 'elsewhere', 'elsewhere/file', 'numalign/pipe'])
      expect(printed).toContain(`/run/${path} 0\n`);
  });
});

describe.runIf(process.getuid?.() === 0)('a folder that root made', () => {
  const FILES = ['lock', 'state.json', 'owners/a', 'owners/deep/b', 'two-names', 'bobs'];

  function madeByRoot(): string {
    const folder = makeStateDir();
    for (const path of [folder, join(folder, 'owners'), join(folder, 'owners/deep')]) {
      mkdirSync(path);
      chmodSync(path, 0o2770);
    }
    for (const name of FILES) writeFileSync(join(folder, name), '');
    chownSync(join(folder, 'bobs'), BOB, 0);
    linkSync(join(folder, 'two-names'), join(folder, '..', 'elsewhere'));
    symlinkSync('/etc/passwd', join(folder, 'link'));
    return folder;
  }
  const groupsOf = (folder: string, names: string[]) =>
    names.map((name) => lstatSync(join(folder, name)).gid);

  it('goes to its group with all files of root, except links and files deeper than numalign’s own', () => {
    const folder = madeByRoot();
    giveToGroup(folder, GROUP);
    expect(groupsOf(folder, ['.', 'owners', 'owners/a', 'state.json', 'lock'])).toEqual(Array(5).fill(GROUP));
    expect(groupsOf(folder, ['owners/deep/b', 'two-names', 'bobs', 'link'])).toEqual([0, 0, 0, 0]);
    expect(lstatSync('/etc/passwd').gid).toBe(0);
  });

  it('goes to its group in full after another process stopped half-way', () => {
    const folder = madeByRoot();
    chownSync(folder, 0, GROUP);
    giveToGroup(folder, GROUP);
    expect(groupsOf(folder, ['owners/a', 'lock'])).toEqual([GROUP, GROUP]);
  });

  it.each<[string, (folder: string) => void]>([
    ['whose mode is another', (folder) => chmodSync(folder, 0o2750)],
    ['that is a user’s', (folder) => chownSync(folder, BOB, 0)],
    ['that is another group’s', (folder) => chownSync(folder, 0, BOB)],
    [
      'whose lock is the group’s already',
      (folder) => {
        chownSync(folder, 0, GROUP);
        chownSync(join(folder, 'lock'), 0, GROUP);
      },
    ],
  ])('stays unchanged: one %s', (_, change) => {
    const folder = madeByRoot();
    change(folder);
    giveToGroup(folder, GROUP);
    expect(groupsOf(folder, ['owners', 'owners/a', 'state.json'])).toEqual([0, 0, 0]);
  });
});

describe('a part of a state folder', () => {
  it('is closed to no user if it is missing', () => {
    const folder = makeStateDir();
    mkdirSync(folder);
    expect(closedPart(folder)).toBeUndefined();
  });
});
