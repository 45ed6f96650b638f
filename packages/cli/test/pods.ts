// Pod manifests as files, for tests.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newFolder } from './numalign.js';

/** A file of this text in a folder of its own, removed after the test. */
export function newFile(text: string, name = 'pods.yaml'): string {
  const file = join(newFolder(), name);
  writeFileSync(file, text);
  return file;
}

/** A Guaranteed pod of one container with this many CPUs, and memory that any machine has. */
export function pod(name: string, cpu: number | string, metadata = ''): string {
  return `
apiVersion: v1
kind: Pod
metadata: {name: ${name}${metadata}}
spec:
  containers:
    - {name: main, image: web:1, resources: {limits: {cpu: ${cpu}, memory: 16Mi}}}
`;
}

/** The text of a file with several documents. */
export function documents(...texts: string[]): string {
  return texts.join('---\n');
}
