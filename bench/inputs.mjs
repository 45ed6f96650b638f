// All inputs of a folder, each by its name.
import { inputsIn, prepared } from './support/inputs.mjs';
import { measured } from './support/measure.mjs';

export const description = 'every input of a folder, beside the kubelet if it was timed on the same';
export const options = {
  inputs: { type: 'string', help: 'a folder of inputs instead of bench/inputs; NAME is then one of these' },
};

/** The names that can be selected. */
export const inputNames = ({ inputs }) => [...inputsIn(inputs).keys()];

async function measure(name, read) {
  const { call, close, kubelet } = await prepared(read());
  try {
    return await measured(name, call, { kubelet });
  } finally {
    close();
  }
}

// A damaged input does not stop the others.
const damaged = (name, { code = 'ERR_INPUT', message }) => ({ name, code, remark: message });

export async function run({ inputs }, names) {
  const rows = [];
  for (const [name, read] of inputsIn(inputs)) {
    if (names.length > 0 && !names.includes(name)) continue;
    rows.push(await measure(name, read).catch((error) => damaged(name, error)));
  }
  return rows;
}
