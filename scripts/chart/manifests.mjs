// node scripts/chart/manifests.mjs [--check]: writes the plain manifests, which are the base for
// Kustomize, as the chart with its default values renders them. --check only compares.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { stringify } from 'yaml';
import { renderChart } from './chart.mjs';

const BASE = fileURLToPath(new URL('../../packages/kubernetes/deploy/kustomize/base/', import.meta.url));
const HEAD = '# By scripts/chart/manifests.mjs, from the chart with its default values.\n';

// Helm makes it itself. The agent mounts folders of the machine, which only this level allows.
const NAMESPACE = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'numalign', labels: { 'pod-security.kubernetes.io/enforce': 'privileged' } },
};

// What only Helm needs. A ConfigMap's change is seen without its name: it is mounted as a folder.
const HELM_LABELS = ['app.kubernetes.io/managed-by', 'helm.sh/chart', 'app.kubernetes.io/instance'];

function withoutHelm(value) {
  if (Array.isArray(value)) return value.map(withoutHelm);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([key]) => !HELM_LABELS.includes(key));
  return Object.fromEntries(entries.map(([key, each]) => [key, withoutHelm(each)]));
}

const text = (documents) => HEAD + documents.map((each) => stringify(each, { lineWidth: 0 })).join('---\n');

/** The files of the base, by name. */
export function plainManifests() {
  const rendered = withoutHelm(renderChart());
  const isDefinition = ({ kind }) => kind === 'CustomResourceDefinition';
  return {
    'noderesourcetopologies.yaml': text(rendered.filter(isDefinition)),
    'numalign-node.yaml': text([NAMESPACE, ...rendered.filter((each) => !isDefinition(each))]),
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({ options: { check: { type: 'boolean' } } });
  for (const [name, content] of Object.entries(plainManifests())) {
    const path = join(BASE, name);
    if (!values.check) writeFileSync(path, content);
    else if (readFileSync(path, 'utf8') !== content) {
      console.error(`${path} is not what the chart renders: run node scripts/chart/manifests.mjs`);
      process.exitCode = 1;
    }
  }
}
