// Watches a state from a thread of its own: which CPUs each grant had on record, from when to when,
// and threads of grants that were allowed on others meanwhile.
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { cpusOf } from '../../../dist-test/lib/account/pod-holdings.js';
import { CpuSet } from '../../../dist-test/lib/index.js';
import { Ledger } from '../../../dist-test/lib/state/ledger.js';
import { now } from './kernel-trace.mjs';
import * as kernel from './kernel-view.mjs';

/** Between two reads of the record, which are cheap. */
const PERIOD_MS = 5;
/** After a look at masks it skips this many times as long: the watched processes need the CPU. */
const REST = 4;

export class RecordWatch {
  #worker;
  #isOver = new Int32Array(new SharedArrayBuffer(4));

  /** `pids`: of the processes that run on each grant, by uid. */
  constructor(stateDir, pids) {
    this.#worker = new Worker(new URL(import.meta.url), {
      workerData: { stateDir, pids, isOver: this.#isOver },
    });
  }

  async start() {
    await once(this.#worker, 'message');
    return this;
  }

  /**
   * `periods`: `{ from, to, held }`, without a change; `held` has the CPUs of each grant by uid.
   * `strays`: what was wrong.
   */
  async stop() {
    Atomics.store(this.#isOver, 0, 1);
    Atomics.notify(this.#isOver, 0);
    const [answer] = await once(this.#worker, 'message');
    await this.end();
    return answer;
  }

  end() {
    return this.#worker.terminate();
  }
}

function masksOf(pid) {
  try {
    return kernel.masks(pid).map((cpus) => CpuSet.from(cpus));
  } catch {
    return []; // it has ended
  }
}

function watch({ stateDir, pids, isOver }) {
  const ledger = Ledger.open(stateDir);
  const periods = [];
  const strays = [];
  const look = () => {
    const { generation, assignments } = ledger.read();
    return { generation, pods: assignments.pods, at: now() };
  };
  const judge = (pods, masks) => {
    for (const [uid, pid, all] of masks) {
      const pod = pods.find((each) => each.uid === uid);
      const stray = pod && all.find((mask) => !mask.isSubsetOf(cpusOf(pod)));
      if (stray) strays.push(`a thread of ${pid} may run on ${stray} while ${cpusOf(pod)} is on record`);
    }
  };
  let last = look();
  parentPort.postMessage('begun');
  let restsUntil = 0;
  while (Atomics.load(isOver, 0) === 0) {
    const begin = now();
    const isDue = begin >= restsUntil;
    const masks = isDue ? pids.map(([uid, pid]) => [uid, pid, masksOf(pid)]) : [];
    const before = now();
    if (isDue) restsUntil = before + REST * (before - begin);
    const next = look();
    if (next.generation === last.generation) {
      judge(last.pods, masks);
      const { generation } = last;
      const known = periods.at(-1);
      if (known?.generation === generation) known.to = before;
      else {
        const held = Object.fromEntries(last.pods.map((pod) => [pod.uid, cpusOf(pod).toArray()]));
        periods.push({ generation, from: last.at, to: before, held });
      }
    }
    last = next;
    Atomics.wait(isOver, 0, 0, PERIOD_MS);
  }
  parentPort.postMessage({ periods, strays });
}

if (!isMainThread) watch(workerData);
