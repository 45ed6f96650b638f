// What openManager and pin load when they are first called.
import { Grant } from '../grants/grant.js';
import { GrantPart } from '../grants/grant-part.js';
import { Pod } from '../grants/pod.js';
import { EmptyManager } from './empty-manager.js';
import { GrantWatch } from './grant-watch.js';
import { settle } from './late-classes.js';
import { Manager } from './manager.js';
import { ManagerView } from './manager-view.js';
import { openMachine } from './open-machine.js';
import { pinToGrant } from './pin-to-grant.js';

/** The functions behind the door, once the classes are what they seem to be. */
export function enter() {
  settle({ EmptyManager, Grant, GrantPart, GrantWatch, Manager, ManagerView, Pod });
  return { openMachine, pinToGrant };
}
