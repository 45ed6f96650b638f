// needs: modules
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { link, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { errorOf } from '../../../test/support/error-of.js';
import { writeKubeletFolder } from '../lib/arguments/kubelet-folder.js';
import { newFolder } from './numalign.js';

vi.mock('node:fs/promises', { spy: true });

const NAMES = ['cpu_manager_state', 'memory_manager_state'] as const;
const FILES = { cpuManagerState: 'new cpus', memoryManagerState: 'new memory' };

function folderOfKubelet(): string {
  const folder = newFolder();
  for (const name of NAMES) writeFileSync(join(folder, name), `old ${name}`);
  return folder;
}

const texts = (folder: string, names: readonly string[] = NAMES) =>
  names.map((name) => readFileSync(join(folder, name), 'utf8'));

const failure = (code: string) => Object.assign(new Error(code), { code, errno: -1, syscall: 'of the test' });

afterEach(() => {
  vi.mocked(rename).mockReset();
  vi.mocked(link).mockReset();
});

// Files are renamed in this order: the first, the second, the first back.
function failingRenames(...codes: (string | null)[]): void {
  for (const code of codes) {
    if (code === null) vi.mocked(rename).mockImplementationOnce(ORIGINAL.rename);
    else vi.mocked(rename).mockRejectedValueOnce(failure(code));
  }
}

const ORIGINAL = await vi.importActual<typeof import('node:fs/promises')>('node:fs/promises');

it('puts the files back even if they cannot be linked', async () => {
  const folder = folderOfKubelet();
  vi.mocked(link).mockRejectedValue(failure('EPERM'));
  failingRenames(null, 'EIO');
  expect((await errorOf(() => writeKubeletFolder(folder, FILES))).code).toBe('ERR_SYSCALL');
  expect(texts(folder)).toEqual(NAMES.map((name) => `old ${name}`));
  await writeKubeletFolder(folder, FILES);
  expect(texts(folder)).toEqual(['new cpus', 'new memory']);
  expect(readdirSync(folder).sort()).toEqual(NAMES);
});

it('keeps a file that cannot be put back, and says where', async () => {
  const folder = folderOfKubelet();
  failingRenames(null, 'EIO', 'EIO');
  const { message } = await errorOf(() => writeKubeletFolder(folder, FILES));
  const [, kept] = /the previous file is now (\S+)$/.exec(message) ?? [];
  expect(readFileSync(kept!, 'utf8')).toBe('old cpu_manager_state');
  expect(texts(folder)).toEqual(['new cpus', 'old memory_manager_state']);
});
