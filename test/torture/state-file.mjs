// Reads state.json by docs/state-format.md, without code of the package: the package must write
// what the document says.
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';

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

/** All that a pod keeps from others: `cpu 3`, `example.com/nic nic-0`. */
export function keysOfPod({ containers, upcoming }) {
  const next = upcoming ? [upcoming.cpus, upcoming.held].flatMap(parseList).map((cpu) => `cpu ${cpu}`) : [];
  return new Set([...containers.flatMap(keysOfContainer), ...next]);
}

// Records of moves, and of the shared pool.
function termsOf({ movable, moves, mixed, upcoming }) {
  const { for: request, deadline, target, refusal } = upcoming?.move ?? {};
  const targetKeys = target ? keysOfPod({ containers: target.containers, upcoming: null }) : null;
  return {
    mixed: mixed ?? null,
    movable: movable ? [movable.maxPerHour, movable.noticeMs, new Set(movable.exclude)] : null,
    moves: moves ?? null,
    move: upcoming?.move ? { request, deadline, refusal, targetKeys } : null,
  };
}

/** True if a pod keeps room for a request. */
export const isPlaceholder = ({ containers }) => containers[0]?.name === '.room';

function checkDisjoint(pods) {
  const holders = new Map();
  for (const { uid, keys } of pods) {
    for (const key of keys) {
      if (holders.has(key)) throw new Error(`${key} is held by both ${holders.get(key)} and ${uid}`);
      holders.set(key, uid);
    }
  }
}

// The booking on the nodes of a group is the sum of the blocks on that group.
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

const SEAL = /,"checksum":"crc32:([0-9a-f]{8})"\}$/;

/** The members of a line with a valid end; undefined for another line. */
function decodeLine(line) {
  const seal = SEAL.exec(line);
  const checksum = seal && crc32(line.slice(0, seal.index)).toString(16).padStart(8, '0');
  return seal?.index > 0 && checksum === seal[1] ? JSON.parse(line) : undefined;
}

function lastCpusAfter(before = [], { named = [], lastCpus }) {
  if (lastCpus) return lastCpus;
  const all = named.reduce((list, each) => [...list.filter(({ name }) => name !== each.name), each], before);
  return all.slice(-64);
}

/** The lines of a file, and the rest after the last newline. */
function linesOf(bytes) {
  const lines = bytes.toString('utf8').split('\n');
  return { lines: lines.slice(0, -1), rest: lines.at(-1) };
}

/**
 * The members of a state after every line of the file. Throws if the file is damaged. An unfinished
 * last line does not count. `seen`: gets each generation, with its members, its pods by uid (valid
 * until the next) and the change that made it.
 */
export function decodeMembers(bytes, seen = () => {}) {
  const { lines, rest } = linesOf(bytes);
  if (!/^\{"format":"numalign-state","version":[234],/.test(lines[0]))
    throw new Error('it does not begin like a state file');
  const [head, state, ...changes] = lines.map(decodeLine);
  if (!head || !state) throw new Error('its first lines are damaged');
  if (state.line !== 'state' || head.generation !== state.generation)
    throw new Error('its second line is not the state of its first');
  if (head.bytes !== Buffer.byteLength(`${lines[1]}\n`))
    throw new Error('its second line has another length');
  const end = changes.indexOf(undefined);
  if (end >= 0 && (end < changes.length - 1 || rest !== '')) throw new Error('a line in it is damaged');
  const pods = new Map(state.pods.map((pod) => [pod.uid, pod]));
  let members = state;
  seen(members, pods, undefined);
  for (const change of end < 0 ? changes : changes.slice(0, end)) {
    if (change.line !== 'change' || change.generation !== members.generation + 1)
      throw new Error(`after generation ${members.generation} comes ${change.line} ${change.generation}`);
    const { released = [], pods: list = [], ...others } = change;
    for (const uid of released) if (!pods.delete(uid)) throw new Error(`${uid} is released and not there`);
    for (const pod of list) pods.set(pod.uid, pod);
    members = { ...members, ...others, lastCpus: lastCpusAfter(members.lastCpus, change) };
    seen(members, pods, change);
  }
  const { line: _line, checksum: _checksum, named: _named, ...whole } = members;
  return { ...whole, pods: [...pods.values()] };
}

/** The text of a state file with these members, in one generation. */
export function encodeMembers(members) {
  const seal = (line) => {
    const body = JSON.stringify(line).slice(0, -1);
    return `${body},"checksum":"crc32:${crc32(body).toString(16).padStart(8, '0')}"}\n`;
  };
  const state = seal({ line: 'state', ...members });
  const { generation } = members;
  const version = members.kubelet || members.quiet ? 3 : 2;
  const head = { format: 'numalign-state', version, generation, follows: null };
  return seal({ ...head, bytes: Buffer.byteLength(state) }) + state;
}

/** The members of an owner file, with its grants. Throws if it is damaged. */
export function decodeOwner(bytes) {
  const { lines, rest } = linesOf(bytes);
  if (!/^\{"format":"numalign-owner","version":[234],/.test(lines[0]))
    throw new Error('it does not begin like an owner’s file');
  const [head, ...steps] = lines.map(decodeLine);
  const end = steps.pop();
  if (rest !== '' || [head, ...steps].includes(undefined)) throw new Error('a line in it is damaged');
  if (Number(end?.lines) !== 1 + steps.length) throw new Error('it is cut short');
  const pods = new Map();
  let members = head;
  for (const { pod, released, ...others } of steps) {
    if (pod) pods.set(pod.uid, pod);
    if (released) pods.delete(released);
    members = { ...members, ...others };
  }
  const { checksum: _checksum, ...whole } = members;
  return { ...whole, pods: [...pods.values()] };
}

/**
 * The state in the bytes of a file. Throws if it is damaged or contradicts itself. `seen`: as
 * above.
 */
export function decodeState(bytes, seen) {
  const { generation, bootId, pods, memory, cpus, settings, quiet } = decodeMembers(bytes, seen);
  if (!Number.isSafeInteger(generation) || generation < 0 || generation >= 2 ** 52)
    throw new Error(`no generation: ${generation}`);
  const entries = pods.map((pod) => ({
    uid: pod.uid,
    keys: keysOfPod(pod),
    owner: pod.owner,
    name: pod.name,
    quiet: pod.quiet ?? null,
    upcoming: pod.upcoming,
    terms: termsOf(pod),
    isPlaceholder: isPlaceholder(pod),
  }));
  checkDisjoint(entries);
  checkMemory(memory, pods);
  return {
    generation,
    bootId,
    settings,
    memory,
    quiet: quiet?.settings ?? [],
    cpus: cpus.map(([cpu]) => cpu),
    pods: new Map(entries.map((pod) => [pod.uid, pod])),
  };
}

/** Like {@link decodeState}, of a file; undefined if there is none. */
export function readState(path, seen) {
  let bytes;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
  return decodeState(bytes, seen);
}

const NUMBER_DIGITS = 16;

/** The highest committed generation, from the first line of the lock file. */
export function readHighest(stateDir) {
  const [, digits] = /^(\d{16})\n/.exec(readFileSync(join(stateDir, 'lock'), 'latin1')) ?? [];
  return Number(digits ?? 0);
}

/** Writes it there; by default an empty record. The file stays the locked one. */
export function writeHighest(stateDir, generation = 0) {
  const file = openSync(join(stateDir, 'lock'), 'r+');
  writeSync(file, `${String(generation).padStart(NUMBER_DIGITS, '0')}\n`, 0);
  closeSync(file);
}
