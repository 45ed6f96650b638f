// What a machine admits of requests that come and go, by how they are placed.
import { setImmediate } from 'node:timers/promises';
import { capacities, cpusOf, hasRoom, MACHINES } from './packing/machines.mjs';
import { rowOf, withBound } from './packing/rows.mjs';
import { checkSums, simulate } from './packing/simulation.mjs';
import { readTrace } from './packing/trace-file.mjs';
import { ANY_MOVES, WAYS } from './packing/ways.mjs';
import { arrivals, atLoad, mixes, parts } from './packing/workload.mjs';

export const description =
  'requests that come and go on simulated machines, under single-numa-node: what is admitted, by placement';
export const explanation = `
Requests arrive at a machine in memory, stay for a while and leave. The package's own decision
places or rejects each one.

- **Machines**: each NUMA node has two more CPUs for the system, and 8 GiB a CPU. *GPUs on both*:
  four on each node; *on one*: eight on the first. *8 x 16*: one on each.
- **Requests** arrive at random (Poisson) and stay for exponential times. *Load* (0.9) is the share
  of CPUs in use if all were admitted. *cluster*: mostly 4, 8, 12, 16 and 32 CPUs, half with a GPU.
  *services*: 1 to 32 CPUs, each size adding up to the same number of CPUs, a tenth with a GPU.
  *medium*: 2 to 24 CPUs, smaller ones more often, a tenth with a GPU.
- *Medium* was chosen by its kubelet rows alone, out of 1,430 mixes. They are the nearest to those
  of the simulation that the targets come from (by machine: accepted 85, 81, 91 %; fragmented 26,
  41, 79 %; utilisation 71, 67, 76 %). They differ by 3 points on average, those of *services* by 6,
  of *cluster* by 10.
- **Placement**: *kubelet* and *joint* are values of \`placement\`. With *moves*, the dynamic policy
  moves at most this many grants for a rejected request; all grants consent, those with GPUs stay.
  *Any moves* are as many as a request needs. *One node* is the same machine undivided.
- **Samples**: ten seeds of 100 mean lifetimes, after 10 to fill the machine. ± is half the 95 %
  confidence interval (Student's t).
- **Fragmented**: the share of rejections that the free CPUs, memory and GPUs of all nodes together
  would hold. **Avoidable**: those that some arrangement would admit if grants with GPUs stay on
  their nodes; undecided cases count. The *ratios* compare both with the kubelet's number.
- **Gain**: points of utilisation above the kubelet's. **Reach**: the gain as a part of that of *any
  moves*. **Moves**: per admission. **Distance**: from CPUs to memory and GPUs; 10 is the same node.
- **Met** names the targets that are missed. None is of what *any moves* cannot reach.

\`--trace\` takes CSV with a header: \`cpu\`, optionally \`memory\` and \`gpu\` (Kubernetes quantities), and
\`arrival\` and \`duration\` (seconds). Requests come in order, with times scaled to the load. Without
times, sizes are drawn at random.`;
export const options = {
  load: {
    type: 'string',
    help: 'packing: CPUs asked for as parts of the machine’s, such as 0.7,0.9 (default 0.9)',
  },
  seeds: { type: 'string', help: 'packing: how many samples the intervals are of (default 10)' },
  trace: { type: 'string', help: 'packing: a CSV file of cpu,memory,gpu,arrival,duration to ask for' },
};

// In mean lifetimes: the time until a machine is filled, and the time that is then measured.
const FILL = 10;
const SPAN = 110;
/** The part of a trace with times that fills the machine. */
const FILL_SHARE = 0.1;
const SEEDS = 10;
const CHECK_SEEDS = 3;

function fail(option, text, valid) {
  const message = `--${option} ${text}: ${valid}`;
  throw Object.assign(new Error(message), { code: 'ERR_INVALID_OPTION', value: text, valid });
}

function ordered({ load = '0.9', seeds: count, trace, check }) {
  const loads = load.split(',').map(Number);
  if (!loads.every((each) => each > 0 && each <= 10))
    fail('load', load, 'numbers above 0 and up to 10, such as 0.7,0.9');
  const seeds = count === undefined ? (check ? CHECK_SEEDS : SEEDS) : Number(count);
  if (!(Number.isInteger(seeds) && seeds > 0)) fail('seeds', count, 'a whole number above 0');
  return {
    loads,
    seeds,
    workloads: trace === undefined ? mixes : [{ name: 'trace', sizes: readTrace(trace) }],
  };
}

/**
 * Requests, and when the earlier ones have filled the machine; the same for each way of placement.
 */
function samplesOf(sizes, { cpus, load, seeds }) {
  if (sizes[0].time === undefined) {
    return Array.from({ length: seeds }, (_, i) => ({
      requests: [...arrivals({ sizes, cpus, load, span: SPAN, seed: i + 1 })],
      begin: FILL,
    }));
  }
  return parts(sizes, seeds).map((part) => {
    const requests = atLoad(part, { cpus, load });
    return { requests, begin: FILL_SHARE * requests.at(-1).time };
  });
}

async function found({ nodeOf }, machine, samples) {
  const all = [];
  for (const { requests, begin } of samples) {
    const sums = simulate(await nodeOf(machine), requests, begin);
    checkSums(sums);
    all.push(sums);
    // Anything that a turn of the event loop reads from a WeakRef stays until the turn ends.
    await setImmediate();
  }
  return all;
}

/** The rows of one table: a machine and a mix at one load, for each way. */
async function compared(machine, { name, sizes }, { load, seeds }) {
  const cpus = cpusOf(machine);
  const fitting = sizes.filter((size) => capacities(machine).some((node) => hasRoom(node, size)));
  const title = `${machine.name}, ${name}, ${load}`;
  const left = sizes.length - fitting.length;
  const remark = left > 0 ? `${left} of ${sizes.length} sizes fit no node` : '';
  if (fitting.length === 0) return [{ name: title, remark }];
  const samples = samplesOf(fitting, { cpus, load, seeds });
  const rows = [];
  let before;
  for (const way of WAYS) {
    const all = await found(way, machine, samples);
    rows.push({ ...rowOf(`${title}: ${way.name}`, all, before, { cpus }), remark });
    before ??= all;
  }
  const bound = rows[WAYS.indexOf(ANY_MOVES)];
  return rows.map((row, i) => (WAYS[i].maxMoves > 0 ? withBound(row, bound) : row));
}

export async function run(values) {
  const { loads, seeds, workloads } = ordered(values);
  const rows = [];
  for (const machine of MACHINES)
    for (const workload of workloads)
      for (const load of loads) rows.push(...(await compared(machine, workload, { load, seeds })));
  return rows;
}
