// numalign/preload: `node --import numalign/preload app.mjs` runs a program on exclusive CPUs from
// its first line. The request is in NUMALIGN_ACQUIRE, see docs/reference/configuration.md.
import type { EmptyGrant } from './grants/empty-grant.js';
import type { Grant } from './grants/grant.js';
import type { Manager } from './managers/manager.js';
import { preload } from './preloading.js';

const preloaded = await preload();

/** The manager of {@link grant}; undefined without one. */
export const manager: Manager | undefined = preloaded.manager;
/**
 * The grant that this process runs on. In a process that `grant.spawn`, `grant.fork` or `numalign
 * run` started, it is that grant: threads and children can use it, changes throw ERR_OWNER_ALIVE.
 * undefined in Workers, in other children, and if the grant is not on record. An {@link EmptyGrant}
 * if it is optional and there is no room. See docs/threads.md.
 */
export const grant: Grant | EmptyGrant | undefined = preloaded.grant;
