// RequestRoom: all ways to make room for one request, the cheapest first.
import type { Host } from '../admission/host.js';
import type { MakeRoom, Room } from '../admission/room.js';
import { native } from '../base/native.js';
import { giveBackRoom } from './move-grant.js';
import { roomByMovedGrants } from './moved-room.js';
import { roomByShrunkGrants } from './shrink-grants.js';

// How long answers count. A waiting request asks again afterwards: a stopped process may continue.
const MEMORY_MS = 60_000;

export interface RoomOptions {
  /** The pod's uid, if it has one. */
  readonly uid?: string | undefined;
  /** True under the CPU policy `dynamic`: grants that consent move, too. */
  readonly isDynamic: boolean;
  /** Read once room is needed. */
  readonly signal: () => AbortSignal;
}

/** Elastic grants come first, because shrinking moves no memory. */
export function requestRoom(host: Host, { uid = native.randomUuid(), isDynamic, signal }: RoomOptions): Room {
  let ways: readonly MakeRoom[] = [];
  let end = 0;
  return {
    uid,
    async make(shortage, rejection) {
      const now = performance.now();
      if (now >= end) {
        const request = { for: uid, signal: signal() };
        const shrunk = roomByShrunkGrants(host, request);
        ways = isDynamic ? [shrunk, roomByMovedGrants(host, request)] : [shrunk];
        end = now + MEMORY_MS;
      }
      let last = rejection;
      for (const make of ways) {
        const answer = await make(shortage, last);
        if (!answer) return undefined;
        last = answer;
      }
      return last;
    },
    giveBack: () => giveBackRoom(host, uid),
  };
}
