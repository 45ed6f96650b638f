// Looks: the sections of the page, as the machine and its state are at one moment.
import type { ManagerView } from 'numalign';
import type { StateStatus } from 'numalign/diagnostics';
import { thrownText } from 'numalign/tools';
import type { Topology } from 'numalign/topology';
import { type Holdings, holdingsOf } from './picture/holdings.js';
import { bareMachine } from './picture/machine-picture.js';
import { FigureWatch } from './sections/figures.js';
import { grantSection } from './sections/grants.js';
import { scrolling, textElement } from './sections/html.js';
import { type Rejections, rejectionSection } from './sections/rejections.js';
import { noticeSection, summarySection, waitingSection } from './sections/summary.js';
import { machineLine } from './words/machine-line.js';

export type Section = 'machine' | 'notices' | 'picture' | 'summary' | 'grants' | 'waiting' | 'rejections';

export interface Look {
  /** When, in ISO 8601. */
  readonly time: string;
  /** How many colours of holders it uses. */
  readonly colors: number;
  /** HTML by section. */
  readonly sections: Readonly<Record<Section, string>>;
}

const LABEL =
  'CPUs, memory and devices, in the colours of the grants that hold them: the table of grants says the same';

/** Readers that come within this time of each other get the same look. */
const LEAST_MS = 200;

export class Looks {
  readonly #manager: ManagerView;
  readonly #rejections: Rejections;
  readonly #memory: boolean;
  readonly #figures: FigureWatch;
  readonly #colors = new Colors();
  #drawn: { readonly topology: Topology; readonly text: string; readonly picture: string } | undefined;
  #last: Look | undefined;
  #lastAt = Number.NEGATIVE_INFINITY;

  /** `memory`: also how much memory of grants is on other nodes. */
  constructor(manager: ManagerView, rejections: Rejections, memory: boolean) {
    this.#manager = manager;
    this.#rejections = rejections;
    this.#memory = memory;
    this.#figures = new FigureWatch(manager, memory);
  }

  /** `isNew`: something has changed since the last one. */
  look(isNew = false): Look {
    const now = performance.now();
    if (isNew || this.#last === undefined || now - this.#lastAt >= LEAST_MS) {
      this.#last = { time: new Date().toISOString(), ...this.#take() };
      this.#lastAt = now;
    }
    return this.#last;
  }

  #take(): Omit<Look, 'time'> {
    const machine = textElement('p', machineLine(this.#manager.topology));
    const rejections = rejectionSection(this.#rejections.last);
    try {
      const status = this.#manager.status();
      const figures = this.#figures.look();
      const holdings = this.#holdings(status);
      const shown = holdings.holders.map((holder, i) => {
        const grant = status.grants[i];
        return { holder, grant, figures: grant && figures.get(grant.uid) };
      });
      return {
        colors: this.#colors.count,
        sections: {
          machine,
          notices: noticeSection(status),
          summary: summarySection(status),
          picture: this.#picture(holdings),
          grants: grantSection(shown, this.#memory),
          waiting: waitingSection(status),
          rejections,
        },
      };
    } catch (error) {
      const notices = textElement('p', `The state cannot be read: ${thrownText(error)}`, { class: 'notice' });
      const unknown = textElement('p', 'Unknown.');
      const sections = {
        machine,
        notices,
        summary: unknown,
        picture: unknown,
        grants: unknown,
        waiting: unknown,
      };
      return { colors: 0, sections: { ...sections, rejections } };
    }
  }

  #holdings(status: StateStatus): Holdings {
    const holdings = holdingsOf(status);
    const colors = this.#colors.next(holdings.holders.map(({ name }, i) => status.grants[i]?.uid ?? name));
    return { ...holdings, holders: holdings.holders.map((holder, i) => ({ ...holder, color: colors[i]! })) };
  }

  // A machine with a thousand CPUs takes longer to draw than all else.
  #picture(holdings: Holdings): string {
    const { topology } = this.#manager;
    const text = JSON.stringify(holdings);
    if (topology !== this.#drawn?.topology || text !== this.#drawn.text) {
      const picture = scrolling('Machine, picture', bareMachine(topology, holdings, LABEL));
      this.#drawn = { topology, text, picture };
    }
    return this.#drawn.picture;
  }
}

/** Colours of holders, which each keeps as long as it is there. */
export class Colors {
  #of: ReadonlyMap<string, number> = new Map();

  /** Those of these holders: each new one gets the first that is free. */
  next(keys: readonly string[]): number[] {
    const of = new Map(
      keys.flatMap((key) => (this.#of.has(key) ? [[key, this.#of.get(key)!] as const] : [])),
    );
    const taken = new Set(of.values());
    let first = 0;
    for (const key of keys) {
      if (of.has(key)) continue;
      while (taken.has(first)) first++;
      taken.add(first);
      of.set(key, first);
    }
    this.#of = of;
    return keys.map((key) => of.get(key)!);
  }

  get count(): number {
    return Math.max(0, ...[...this.#of.values()].map((color) => color + 1));
  }
}
