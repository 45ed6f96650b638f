// The last requests of this process that were rejected, and why.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { AdmissionError } from 'numalign';
import { DIAGNOSTICS_CHANNELS, type DiagnosticsMessages } from 'numalign/diagnostics';
import { since } from '../words/grant-names.js';
import { shorten } from '../words/text.js';
import { element, textElement } from './html.js';

export interface RejectedRequest {
  readonly id: number;
  readonly time: string;
  readonly name: string;
  readonly code: string;
  readonly message: string;
  /** In several lines. */
  readonly explanation: string;
}

const MOST_KEPT = 20;
const MOST_TEXT = 4000;

/** Remembers the rejections of a manager, at no cost until there is one. */
export class Rejections {
  readonly #managerId: number;
  #last: readonly RejectedRequest[] = [];
  #count = 0;

  constructor(managerId: number) {
    this.#managerId = managerId;
    subscribe(DIAGNOSTICS_CHANNELS.admit, this.#onAdmit);
  }

  /** The newest first. */
  get last(): readonly RejectedRequest[] {
    return this.#last;
  }

  close(): void {
    unsubscribe(DIAGNOSTICS_CHANNELS.admit, this.#onAdmit);
  }

  readonly #onAdmit = (message: unknown): void => {
    const { managerId, outcome, error, name, uid } = message as DiagnosticsMessages['admit'];
    if (managerId !== this.#managerId || outcome !== 'rejected' || !(error instanceof AdmissionError)) return;
    const rejected = {
      id: ++this.#count,
      time: new Date().toISOString(),
      name: shorten(name ?? uid ?? 'without a name', 200),
      code: error.code,
      // Its first part: the explanation has the rest.
      message: shorten(error.message.split('; ', 1)[0]!, MOST_TEXT),
      explanation: shorten(error.details.explanation.text, MOST_TEXT),
    };
    this.#last = [rejected, ...this.#last].slice(0, MOST_KEPT);
  };
}

export function rejectionSection(rejections: readonly RejectedRequest[]): string {
  if (rejections.length === 0) return element('p', {}, 'None since this process has started.');
  return element('ol', { class: 'plain' }, rejections.map(itemOf).join(''));
}

function itemOf({ id, time, name, code, message, explanation }: RejectedRequest): string {
  const head = [
    textElement('time', since(time), { datetime: time }),
    textElement('b', name, { class: 'name' }),
    textElement('code', code),
    textElement('span', message),
  ];
  const why = element('summary', {}, head.join(' ')) + textElement('pre', explanation);
  return element('li', { 'data-key': id }, element('details', {}, why));
}
