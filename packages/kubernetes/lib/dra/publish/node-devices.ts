// NodeDevices: the devices that the manager's machine has for claims now, with taints.
import type { CpuSet, GrantInfo, ManagerView } from 'numalign';
import { cpusOfGrants } from 'numalign/tools';
import { type DeviceMachine, type DeviceUnit, devicesOf, machineNow, type PcieRoot } from '../devices.js';
import type { Taint, TaintedDevice } from './resource-slices.js';

export type DeviceManager = Pick<
  ManagerView,
  'topology' | 'settings' | 'placement' | 'freeCpus' | 'memory' | 'grants'
>;

export interface NodeDevicesOptions {
  readonly manager: DeviceManager;
  readonly unit: DeviceUnit;
  /** The options in effect. */
  readonly placement: ManagerView['placement'];
  /** Whether a grant is a claim's, which the scheduler knows. */
  readonly isOfClaim: (grant: GrantInfo) => boolean;
  readonly pcieRoots: readonly PcieRoot[];
  readonly hasLists: boolean;
  /** Why containers cannot be placed here; undefined: they can. */
  readonly flaw: string | undefined;
}

/** @throws like {@link ManagerView.freeCpus} */
export function nodeDevices(options: NodeDevicesOptions): TaintedDevice[] {
  const { manager, unit, isOfClaim, flaw } = options;
  const claims = manager.grants().filter(isOfClaim);
  const placing: Taint[] =
    flaw === undefined ? [] : [{ key: 'numalign.io/not-placing', value: 'true', effect: 'NoSchedule' }];
  // What a claim has is at least kept by the masks of others.
  const open = cpusOfGrants(claims.filter(({ enforcement }) => enforcement === 'recorded'));
  return devicesOf(machineOf(options, claims), unit).map((device) => ({
    ...device,
    taints: [...placing, ...(isNear(device.node, open, manager) ? [FALLEN] : [])],
  }));
}

const FALLEN: Taint = { key: 'numalign.io/enforcement', value: 'recorded', effect: 'NoSchedule' };

const isNear = (node: number, cpus: CpuSet, { topology }: DeviceManager) =>
  topology.nodes.some(({ id, cpus: own }) => id === node && own.intersects(cpus));

function machineOf(
  { manager, placement, pcieRoots, hasLists }: NodeDevicesOptions,
  claims: readonly GrantInfo[],
): DeviceMachine {
  const held = { cpus: cpusOfGrants(claims), memory: claims.flatMap(({ memory }) => memory) };
  const { topology } = manager;
  const now = {
    topology,
    settings: manager.settings(),
    freeCpus: manager.freeCpus(),
    memory: manager.memory(),
  };
  return { ...machineNow({ ...now, placement, claims: held }), pcieRoots, hasLists };
}
