// needs: folders
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from '../support/documents.js';
import { makeStateDir } from '../support/state-dir.js';

/** A repository of two commits, of which the last has changed TypeScript only. */
function repository(): { folder: string; commit: () => void } {
  const folder = makeStateDir();
  for (const name of ['scripts', 'native', 'lib', 'bin']) mkdirSync(join(folder, name), { recursive: true });
  copyFileSync(join(ROOT, 'scripts/format-cpp.sh'), join(folder, 'scripts/format-cpp.sh'));
  const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, stdio: 'ignore' });
  const commit = () => {
    git('add', 'native', 'lib');
    git('-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-m', 'a');
  };
  git('init');
  writeFileSync(join(folder, 'native/a.cc'), '');
  commit();
  writeFileSync(join(folder, 'lib/a.ts'), '');
  commit();
  return { folder, commit };
}

/** What the check says where only these programs are installed. */
function check(folder: string) {
  for (const name of ['sh', 'dirname', 'git']) {
    const path = execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();
    symlinkSync(path, join(folder, 'bin', name));
  }
  const { status, stderr } = spawnSync('sh', ['scripts/format-cpp.sh', '--check'], {
    ...{ cwd: folder, encoding: 'utf8' as const },
    env: { PATH: join(folder, 'bin') },
  });
  return { status, stderr };
}

const unchecked = {
  status: 0,
  stderr: expect.stringContaining('C++ was not checked: clang-format is missing'),
};
const refused = {
  status: 1,
  stderr: expect.stringContaining('please install clang-format: apt-get install'),
};

describe('the check of the format of C++ without clang-format', () => {
  it('says what is missing where C++ has not changed', () => {
    expect(check(repository().folder)).toEqual(unchecked);
  });

  it('fails where the last commit has changed C++', () => {
    const { folder, commit } = repository();
    writeFileSync(join(folder, 'native/a.cc'), 'int a;');
    commit();
    expect(check(folder)).toEqual(refused);
  });

  it.each(['a.cc', 'new.cc'])('fails where native/%s has changed since', (name) => {
    const { folder } = repository();
    writeFileSync(join(folder, 'native', name), 'int a;');
    expect(check(folder)).toEqual(refused);
  });
});
