// All inputs of a folder, each by its name.
import { inputsIn, kubeletTime, prepared, readInput } from './support/inputs.mjs';
import { measured } from './support/measure.mjs';

export const description = 'every input of a folder, beside the kubelet where it was timed on one of the same name';
export const options = {
  inputs: { type: 'string', help: 'a folder of inputs instead of bench/inputs; NAME is then one of these' },
};

/** The names that may be asked for. */
export const inputNames = ({ inputs }) => [...inputsIn(inputs).keys()];

export async function run({ inputs }, names) {
  const files = inputsIn(inputs);
  const rows = [];
  for (const [name, path] of files) {
    if (names.length > 0 && !names.includes(name)) continue;
    const { call, close } = await prepared(readInput(path));
    try {
      rows.push(await measured(name, call, { kubeletNs: kubeletTime(name) }));
    } finally {
      close();
    }
  }
  return rows;
}
