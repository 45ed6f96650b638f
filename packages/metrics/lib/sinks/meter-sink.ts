// MeterSink: figures as observable instruments of OpenTelemetry, by its names and units.
import type { BatchObservableResult, Meter, Observable } from '@opentelemetry/api';
import { KUBELET_NAMES, type Labels, type MetricSink, type Values } from './metric-sink.js';

interface Figure {
  readonly instrument: Observable;
  readonly values: () => Values;
  readonly isGauge: boolean;
  /** Of a gauge: the labels of grants when last asked, by their text. */
  before: ReadonlyMap<string, Labels>;
}

// `grant_run_delay_seconds_total` is `numalign.grant.run_delay`, in `s`: by OpenTelemetry's rules for
// Prometheus it comes to the first name again. What counts nothing has no unit: with `1` it would be
// taken for a ratio there.
const UNITS: readonly (readonly [suffix: RegExp, unit: string])[] = [
  [/_seconds$/, 's'],
  [/_bytes$/, 'By'],
];

const THINGS = /(cpu|flag|grant|interrupt|migration|switch|task)(?:e?s)$/;

/** The name and the unit that OpenTelemetry's conventions ask for. */
export function instrumentOf(name: string): { readonly name: string; readonly unit: string } {
  const base = name.replace(/_total$/, '');
  const dotted = (text: string) => `numalign.${text.replace(/^(grant|memory|state)_/, '$1.')}`;
  for (const [suffix, unit] of UNITS)
    if (suffix.test(base)) return { name: dotted(base.replace(suffix, '')), unit };
  const thing = THINGS.exec(base)?.[1];
  return { name: dotted(base), unit: thing === undefined ? '' : `{${thing}}` };
}

export class MeterSink implements MetricSink {
  readonly #meter: Meter;
  readonly #figures: Figure[] = [];

  constructor(meter: Meter) {
    this.#meter = meter;
  }

  get instruments(): readonly Observable[] {
    return this.#figures.map(({ instrument }) => instrument);
  }

  counter(name: string, description: string, _labels: readonly string[], values: () => Values): void {
    const { name: full, unit } = instrumentOf(name);
    const instrument = this.#meter.createObservableCounter(full, { description, unit });
    this.#figures.push({ instrument, values, isGauge: false, before: new Map() });
  }

  gauge(name: string, description: string, _labels: readonly string[], values: () => Values): void {
    // They are for the kubelet's dashboards, which know their own names only.
    if (KUBELET_NAMES.test(name)) return;
    const { name: full, unit } = instrumentOf(name);
    const instrument = this.#meter.createObservableGauge(full, { description, unit });
    this.#figures.push({ instrument, values, isGauge: true, before: new Map() });
  }

  observe(result: BatchObservableResult): void {
    for (const figure of this.#figures) {
      const { instrument, values, isGauge } = figure;
      const now = values();
      if (now === undefined) continue;
      const current = new Map<string, Labels>();
      for (const [labels, value] of now) {
        result.observe(instrument, value, labels);
        if (isGauge && labels.grant !== undefined) current.set(JSON.stringify(labels), labels);
      }
      // An SDK may go on telling the last value of what is not observed any more.
      for (const [text, labels] of figure.before)
        if (!current.has(text)) result.observe(instrument, 0, labels);
      figure.before = current;
    }
  }
}
