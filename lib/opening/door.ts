// What openManager and pin load when they are first called.
import { Grant } from '../grants/grant.js';
import { GrantPart } from '../grants/grant-part.js';
import { Pod } from '../grants/pod.js';
import { EmptyManager } from '../managers/empty-manager.js';
import { GrantWatch } from '../managers/grant-watch.js';
import { settle } from '../managers/late-classes.js';
import { Manager } from '../managers/manager.js';
import { ManagerView } from '../managers/manager-view.js';
import { openMachine } from '../managers/open-machine.js';
import { pinToGrant } from '../managers/pin-to-grant.js';

/** The functions behind the door, once the classes are what they seem to be. */
export function enter() {
  settle({ EmptyManager, Grant, GrantPart, GrantWatch, Manager, ManagerView, Pod });
  return { openMachine, pinToGrant };
}
