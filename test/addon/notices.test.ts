// needs: agents
// Kernel notices that the environment's loop cannot wait for.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const SECCOMP = fileURLToPath(new URL('../support/seccomp.py', import.meta.url));
const NATIVE = new URL('../../dist-test/lib/base/native.js', import.meta.url).href;

it.each(['Inotify', 'CpuEvents'])('%s that cannot be polled leaves no descriptor open', (kind) => {
  const next = 200;
  const script = `
    import { openSync } from 'node:fs';
    import { native } from '${NATIVE}';
    const open = () => openSync('/dev/null');
    while (open() < ${next - 1});
    try {
      new native.${kind}(() => {});
    } catch ({ code, message }) {
      const again = open();
      console.log(code, message, again);
    }`;
  const denied = ['python3', SECCOMP, `ENOSPC=epoll_ctl:2=${next}`, '--'];
  const [command, ...args] = [...denied, process.execPath, '--input-type=module', '-e', script];
  const { stdout, stderr } = spawnSync(command!, args, { encoding: 'utf8' });
  expect(stderr).toBe('');
  expect(stdout).toMatch(new RegExp(`^ERR_SYSCALL .*cannot watch the kernel's notices: .* ${next}\\n$`));
});
