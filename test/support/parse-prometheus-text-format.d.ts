// The package has no types of its own.
declare module 'parse-prometheus-text-format' {
  export interface Family {
    name: string;
    help: string;
    type: string;
    metrics: { value?: string; labels?: Record<string, string> }[];
  }
  /** @throws where the text is not in Prometheus' format */
  export default function parse(text: string): Family[];
}
