import type { PodAssignment } from '../../lib/account/pod-assignment.js';
import type { Booked } from '../../lib/account/pod-holdings.js';
import type { Site } from '../../lib/admission/site.js';
import type { MoveRequest } from '../../lib/changes/move-grant.js';
import type { Manager } from '../../lib/index.js';

export function siteOf(manager: Pick<Manager, 'topology' | 'stateDir'>): Site;
export function podOf(site: Site, uid: string): PodAssignment;
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
export function realSiteOf(manager: Pick<Manager, 'topology' | 'stateDir'>): Site;
export function moveAnyway(site: Site, uid: string, cpus: string): Promise<void>;
export function conductLate(manager: Manager, uid: string, to: { cpus: string; node: number }): Promise<void>;
export function abandonMove(site: Site, uid: string, cpus: string, hasBegun: boolean): Promise<void>;
