// Stands in for a worker that mixes media: a process of examples/child-processes.mjs that computes
// every 20 ms.
import { readFileSync } from 'node:fs';

const FRAME_MS = 20;
const SAMPLES = 960; // of 20 ms at 48 kHz

const [, cpus] = /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync('/proc/self/status', 'utf8'));
process.send({ cpus, threads: process.env.OMP_NUM_THREADS });

const frame = new Float32Array(SAMPLES);
setInterval(() => {
  for (let i = 0; i < SAMPLES; i++) frame[i] = frame[i] * 0.5 + Math.sin(i / 7) * 0.5;
}, FRAME_MS);
// Without its supervisor it has nothing to do.
process.once('disconnect', () => process.exit());
