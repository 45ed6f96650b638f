// needs: machine
// Memory of a grant on this machine: nothing is simulated, and reserved pages are given back.
import { constants } from 'node:buffer';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { affinity, type MemoryPlacement, memoryPlacement, threads } from '../../lib/entries/diagnostics.js';
import { discover } from '../../lib/entries/topology.js';
import { type Grant, NodeSet, openManager, pin } from '../../lib/index.js';
import { pinMemory, unpinMemory } from '../../lib/threads/memory.js';
import { errorOf, thrownBy } from '../support/error-of.js';
import { canReserve, freeHugepages, HUGEPAGE, reserveHugepages } from '../support/hugepages.js';
import { makeStateDir } from '../support/state-dir.js';

const MIB = 2 ** 20;
const DIST = new URL('../../dist-test/lib/index.js', import.meta.url).href;
const SECCOMP = fileURLToPath(new URL('../support/seccomp.py', import.meta.url));
const ALL = affinity();
const MEMORY_CGROUP = '/sys/fs/cgroup/memory'; // of version 1

/** A grant of one CPU, and the number of its node. */
async function acquire(): Promise<{ grant: Grant; node: number }> {
  const manager = await openManager({ stateDir: makeStateDir() });
  const grant = await manager.acquire({ cpu: 1 });
  onTestFinished(async () => void (await grant.release()));
  return { grant, node: grant.memoryNodes.first! };
}

/**
 * The calling thread's policy, as the kernel writes it behind mappings without one of their own.
 */
function kernelsPolicy(): string {
  const stack = /^\w+ (.*?) (?:\w+=)?stack/m.exec(readFileSync('/proc/thread-self/numa_maps', 'utf8'));
  return stack![1]!;
}

const total = ({ byNode, absent, unknown }: MemoryPlacement) =>
  Object.values(byNode).reduce((sum, bytes) => sum + bytes, absent + unknown);

beforeEach(() => onTestFinished(() => void pin(ALL)));

describe('grant.pin', () => {
  it.each([
    ['preferred', 'prefer'],
    ['bind', 'bind'],
    ['interleave', 'interleave'],
  ] as const)(
    'sets the memory policy %s of the calling thread, reads it back, and unpin gives back the earlier one',
    async (memory, word) => {
      const { grant } = await acquire();
      expect(kernelsPolicy()).toBe('default');
      const result = grant.pin({ memory });
      expect(result.memory).toMatchObject({ mode: memory, applied: true, reason: null, migrated: null });
      expect(result.memory!.nodes.equals(grant.memoryNodes)).toBe(true);
      expect(kernelsPolicy()).toBe(`${word}:${grant.memoryNodes}`);
      await grant.unpin();
      expect(kernelsPolicy()).toBe('default');
    },
  );

  it("prefers the grant's memory nodes by default, and release gives back the earlier policy", async () => {
    const { grant, node } = await acquire();
    grant.pin();
    expect(kernelsPolicy()).toBe(`prefer:${node}`);
    grant.pin({ memory: 'bind' });
    await grant.release();
    expect(kernelsPolicy()).toBe('default');
  });

  it('has the nodes of its CPUs as memory nodes if no memory is booked', async () => {
    const { grant } = await acquire();
    expect(grant.memoryNodes.equals(grant.numaNodes)).toBe(true);
  });

  it('leaves the policy alone on request', async () => {
    const { grant } = await acquire();
    expect(grant.pin({ memory: 'none' }).memory).toBeNull();
    expect(kernelsPolicy()).toBe('default');
  });

  it('says so if another thread is pinned, whose policy it cannot set', async () => {
    const { grant } = await acquire();
    const other = threads().find(({ tid }) => tid !== process.pid)!.tid;
    expect(grant.pin({ threads: other, migrate: true }).memory).toMatchObject({
      mode: null,
      applied: false,
      reason: 'other-thread',
      migrated: null,
    });
    expect(kernelsPolicy()).toBe('default');
    expect(grant.pin({ threads: process.pid }).memory).toMatchObject({ applied: true });
  });

  it('keeps the first policy for the end if one grant takes over from another', async () => {
    const [first, second] = [await acquire(), await acquire()];
    first.grant.pin({ memory: 'interleave' });
    second.grant.pin({ replace: true });
    await first.grant.release();
    expect(kernelsPolicy()).toBe(`prefer:${second.node}`);
    await second.grant.release();
    expect(kernelsPolicy()).toBe('default');
  });

  it('says how many pages could not be moved', async () => {
    const { grant } = await acquire();
    expect(grant.pin({ migrate: true }).memory!.migrated).toEqual({ notMoved: 0, reason: null });
  });

  it('says that none of the nodes is usable', () => {
    const { nodes, ...rest } = pinMemory({
      grant: 'g',
      mode: 'bind',
      nodes: NodeSet.of(NodeSet.MAX_ID),
      from: undefined,
    });
    expect(rest).toEqual({ mode: 'default', applied: false, reason: 'EINVAL', migrated: null });
    expect(nodes.isEmpty).toBe(true);
  });

  it('can pin again after a failed release', async () => {
    const { grant, node } = await acquire();
    grant.pin();
    const again = unpinMemory(grant.uid);
    expect(kernelsPolicy()).toBe('default');
    again();
    expect(kernelsPolicy()).toBe(`prefer:${node}`);
    await grant.release();
    expect(kernelsPolicy()).toBe('default');
  });

  it('refuses invalid options, and pins nothing', async () => {
    const { grant } = await acquire();
    for (const options of [
      { memory: 'local' },
      { memory: 1 },
      { migrate: 1 },
      { migrate: true, memory: 'none' },
      { mode: 'bind' },
    ]) {
      expect(thrownBy(() => grant.pin(options as object))?.code).toBe('ERR_INVALID_OPTION');
    }
    // The place of a shared member that has left the CPUs of the grant.
    expect(String(affinity())).toBe(String(ALL.difference(grant.cpus)));
    expect(kernelsPolicy()).toBe('default');
  });

  it('sets the policy of a Worker that pins itself, and not that of the main thread', async () => {
    const worker = new Worker(
      `const { parentPort, workerData } = require('node:worker_threads');
       import(${JSON.stringify(DIST)}).then(async ({ openManager }) => {
         const manager = await openManager({ stateDir: workerData });
         const { memory } = await manager.use({ cpu: 1 }, (grant) => grant.pin({ threads: 'current' }));
         parentPort.postMessage(memory.applied);
       });`,
      { eval: true, workerData: makeStateDir() },
    );
    expect(await new Promise((resolve) => worker.once('message', resolve))).toBe(true);
    expect(kernelsPolicy()).toBe('default');
    await worker.terminate();
  });
});

describe('memoryPlacement', () => {
  it('says of every page of a fresh buffer of 64 MiB that it is on the node of a pinned grant', async () => {
    const { grant, node } = await acquire();
    grant.pin({ threads: 'current' });
    const fresh = new Uint8Array(64 * MIB).fill(1);
    expect(grant.memoryPlacement(fresh)).toEqual({
      byNode: { [node]: 64 * MIB },
      absent: 0,
      unknown: 0,
      source: 'move_pages',
      reason: null,
    });
  });

  it('counts each byte of a buffer once, touched or not', () => {
    const untouched = new ArrayBuffer(64 * MIB);
    expect(memoryPlacement(untouched).absent).toBeGreaterThan(60 * MIB);
    for (const buffer of [
      untouched,
      new Uint16Array(untouched, 10, 5001),
      Buffer.alloc(3),
      new SharedArrayBuffer(9000),
      new DataView(untouched, 7),
    ]) {
      expect(total(memoryPlacement(buffer))).toBe(buffer.byteLength);
    }
    expect(memoryPlacement(new Uint8Array())).toMatchObject({ byNode: {}, absent: 0, unknown: 0 });
  });

  it('reports the whole process', () => {
    const placement = memoryPlacement();
    expect(placement).toMatchObject({ absent: 0, unknown: 0, source: 'numa_maps', reason: null });
    expect(total(placement)).toBeGreaterThan(process.memoryUsage.rss() / 2);
  });

  it('refuses values other than buffers', () => {
    expect(thrownBy(() => memoryPlacement('text' as unknown as ArrayBuffer))?.code).toBe(
      'ERR_INVALID_OPTION',
    );
  });
});

describe('grant.buffer', () => {
  it('is on the node, cleared, and all there', async () => {
    const { grant, node } = await acquire();
    for (const options of [{ node }, {}]) {
      const buffer = grant.buffer('5Mi', options);
      expect(buffer).toBeInstanceOf(Buffer);
      expect(buffer.length).toBe(5 * MIB);
      expect(memoryPlacement(buffer)).toMatchObject({
        byNode: { [node]: 5 * MIB },
        absent: 0,
        source: 'move_pages',
      });
      expect(buffer.every((byte) => byte === 0)).toBe(true);
      buffer.fill(255);
    }
  });

  it('is counted once as external memory, until it is freed', async () => {
    const code = `
      await collect();
      const before = process.memoryUsage().external;
      let buffer = grant.buffer('64Mi');
      const during = process.memoryUsage().external;
      buffer = null;
      await collect();
      print([during - before, process.memoryUsage().external - before].map((bytes) => Math.round(bytes / 2 ** 20)));`;
    expect(run(code).answer).toEqual([64, 0]);
  });

  // From Node 22 on a Buffer may be as long as a number can say.
  it.runIf(constants.MAX_LENGTH < Number.MAX_SAFE_INTEGER)(
    'refuses more than a Buffer can hold',
    async () => {
      const { grant } = await acquire();
      expect(thrownBy(() => grant.buffer(constants.MAX_LENGTH + 1))).toMatchObject({
        code: 'ERR_INVALID_OPTION',
        details: { option: 'bytes', value: constants.MAX_LENGTH + 1 },
      });
      await grant.release();
    },
  );

  it("refuses a node that is not the grant's, invalid sizes, and pages that the machine lacks", async () => {
    const { grant, node } = await acquire();
    const nowhere = await errorOf(() => grant.buffer(1, { node: node + 1 }));
    expect(nowhere).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      details: { option: 'node', value: node + 1 },
    });
    expect(nowhere.details.valid).toContain(String(node));
    for (const bytes of [0, -1]) {
      expect(thrownBy(() => grant.buffer(bytes))?.code).toBe('ERR_INVALID_OPTION');
    }
    expect(thrownBy(() => grant.buffer('1 Mi'))?.code).toBe('ERR_INVALID_QUANTITY');
    for (const pageSize of [4096, '3Mi', 0, -1]) {
      expect(thrownBy(() => grant.buffer(1, { pageSize }))).toMatchObject({
        code: 'ERR_INVALID_OPTION',
        details: { option: 'pageSize' },
      });
    }
    expect(thrownBy(() => grant.buffer(1, { nodes: [0] } as object))?.code).toBe('ERR_INVALID_OPTION');
    await grant.release();
    expect(thrownBy(() => grant.buffer(1))?.code).toBe('ERR_GRANT_RELEASED');
  });

  it('is refused on a simulated machine', async () => {
    const manager = await openManager({ topology: await discover({ synthetic: 'numa:2 core:2 pu:1' }) });
    const grant = await manager.acquire({ cpu: 1 });
    expect(thrownBy(() => grant.buffer(1))?.code).toBe('ERR_SIMULATED_MACHINE');
  });

  it('never outlives its thread: sent to another, it is copied or refused', async () => {
    const worker = startWorker(`
      const buffer = grant.buffer('4Mi').fill(7);
      try { parentPort.postMessage(buffer.buffer, [buffer.buffer]); } catch (error) { parentPort.postMessage(error.name); }`);
    const answer = await message(worker);
    await worker.terminate();
    if (answer instanceof ArrayBuffer) expect(new Uint8Array(answer).every((byte) => byte === 7)).toBe(true);
    else expect(answer).toBe('DataCloneError');
  });
});

describe('the memory of a buffer', () => {
  it('that has got into another thread stays readable there when the thread that made it ends', () => {
    const code = `
      const { Worker } = await import('node:worker_threads');
      const body = ${JSON.stringify(`const { parentPort, workerData } = require('node:worker_threads');
        import(workerData.dist).then(async ({ openManager }) => {
          const manager = await openManager({ stateDir: workerData.stateDir });
          const stream = new ReadableStream({
            type: 'bytes',
            start: (controller) => controller.enqueue(manager.grant(workerData.uid).buffer('4Mi').fill(7)),
          });
          const { value } = await stream.getReader().read();
          parentPort.postMessage(value, [value.buffer]);
          setInterval(() => {}, 1000);
        });`)};
      await grant.release();
      const { uid } = await manager.acquire({ cpu: 1, owner: 'persistent' });
      const workerData = { dist: DIST, stateDir: manager.stateDir, uid };
      const worker = new Worker(body, { eval: true, execArgv: [], workerData });
      const bytes = await new Promise((resolve) => worker.once('message', resolve));
      const before = bytes[5];
      await worker.terminate();
      print([before, bytes.length, bytes[5], bytes.fill(1)[9]]);`;
    expect(run(code).answer).toEqual([7, 4 * MIB, 0, 1]);
  });

  it.skipIf(!existsSync(MEMORY_CGROUP) || process.getuid?.() !== 0)(
    'is refused beyond the limit of the process’s memory cgroup, and no process is killed',
    () => {
      const cgroup = `${MEMORY_CGROUP}/numalign-test-${process.pid}`;
      mkdirSync(cgroup);
      onTestFinished(() => rmdirSync(cgroup));
      writeFileSync(`${cgroup}/memory.limit_in_bytes`, String(300 * MIB));
      const code = `
        const fs = await import('node:fs');
        fs.writeFileSync('${cgroup}/cgroup.procs', String(process.pid));
        try { grant.buffer('600Mi', { node: grant.memoryNodes.first }); } catch ({ code, details }) {
          print([code, details.needed, details.free < details.needed]);
        }
        fs.writeFileSync('${MEMORY_CGROUP}/cgroup.procs', String(process.pid));`;
      expect(run(code).answer).toEqual(['ERR_MEMORY_SHORTAGE', 600 * MIB, true]);
    },
  );
});

describe.skipIf(!canReserve())('grant.buffer in hugepages', () => {
  it('is in hugepages on the node', () => {
    reserveHugepages(4);
    const code = `
      const shortageOf = (...args) => { try { grant.buffer(...args); } catch ({ code, details }) { return { code, details }; } };
      const buffer = grant.buffer('5Mi', { pageSize: '2Mi', node: 0 }).fill(1);
      const mapping = readFileSync('/proc/self/numa_maps', 'utf8').split('\\n').find((line) => line.includes(' huge '));
      // Without a node it is preferred.
      const tooMuch = shortageOf('4Mi', { pageSize: 2 ** 21 });
      const left = free();
      grant.buffer(1, { pageSize: '2Mi' })[0] = 1;
      print([memoryPlacement(buffer), mapping, tooMuch, left, free()]);`;
    const [placement, mapping, tooMuch, left, none] = run(code).answer;
    expect(placement).toEqual({
      byNode: { 0: 5 * MIB },
      absent: 0,
      unknown: 0,
      source: 'move_pages',
      reason: null,
    });
    expect(mapping).toMatch(/ bind:0 .*N0=3 kernelpagesize_kB=2048$/);
    expect(tooMuch).toEqual({
      code: 'ERR_MEMORY_SHORTAGE',
      details: { node: null, pageSize: HUGEPAGE, free: HUGEPAGE, needed: 2 * HUGEPAGE },
    });
    expect([left, none]).toEqual([1, 0]);
  });

  it('is an error if the pool is empty, and the process lives', async () => {
    reserveHugepages(0);
    const { grant, node } = await acquire();
    expect(thrownBy(() => grant.buffer('2Mi', { pageSize: '2Mi', node }))).toMatchObject({
      code: 'ERR_MEMORY_SHORTAGE',
      details: { node, pageSize: HUGEPAGE, free: 0, needed: HUGEPAGE },
    });
  });

  it('is freed once it is collected', () => {
    reserveHugepages(4);
    const code = `
      const frees = [];
      for (let round = 0; round < 3; round++) {
        let buffer = grant.buffer('6Mi', { pageSize: '2Mi' });
        let part = buffer.subarray(100, 200);
        buffer = null;
        await collect();
        frees.push(free());
        part[0] = 1;
        part = null;
        await collect();
        frees.push(free());
      }
      print(frees);`;
    expect(run(code).answer).toEqual([1, 4, 1, 4, 1, 4]);
  });

  it('is freed when its Worker is terminated at any time', async () => {
    reserveHugepages(8);
    for (let round = 0; round < 5; round++) {
      const workers = [1, 2, 3].map(() =>
        startWorker(`
          globalThis.kept = grant.buffer('4Mi', { pageSize: '2Mi' });
          parentPort.postMessage(0);
          for (;;) { kept.fill(1); await new Promise(setImmediate); }`),
      );
      await Promise.all(workers.map(message));
      expect(freeHugepages()).toBe(2);
      await Promise.all(workers.map((worker) => worker.terminate()));
      await vi.waitFor(() => expect(freeHugepages()).toBe(8), { timeout: 20_000 });
    }
  });
});

describe.skipIf(!canReserve())('booked hugepages', () => {
  it('are in a buffer of the grant, on the node where they are booked, and the account knows', () => {
    reserveHugepages(8);
    const { answer } = run(`
      const huge = () => manager.memory().find(({ node, type }) => node === 0 && type === 'hugepages-2Mi').free;
      const frees = [huge()];
      await grant.release();
      const booked = await manager.acquire({ cpu: 1, memory: '8Mi', resources: { 'hugepages-2Mi': '6Mi' } });
      const buffer = booked.buffer('6Mi', { pageSize: '2Mi', node: 0 });
      frees.push(huge(), free() * 2 ** 21);
      // Booked and used pages are no difference.
      const limits = { cpu: '500m', memory: '1Mi', 'hugepages-2Mi': '4Mi' };
      const { warnings } = manager.plan({ containers: [{ name: 'main', limits }] });
      print([frees, booked.memory, booked.warnings, booked.memoryPlacement(buffer).byNode, warnings]);`);
    const [frees, memory, ...rest] = answer;
    expect(frees).toEqual([8, 5, 5].map((pages) => pages * HUGEPAGE));
    expect(memory).toContainEqual({ nodes: [0], type: 'hugepages-2Mi', bytes: 3 * HUGEPAGE });
    expect(rest).toEqual([[], { 0: 3 * HUGEPAGE }, []]);
  });

  it('are compared with the kernel’s free pages, and a difference is reported', () => {
    reserveHugepages(8);
    const { answer } = run(`
      // Another program takes pages without asking.
      const taken = grant.buffer('10Mi', { pageSize: '2Mi' });
      const limits = { cpu: '500m', memory: '1Mi', 'hugepages-2Mi': '4Mi' };
      const pod = { uid: 'web', containers: [{ name: 'main', limits }] };
      const plan = manager.plan(pod);
      const admitted = await manager.admit(pod);
      const again = await manager.admit(pod);
      await admitted.release();
      await grant.release();
      const booked = await manager.acquire({ cpu: 1, resources: { 'hugepages-2Mi': '4Mi' } });
      print([plan, admitted, booked, again].map(({ warnings }) => warnings).concat([taken.length]));`);
    const difference = {
      code: 'HUGEPAGES_TAKEN',
      message: expect.stringContaining(' on NUMA node 0: 16 MiB should be free, the kernel has 6 MiB'),
      ...{ resource: 'hugepages-2Mi', nodes: [0], free: 3 * HUGEPAGE, expected: 8 * HUGEPAGE },
    };
    expect(answer).toEqual([[difference], [difference], [difference], [], 10 * MIB]);
  });
});

describe.each(['EPERM', 'ENOSYS'])('under a seccomp filter that denies everything with %s', (refusal) => {
  const deny = ['set_mempolicy', 'get_mempolicy', 'mbind', 'migrate_pages', 'move_pages'].map(
    (call) => `${refusal}=${call}`,
  );

  it('the CPUs are pinned, and the result lists what failed', () => {
    const { answer } = run(`print([grant.pin(), String(affinity()), await grant.release()])`, deny);
    const [result, cpus] = answer;
    expect(result.moved.length).toBeGreaterThan(0);
    expect(cpus).toBe(result.moved[0].cpus);
    expect(result.memory).toEqual({
      mode: null,
      nodes: '',
      applied: false,
      reason: refusal,
      migrated: null,
    });
  });

  it('placement is read from numa_maps', () => {
    const { answer } = run(
      `grant.pin();
       const list = [memoryPlacement(grant.buffer('8Mi')), memoryPlacement(), memoryPlacement(new Uint8Array(1000).fill(1))];
       print([grant.memoryNodes.first, ...list]);`,
      deny,
    );
    const [node, buffer, whole, small] = answer as [
      number,
      MemoryPlacement,
      MemoryPlacement,
      MemoryPlacement,
    ];
    expect(buffer).toEqual({
      byNode: { [node]: 8 * MIB },
      absent: 0,
      unknown: 0,
      source: 'numa_maps',
      reason: refusal,
    });
    expect(total(whole)).toBeGreaterThan(10 * MIB);
    expect(small).toMatchObject({ source: 'numa_maps', reason: refusal });
    expect(total(small)).toBe(1000);
  });

  it('a buffer on a node exists, or the error says that it could not be requested', () => {
    // Its existence depends on the place of the CPU.
    const { answer } = run(
      `try { print(memoryPlacement(grant.buffer('8Mi', { node: grant.memoryNodes.first })).byNode); }
       catch ({ code, syscall, errnoName }) { print({ code, syscall, errnoName }); }`,
      deny,
    );
    if ('code' in answer)
      expect(answer).toEqual({ code: 'ERR_SYSCALL', syscall: 'mbind', errnoName: refusal });
    else expect(Object.values(answer)).toEqual([8 * MIB]);
  });
});

describe('where single calls are denied', () => {
  it('only migration says so', () => {
    const { answer } = run(
      `print(pinMemory({ grant: 'g', mode: 'bind', nodes: grant.memoryNodes, from: NodeSet.of(1) }))`,
      ['EPERM=migrate_pages'],
    );
    expect(answer).toMatchObject({
      mode: 'bind',
      applied: true,
      reason: null,
      migrated: { notMoved: null, reason: 'EPERM' },
    });
  });

  it('a policy that could not be restored is not set', () => {
    const { answer } = run(`print(grant.pin().memory)`, ['EPERM=get_mempolicy']);
    expect(answer).toMatchObject({ mode: null, applied: false, reason: 'EPERM' });
  });

  it('a policy that cannot be set leaves the one in force, and says which', () => {
    const { answer } = run(`print(grant.pin().memory)`, ['EPERM=set_mempolicy']);
    expect(answer).toMatchObject({ mode: 'default', applied: false, reason: 'EPERM' });
  });
});

describe('on a kernel of before 5.14', () => {
  const old = ['EINVAL=set_mempolicy:0=5', 'EINVAL=mbind:2=5', 'EINVAL=madvise:2=23'];

  it('one of several nodes is preferred, and the result says so', () => {
    const { answer } = run(
      `const { memoryNodes } = grant;
       print(pinMemory({ grant: 'g', mode: 'preferred', nodes: memoryNodes.union(NodeSet.of(1000)), from: undefined }))`,
      old,
    );
    expect(answer).toMatchObject({ mode: 'preferred', applied: false, reason: 'clipped' });
    expect(answer.nodes).toMatch(/^\d+$/);
  });

  it('the pages of a buffer are all there', () => {
    const { answer } = run(
      `print([{}, { node: 0 }].map((options) => memoryPlacement(grant.buffer('5Mi', options)).byNode))`,
      old,
    );
    expect(answer).toEqual([{ 0: 5 * MIB }, { 0: 5 * MIB }]);
  });

  it.skipIf(!canReserve())('so are hugepages', () => {
    reserveHugepages(3);
    const { answer } = run(
      `const buffer = grant.buffer('5Mi', { pageSize: '2Mi', node: 0 }); print([memoryPlacement(buffer).byNode, free()])`,
      old,
    );
    expect(answer).toEqual([{ 0: 5 * MIB }, 0]);
  });
});

const PROLOGUE = (stateDir: string) => `
  const { readFileSync } = await import('node:fs');
  const { affinity, memoryPlacement } = await import(${JSON.stringify(DIST.replace('index.js', 'entries/diagnostics.js'))});
  const { NodeSet, openManager } = await import(${JSON.stringify(DIST)});
  const DIST = ${JSON.stringify(DIST)};
  const { pinMemory } = await import(${JSON.stringify(DIST.replace('index.js', 'threads/memory.js'))});
  const manager = await openManager({ stateDir: ${JSON.stringify(stateDir)} });
  const grant = await manager.acquire({ cpu: 1 });
  const free = () => Number(readFileSync('/sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages', 'utf8'));
  const collect = async () => {
    for (let i = 0; i < 5; i++) {
      await new Promise(setImmediate);
      globalThis.gc?.();
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  };
  const print = (value) => console.log(JSON.stringify(value));
`;

/** Runs code in a process of its own, with a grant, under a filter where there are rules. */
function run(code: string, rules: string[] = []): { answer: any } {
  const node = [
    process.execPath,
    '--expose-gc',
    '--input-type=module',
    '-e',
    PROLOGUE(makeStateDir()) + code,
  ];
  const [command, ...args] = rules.length > 0 ? ['python3', SECCOMP, ...rules, '--', ...node] : node;
  const { status, signal, stdout, stderr } = spawnSync(command!, args, { encoding: 'utf8' });
  expect([status, signal, stderr]).toEqual([0, null, '']);
  return { answer: JSON.parse(stdout) };
}

/** The same in a Worker of this process. */
function startWorker(code: string): Worker {
  const body = `const { parentPort } = require('node:worker_threads'); (async () => { ${PROLOGUE(makeStateDir())} ${code} })();`;
  return new Worker(body, { eval: true });
}

const message = (worker: Worker): Promise<unknown> =>
  new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
