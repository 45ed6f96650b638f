// npm run test:image: builds the image of numalign-node and runs it as its chart says, with a separate
// containerd and runc. Skipped if Debian's packages are out of reach.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { works } from '../../../../scripts/steps.mjs';
import { prepareComponents } from '../containers/components.mjs';
import { whyNoCpusets } from '../containers/support/cgroups.mjs';
import { prepareTools } from './components.mjs';

function skip(why) {
  console.log(`test:image: skipped: ${why}`);
  process.exit(0);
}

if (process.getuid() !== 0) skip('containers need root');
const flaw = whyNoCpusets();
if (flaw !== undefined) skip(flaw);
if (!works('unshare', ['--mount', 'true'])) skip('mount namespaces cannot be made here');
const missing = prepareTools();
if (missing.length > 0) skip(`${missing.join(', ')} cannot be installed`);
try {
  prepareComponents();
} catch (error) {
  skip(`Debian's packages cannot be had, or do not run here: ${error.message}`);
}
const test = fileURLToPath(new URL('image.test.mjs', import.meta.url));
const { status } = spawnSync(process.execPath, ['--test', '--test-reporter=spec', test], {
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
