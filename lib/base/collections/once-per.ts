// Results of functions of immutable objects, each computed once. The objects are held weakly.

/** `find`, with its result kept for each object. */
export function oncePer<Of extends object, Value extends object>(find: (of: Of) => Value): (of: Of) => Value {
  const values = new WeakMap<Of, Value>();
  return (of) => {
    let value = values.get(of);
    if (!value) {
      value = find(of);
      values.set(of, value);
    }
    return value;
  };
}

/** The same for two arguments, with the result kept for the last `beside` of each object. */
export function oncePerLast<Of extends object, Beside, Value>(
  find: (of: Of, beside: Beside) => Value,
): (of: Of, beside: Beside) => Value {
  const results = new WeakMap<Of, { readonly beside: Beside; readonly value: Value }>();
  return (of, beside) => {
    let last = results.get(of);
    if (!last || last.beside !== beside) {
      last = { beside, value: find(of, beside) };
      results.set(of, last);
    }
    return last.value;
  };
}
