// The tests run what is built: whatever has changed since is built first.
import { spawnSync } from 'node:child_process';

export default function build(): void {
  const { status } = spawnSync(process.execPath, ['scripts/setup.mjs'], { stdio: 'inherit' });
  if (status !== 0) throw new Error(`scripts/setup.mjs ended with ${status}`);
}
