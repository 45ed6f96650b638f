// Stages of an admission, by why it failed. Pure.
import type { AdmissionError, ErrorCode } from 'numalign';
import type { DiagnosticsMessages } from 'numalign/diagnostics';

export type AdmitMessage = DiagnosticsMessages['admit'];

// The kubelet goes from container to container: it aligns, and then has its managers allocate in
// this order. Where one fails it stops.
export const AFFINITY_STAGE = 0;

export const CPU_STAGE = 2;

export const MEMORY_STAGE = 3;

const STAGES: { readonly [C in ErrorCode]?: number } = {
  ERR_TOPOLOGY_AFFINITY: AFFINITY_STAGE,
  ERR_INSUFFICIENT_DEVICES: 1,
  ERR_PREFERRED_ALLOCATION: 1,
  ERR_SMT_ALIGNMENT: CPU_STAGE,
  ERR_INSUFFICIENT_CPUS: CPU_STAGE,
  ERR_SHARED_POOL_FULL: CPU_STAGE,
  ERR_INSUFFICIENT_MEMORY: MEMORY_STAGE,
};

const LAST_STAGE = 4;

export function stageOf({ code, error }: Pick<AdmitMessage, 'code' | 'error'>): number {
  if (code === 'ERR_POD_POOL_EMPTY') return poolStage(error as AdmissionError<'ERR_POD_POOL_EMPTY'>);
  return STAGES[code as ErrorCode] ?? LAST_STAGE;
}

// Policies that go by hints find it out before anything is allocated.
function poolStage({ details: { reason, resource } }: AdmissionError<'ERR_POD_POOL_EMPTY'>): number {
  if (reason === 'TopologyAffinityError') return AFFINITY_STAGE;
  return resource === 'cpu' ? CPU_STAGE : MEMORY_STAGE;
}
