// Diagnose: what this machine and this user can do for grants, and what to change. Only looks.
import { checkOptions } from '../base/check-options.js';
import { NumalignError } from '../base/errors.js';
import { parentsOf } from '../enforcement/members/descent.js';
import { parseConfig } from '../input/config.js';
import { parseMachineOptions } from '../input/given-settings.js';
import { discover } from '../machine/discovery.js';
import type { Topology } from '../machine/topology.js';
import { openManager } from '../opening/open-manager.js';
import { defaultStateDir } from '../state/folder/chosen-folder.js';
import type { FactsQuestion } from './facts.js';
import type { Finding } from './finding.js';

/** The options of {@link diagnose}. */
export interface DiagnoseOptions {
  /**
   * The state folder to judge.
   * @default the variable `NUMALIGN_STATE_DIR`, else the machine's
   */
  stateDir?: string;
  /**
   * The cgroup to judge; null: none.
   * @default the recorded one, else the machine's
   */
  cgroupRoot?: string | null;
}

/** The result of {@link diagnose}. */
export interface Diagnosis {
  /** True if there is no problem; there may be warnings. */
  readonly healthy: boolean;
  /** One finding for each check, always in the same order. */
  readonly findings: readonly Finding[];
}

/**
 * Checks this machine and this user, as `numalign doctor` does. It makes, locks and changes
 * nothing, and needs no rights. It blocks the thread for about a hundred milliseconds.
 * @throws ERR_INVALID_OPTION
 */
export async function diagnose(options: DiagnoseOptions = {}): Promise<Diagnosis> {
  const { stateDir, cgroupRoot } = checkOptions(
    options,
    ['stateDir', 'cgroupRoot'],
    'diagnose',
  ) as DiagnoseOptions;
  parseMachineOptions(cgroupRoot === undefined ? {} : { cgroupRoot });
  const path = parseConfig(stateDir === undefined ? {} : { stateDir }).stateDir ?? defaultStateDir();
  const topology = await discover();
  const state = await look(path, topology);
  const [{ judge }, { readMachineFacts }] = await Promise.all([
    import('./judge.js'),
    import('./read-facts.js'),
  ]);
  const findings = judge(readMachineFacts({ topology, stateDir: path, cgroupRoot, ...state }));
  return { healthy: findings.every(({ status }) => status !== 'problem'), findings };
}

// An unreadable state is a finding, not an error.
async function look(
  stateDir: string,
  topology: Topology,
): Promise<Pick<FactsQuestion, 'settings' | 'refusal' | 'kubelet' | 'free' | 'pool' | 'grants'>> {
  try {
    const view = await openManager({ readOnly: true, stateDir, topology });
    try {
      const { exists, settings, refusal, kubelet, sharedPool: pool, grants, ...status } = view.status();
      const parents = [process.pid, ...parentsOf(process.pid)];
      return {
        settings: exists ? settings : undefined,
        refusal: refusal?.message,
        kubelet,
        free: refusal ? null : status.free.union(status.freeIsolated),
        pool,
        grants: grants
          .filter(({ owner, alive }) => alive && owner.pid !== null && parents.includes(owner.pid))
          .map(({ cpus }) => cpus),
      };
    } finally {
      view.close();
    }
  } catch (error) {
    if (error instanceof NumalignError) {
      const { message: refusal } = error;
      return { settings: undefined, refusal, kubelet: null, free: null, pool: topology.cpus, grants: [] };
    }
    throw error;
  }
}
