// CheckpointFiles: the files in which the kubelet stores its assignments.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  CPU_MANAGER_STATE,
  type CpuManagerState,
  MEMORY_MANAGER_STATE,
  type MemoryManagerState,
  parseCpuManagerState,
  parseMemoryManagerState,
} from 'numalign/kubelet';
import { NodeError } from '../base/errors.js';
import { DEVICE_CHECKPOINT, parseDeviceCheckpoint } from './device-checkpoint.js';
import type { FiledContainer, KubeletStates } from './holdings.js';

// Reads the files of any kubelet, with or without its gates.
const OPTIONS = { podLevelResourceManagers: true, allowUnverified: true };

/** @throws ERR_SYSCALL */
async function textOf(folder: string, name: string): Promise<string | undefined> {
  const path = join(folder, name);
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new NodeError('ERR_SYSCALL', `cannot read ${path}: ${message}`, { value: path, cause });
  }
}

/**
 * The CPU Manager's file; undefined if there is none.
 * @throws ERR_KUBELET_STATE if it cannot be used, ERR_SYSCALL
 */
export async function readCpuState(folder: string): Promise<CpuManagerState | undefined> {
  const text = await textOf(folder, CPU_MANAGER_STATE);
  return text === undefined ? undefined : parseCpuManagerState(text, OPTIONS);
}

/**
 * The Memory Manager's file; undefined if there is none.
 * @throws ERR_KUBELET_STATE if it cannot be used, ERR_SYSCALL
 */
export async function readMemoryState(folder: string): Promise<MemoryManagerState | undefined> {
  const text = await textOf(folder, MEMORY_MANAGER_STATE);
  return text === undefined ? undefined : parseMemoryManagerState(text, OPTIONS);
}

/**
 * The file of devices; undefined if there is none.
 * @throws ERR_KUBELET_STATE if it cannot be used, ERR_SYSCALL
 */
export async function readDeviceState(folder: string): Promise<FiledContainer[] | undefined> {
  const text = await textOf(folder, DEVICE_CHECKPOINT);
  return text === undefined ? undefined : parseDeviceCheckpoint(text);
}

/**
 * All existing files.
 * @throws ERR_KUBELET_STATE if one cannot be used, ERR_SYSCALL
 */
export async function readStates(folder: string, deviceFolder: string): Promise<KubeletStates> {
  const [cpu, memory, devices] = await Promise.all([
    readCpuState(folder),
    readMemoryState(folder),
    readDeviceState(deviceFolder),
  ]);
  return { cpu, memory, devices };
}
