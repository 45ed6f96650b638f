// needs: machine
// Which cgroup root on record root may use: in a folder that only root can write, any.
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { native } from '../../lib/base/native.js';
import { AgreedRoot } from '../../lib/state/folder/agreed-root.js';
import { choiceFile } from '../enforcement/users.js';
import { thrownBy } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';

const isRoot = process.geteuid?.() === 0;
const STRANGER = 54_321;

interface Folder {
  readonly mode?: number;
  readonly user?: number;
  readonly group?: number;
  readonly scope?: 'machine' | 'private';
}

/** The choice for a folder, by default one that others can write. */
function choiceOf({ mode = 0o777, user = 0, group = 0, scope = 'private' }: Folder = {}) {
  const path = makeStateDir();
  mkdirSync(path);
  chownSync(path, user, group);
  chmodSync(path, mode);
  const file = choiceFile(path);
  const choices = dirname(file);
  onTestFinished(() => {
    rmSync(file, { force: true });
    if (existsSync(choices) && readdirSync(choices).length === 0) rmdirSync(choices);
  });
  return { path, file, choice: new AgreedRoot(path, scope, native.Folder.open(path, false, 0o700, -1)) };
}

describe.runIf(isRoot)('a state folder', () => {
  it.each<[string, Folder, boolean]>([
    ['that only root can write', { mode: 0o700 }, false],
    ['that root’s group can write', { mode: 0o770 }, false],
    ['that another group can only read', { mode: 0o750, group: STRANGER }, false],
    ['that another group can write', { mode: 0o770, group: STRANGER }, true],
    ['that anyone can write', { mode: 0o702 }, true],
    ['of another user', { mode: 0o700, user: STRANGER }, true],
  ])('%s: root must choose its cgroup root is %s', (_, folder, counts) => {
    const { choice } = choiceOf(folder);
    expect(choice.counts).toBe(counts);
    expect(choice.refusal('any', null) === undefined).toBe(!counts);
  });
});

describe.runIf(isRoot)('the cgroup root of a folder that others can write', () => {
  it('may be the one of an option, and no other', () => {
    const { choice, path } = choiceOf();
    expect(choice.refusal('a', 'a')).toBeUndefined();
    expect(choice.refusal('b', 'a')?.why).toBe(
      `others than root can write ${path}, where the cgroup root b is on record, and root's choice is a`,
    );
  });

  it('may be the one that root has recorded, and no other', () => {
    const { choice, file } = choiceOf();
    choice.record('a');
    expect(readFileSync(file, 'utf8')).toBe('{"cgroupRoot":"a"}');
    expect(choice.refusal('a', undefined)).toBeUndefined();
    expect(choice.refusal('b', undefined)?.advice).toContain('numalign configure --cgroup-root b');
  });

  it('is none if what root has recorded is damaged', () => {
    const { choice, file } = choiceOf();
    choice.record('a');
    writeFileSync(file, '{"cgroup');
    expect(choice.refusal('a', undefined)?.why).toContain("root's choice is unreadable");
  });
});

describe.runIf(isRoot)('a record of root’s choice', () => {
  it.each([
    ['private', false],
    ['machine', true],
  ] as const)('is made for a %s folder that only root can write: %s', (scope, isMade) => {
    const { choice, file } = choiceOf({ mode: 0o700, scope });
    choice.record('a');
    expect(existsSync(file)).toBe(isMade);
  });

  it('is read and made only where root alone can write, and a record that is not made needs no place', () => {
    const { choice, file, path } = choiceOf();
    choice.record('a');
    const choices = dirname(file);
    chmodSync(choices, 0o777);
    onTestFinished(() => chmodSync(choices, 0o700));
    expect(choice.refusal('a', undefined)).toBeDefined();
    for (const use of [() => choice.checkPlace(), () => choice.record('b')])
      expect(thrownBy(use)).toMatchObject({ code: 'ERR_STATE_FOLDER', details: { value: choices } });
    expect(readFileSync(file, 'utf8')).toBe('{"cgroupRoot":"a"}');
    chmodSync(path, 0o700);
    expect([choice.checkPlace(), choice.refusal('b', undefined)]).toEqual([undefined, undefined]);
    chmodSync(path, 0o777);
    chmodSync(choices, 0o700);
    expect(choice.checkPlace()).toBeUndefined();
  });

  it('is advised with the command for the folder', () => {
    const { choice, path } = choiceOf();
    expect(choice.refusal('b', 'a')?.advice).toBe(
      `if the record is right, as root run \`numalign configure --cgroup-root b --state-dir ${path}\`, or pass the option cgroupRoot; else \`numalign configure --cgroup-root a --state-dir ${path}\``,
    );
    const { choice: machine } = choiceOf({ scope: 'machine' });
    expect(machine.refusal('b', null)?.advice).toBe(
      'if the record is right, as root run `numalign configure --cgroup-root b`, or pass the option cgroupRoot; else `numalign configure --cgroup-root none`',
    );
  });
});
