// Reads state.json by docs/state-format.md, with no code of the package: what the package writes
// must be what the document says.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** The ids of a list such as `0-3,8`. */
export function parseList(text) {
  if (text === '') return [];
  return text.split(',').flatMap((part) => {
    const [first, last = first] = part.split('-').map(Number);
    if (!Number.isSafeInteger(first) || !Number.isSafeInteger(last) || last < first)
      throw new Error(`no list: ${text}`);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}

// What a container, or what comes after it, keeps from others.
function keysOfContainer({ cpus, held, devices, reusable }) {
  const lists = [cpus, held, reusable.cpus].flatMap(parseList);
  const owned = Object.entries(devices).flatMap(([resource, list]) =>
    list.map(({ id }) => `${resource} ${id}`),
  );
  return [...lists.map((cpu) => `cpu ${cpu}`), ...owned];
}

function keysOfPod({ containers, upcoming }) {
  const next = upcoming ? [upcoming.cpus, upcoming.held].flatMap(parseList).map((cpu) => `cpu ${cpu}`) : [];
  return new Set([...containers.flatMap(keysOfContainer), ...next]);
}

function checkDisjoint(pods) {
  const holders = new Map();
  for (const { uid, keys } of pods) {
    for (const key of keys) {
      if (holders.has(key)) throw new Error(`${key} is held by both ${holders.get(key)} and ${uid}`);
      holders.set(key, uid);
    }
  }
}

// What is booked on the nodes of a group is what the blocks on that group add up to.
function checkMemory(memory, pods) {
  const sums = new Map();
  const add = (nodes, type, bytes) => {
    const key = `${type} on ${nodes.join(',')}`;
    sums.set(key, (sums.get(key) ?? 0) + bytes);
  };
  const groupOf = new Map();
  for (const { containers } of pods) {
    for (const { nodes, type, bytes } of containers.flatMap((container) => container.memory)) {
      for (const node of nodes) groupOf.set(node, nodes);
      add(nodes, type, bytes);
    }
  }
  for (const [node, types] of Object.entries(memory)) {
    for (const [type, bytes] of Object.entries(types)) add(groupOf.get(Number(node)) ?? [node], type, -bytes);
  }
  for (const [key, sum] of sums)
    if (sum !== 0) throw new Error(`${key}: the pods have ${sum} bytes more than is booked`);
}

/** The state in the bytes of a file. Throws where it is damaged or contradicts itself. */
export function decodeState(bytes) {
  const text = bytes.toString('utf8');
  if (!text.startsWith('{"format":"numalign-state","version":1,'))
    throw new Error('it does not begin like a state file');
  if (!text.endsWith('"}\n')) throw new Error('it does not end like a state file');
  const end = text.lastIndexOf(',"checksum":"sha256:');
  const checksum = createHash('sha256').update(text.slice(0, end)).digest('hex');
  if (text.slice(end) !== `,"checksum":"sha256:${checksum}"}\n`) throw new Error('the checksum is wrong');
  const { generation, bootId, pods, memory, cpus, settings } = JSON.parse(text);
  if (!Number.isSafeInteger(generation) || generation < 0 || generation >= 2 ** 52)
    throw new Error(`no generation: ${generation}`);
  const entries = pods.map((pod) => ({
    uid: pod.uid,
    keys: keysOfPod(pod),
    owner: pod.owner,
    name: pod.name,
  }));
  checkDisjoint(entries);
  checkMemory(memory, pods);
  return {
    generation,
    bootId,
    settings,
    memory,
    cpus: cpus.map(([cpu]) => cpu),
    pods: new Map(entries.map((pod) => [pod.uid, pod])),
  };
}

/** As {@link decodeState}, of a file; undefined where there is none. */
export function readState(path) {
  let bytes;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
  return decodeState(bytes);
}
