// The other side of the scenario locality's round trips, on its own CPU.
import { workerData } from 'node:worker_threads';
import { CpuSet, pinThread } from '../../dist/index.js';
import { yardstick } from './yardstick.mjs';

const { cpu, cell, times } = workerData;
pinThread(CpuSet.of(cpu));
yardstick.pingPong(new Float64Array(times), cell, 1);
