import type { PodAssignment } from '../../lib/account/pod-assignment.js';
import type { Booked } from '../../lib/account/pod-holdings.js';
import type { Host } from '../../lib/admission/host.js';
import type { MoveRequest } from '../../lib/changes/move-grant.js';
import type { Manager } from '../../lib/index.js';

export function hostOf(manager: Pick<Manager, 'topology' | 'stateDir'>): Host;
export function podOf(host: Host, uid: string): PodAssignment;
export function placeAt(pod: PodAssignment, cpus: string, node: number): Booked & PodAssignment;
export function move(
  manager: Manager,
  uid: string,
  to: { cpus: string; node: number },
  request: MoveRequest,
): Promise<PodAssignment>;
export function moveReally(
  manager: Manager,
  uid: string,
  to: { cpus: string; node: number },
  request: MoveRequest,
): Promise<PodAssignment>;
export function releaseReally(manager: Manager, request: string): Promise<boolean>;
export function release(manager: Manager, request: string): Promise<boolean>;
export function beginFor(manager: Manager, uid: string): Promise<void>;
export function realHostOf(manager: Pick<Manager, 'topology' | 'stateDir'>): Host;
export function moveAnyway(host: Host, uid: string, cpus: string): Promise<void>;
export function conductLate(manager: Manager, uid: string, to: { cpus: string; node: number }): Promise<void>;
export function abandonMove(host: Host, uid: string, cpus: string, hasBegun: boolean): Promise<void>;
