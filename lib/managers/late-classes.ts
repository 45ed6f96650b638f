// The classes whose code is loaded when the first manager opens: before that, nothing is an instance
// of them.
import type { Grant } from '../grants/grant.js';
import type { GrantPart } from '../grants/grant-part.js';
import type { Pod } from '../grants/pod.js';
import type { EmptyManager } from './empty-manager.js';
import type { GrantWatch } from './grant-watch.js';
import type { Manager } from './manager.js';
import type { ManagerView } from './manager-view.js';

interface Classes {
  readonly EmptyManager: typeof EmptyManager;
  readonly Grant: typeof Grant;
  readonly GrantPart: typeof GrantPart;
  readonly GrantWatch: typeof GrantWatch;
  readonly Manager: typeof Manager;
  readonly ManagerView: typeof ManagerView;
  readonly Pod: typeof Pod;
}

let loaded: Classes | undefined;

function lateClass<Name extends keyof Classes>(name: Name): Classes[Name] {
  function construct(...args: unknown[]): unknown {
    if (loaded === undefined) throw new TypeError(`there is no ${name} before a manager opens`);
    return Reflect.construct(loaded[name], args, new.target);
  }
  return Object.defineProperty(construct, 'name', { value: name }) as unknown as Classes[Name];
}

export const late: Classes = {
  EmptyManager: lateClass('EmptyManager'),
  Grant: lateClass('Grant'),
  GrantPart: lateClass('GrantPart'),
  GrantWatch: lateClass('GrantWatch'),
  Manager: lateClass('Manager'),
  ManagerView: lateClass('ManagerView'),
  Pod: lateClass('Pod'),
};

/** Gives the late classes the members of those that have been loaded. */
export function settle(classes: Classes): void {
  if (loaded) return;
  loaded = classes;
  for (const name of Object.keys(late) as (keyof Classes)[]) {
    const { prototype } = classes[name];
    const parent = Object.getPrototypeOf(classes[name]);
    Object.setPrototypeOf(late[name], parent === classes.ManagerView ? late.ManagerView : parent);
    Object.defineProperty(late[name], 'prototype', { value: prototype });
    Object.defineProperty(prototype, 'constructor', { value: late[name] });
  }
}
