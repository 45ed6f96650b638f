// needs: folders
// The error of a program that imports numalign when its addon cannot be loaded.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { describe, expect, it, onTestFinished } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** A project with numalign as its dependency; returns its program. */
function newProject(): string {
  const folder = mkdtempSync(join(tmpdir(), 'numalign-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(ROOT, join(folder, 'node_modules', 'numalign'));
  const program = join(folder, 'app.mjs');
  writeFileSync(
    program,
    `import { discover } from 'numalign/topology';\ndiscover().then(() => console.log('discovered'));\n`,
  );
  return program;
}

function run(...args: string[]): string {
  const { stdout, stderr } = spawnSync(process.execPath, ['--no-warnings', ...args], { encoding: 'utf8' });
  return `${stdout}${/^NumalignError: .*/m.exec(stderr)?.[0] ?? stderr}`;
}

// By its name in Node 20 and later ones.
const permission = process.allowedNodeEnvironmentFlags.has('--permission')
  ? '--permission'
  : '--experimental-permission';

describe('the error of an addon that is not loaded', () => {
  it('says that --allow-addons is missing under the permission model', () => {
    const program = newProject();
    expect(run(permission, '--allow-fs-read=*', program)).toMatch(/^NumalignError: .*with --allow-addons$/);
    expect(run(permission, '--allow-fs-read=*', '--allow-addons', program)).toBe('discovered\n');
  });

  it('says that --no-addons is in the way', () => {
    expect(run('--no-addons', newProject())).toMatch(/^NumalignError: .*without --no-addons$/);
  });

  it('says why the kernel’s loader refuses it', () => {
    const folder = mkdtempSync(join(tmpdir(), 'numalign-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    for (const name of ['dist', 'package.json'])
      cpSync(join(ROOT, name), join(folder, name), { recursive: true });
    mkdirSync(join(folder, 'build/Release'), { recursive: true });
    writeFileSync(join(folder, 'build/Release/numalign.node'), 'no library');
    const program = `import { supported } from '${folder}/dist/index.js'; throw supported.reason;`;
    expect(run('--input-type=module', '-e', program)).toMatch(
      /^NumalignError: .*cannot be loaded: .*numalign\.node: .*;/,
    );
  });

  it.each([
    { format: 'esm', file: 'app.mjs' },
    { format: 'cjs', file: 'app.cjs' },
  ] as const)(
    'says that numalign was bundled, and how to have the bundler not do it ($format)',
    async ({ format, file }) => {
      const program = newProject();
      const dir = join(program, '../out');
      const out = join(dir, file);
      const build = async (external: RegExp[]) => {
        const bundled = await rolldown({ input: program, platform: 'node', external });
        // What is loaded by import() may be a file of its own.
        await bundled.write({ dir, entryFileNames: file, format, codeSplitting: false });
      };
      await build([]);
      expect(run(out)).toMatch(/^NumalignError: numalign was bundled into .*--external:numalign/);
      await build([/^numalign/]);
      expect(run(out)).toBe('discovered\n');
    },
  );
});
