// Records what `numalign top` prints in a virtual machine of 16 CPUs (recording.txt), of which
// `npm run docs` makes the picture of the README. It needs what `npm run test:vm` needs.
//
//   node scripts/setup.mjs && node scripts/top/record.mjs
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { boot } from '../../test/vm/boot.mjs';
import { prepareEmulator } from '../../test/vm/emulator.mjs';
import { prepareKernel } from '../../test/vm/kernel.mjs';
import { SHAPES } from '../../test/vm/shapes.mjs';
import { cacheFolder } from '../cache-folder.mjs';
import { fail, root } from '../steps.mjs';

const cache = cacheFolder('numalign-vm');
const logs = join(root, '.cache/vm');
const temporary = mkdtempSync(join(tmpdir(), 'numalign-vm-'));
process.on('exit', () => rmSync(temporary, { recursive: true, force: true, maxRetries: 3 }));
mkdirSync(logs, { recursive: true });
let output = '';
const { status } = await boot(
  SHAPES.find(({ name }) => name === '4-nodes'),
  prepareKernel('stable', cache, logs),
  prepareEmulator(cache),
  ['node', 'scripts/top/scene.mjs', 'play'],
  {
    ...{ cwd: root, console: join(logs, 'top.console.log'), temporary },
    ...{ bootMs: 600_000, stillMs: 600_000, timeoutMs: 900_000 },
    onOutput: (text) => {
      output += text;
    },
  },
);
if (status !== 0) fail(`the machine ended with ${status}: ${output}`);
// What programs have written to stderr comes before.
const recording = output.slice(output.indexOf('/run/numalign, '));
writeFileSync(new URL('recording.txt', import.meta.url), recording);
