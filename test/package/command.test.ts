// The command numalign as npm installs it, and where it is not.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished } from 'vitest';
import { install, isRoot, makeProject, tarball, tarballOf } from './project.js';
import { npm, run } from './tarball.js';

const OPTIONS = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];

/** A project with the command; `numalign` runs it as a user does. */
function withCommand() {
  const packages = ['metrics', 'cli'] as const;
  const { cwd } = install({ args: ['--ignore-scripts', ...packages.map((name) => tarballOf(name).path)] });
  const numalign = (...args: string[]) =>
    run('npx', ['--no-install', 'numalign', ...args], { cwd, mayFail: true });
  return { cwd, numalign, stateDir: join(cwd, 'state') };
}

describe.runIf(isRoot)('the tarball of the command', () => {
  it('holds what it runs, and nothing that it was made of', () => {
    const { files } = tarballOf('cli');
    expect(files.filter((path) => !path.startsWith('dist/')).sort()).toEqual([
      ...['LICENSE', 'README.md', 'package.json'],
    ]);
    expect(files.filter((path) => /\.map$|\.ts$|test/.test(path))).toEqual([]);
  });
});

describe.runIf(isRoot)('the command in a project', () => {
  it('runs a program on exclusive CPUs', () => {
    const { numalign, stateDir } = withCommand();
    const { status, stdout } = numalign(
      ...['run', '--cpus', '1', '--reserved', '0', '--state-dir', stateDir, '--silent'],
      ...['--', 'sh', '-c', 'echo "CPU $NUMALIGN_CPUS"'],
    );
    expect([status, stdout]).toEqual([0, expect.stringMatching(/^CPU \d+\n$/)]);
  });

  it('serves metrics and its page without a further package', async () => {
    const { cwd, stateDir } = withCommand();
    const main = join(cwd, 'node_modules/@numalign/cli/dist/main.cjs');
    const options = ['--port', '0', '--output', 'json', '--state-dir', stateDir];
    const agent = spawn(process.execPath, [main, 'agent', ...options], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void agent.kill());
    const [line] = await once(createInterface({ input: agent.stdout }), 'line');
    const { url } = JSON.parse(line as string);
    expect(await (await fetch(`${url}/metrics`)).text()).toMatch(/^numalign_state_usable 1$/m);
    expect(await (await fetch(url)).text()).toContain('<svg ');
  });
});

describe.runIf(isRoot)('the library alone', () => {
  it('says where the command is, also for the words that were meant for it', () => {
    const { cwd } = install({ args: ['--ignore-scripts'] });
    const numalign = (...args: string[]) =>
      run('npx', ['--no-install', 'numalign', ...args], { cwd, mayFail: true });
    expect(numalign()).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringContaining('npm install --global @numalign/cli'),
    });
    expect(numalign('status', '--watch').stderr).toContain('npx @numalign/cli status --watch\n');
  });

  it('is installed for all users, and the command after it, which is then found', () => {
    const cwd = makeProject();
    const prefix = join(cwd, 'global');
    const globally = (...paths: string[]) =>
      npm(['install', '--global', '--prefix', prefix, ...OPTIONS, ...paths], { cwd });
    globally(tarball().path);
    globally(tarball().path, tarballOf('metrics').path, tarballOf('cli').path);
    const { stdout } = run(join(prefix, 'bin/numalign'), ['topology', '--synthetic', 'numa:2 core:2 pu:1'], {
      cwd,
    });
    expect(stdout).toContain('NUMA node 1');
    expect(readdirSync(join(prefix, 'share/man/man1'))).toContain('numalign-run.1');
  });
});
