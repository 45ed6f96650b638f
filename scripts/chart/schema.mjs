// Schema: JSON Schema, as far as values.schema.json uses it.

const KINDS = {
  object: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  array: Array.isArray,
  string: (value) => typeof value === 'string',
  boolean: (value) => typeof value === 'boolean',
  integer: Number.isInteger,
  number: (value) => typeof value === 'number',
  null: (value) => value === null,
};
const KNOWN = new Set([
  ...['$schema', '$id', 'title', 'description', 'default', 'type', 'enum', 'pattern', 'minimum', 'maximum'],
  ...['properties', 'additionalProperties', 'required', 'items'],
]);

/** What is wrong with a value, by path. @throws Error for a keyword that is not understood */
export function flawsOf(value, schema, at = '') {
  const unknown = Object.keys(schema).find((keyword) => !KNOWN.has(keyword));
  if (unknown !== undefined) throw new Error(`the schema has ${unknown}, which is not understood`);
  const name = at === '' ? 'the values' : at;
  const types = [schema.type ?? []].flat();
  if (types.length > 0 && !types.some((type) => KINDS[type](value)))
    return [`${name}: ${JSON.stringify(value)} is not of type ${types.join(' or ')}`];
  const flaws = [];
  if (schema.enum && !schema.enum.includes(value))
    flaws.push(`${name}: ${JSON.stringify(value)} is none of ${schema.enum.join(', ')}`);
  if (schema.pattern !== undefined && !new RegExp(schema.pattern).test(value))
    flaws.push(`${name}: ${JSON.stringify(value)} does not match ${schema.pattern}`);
  if (value < schema.minimum || value > schema.maximum) flaws.push(`${name}: ${value} is out of range`);
  if (schema.items && Array.isArray(value))
    flaws.push(...value.flatMap((each, i) => flawsOf(each, schema.items, `${at}[${i}]`)));
  if (KINDS.object(value)) flaws.push(...ofMembers(value, schema, at));
  return flaws;
}

function ofMembers(value, { properties = {}, additionalProperties = true, required = [] }, at) {
  const path = (key) => (at === '' ? key : `${at}.${key}`);
  return [
    ...required.filter((key) => !(key in value)).map((key) => `${path(key)} is missing`),
    ...Object.entries(value).flatMap(([key, each]) => {
      if (Object.hasOwn(properties, key)) return flawsOf(each, properties[key], path(key));
      if (additionalProperties === false) return [`${path(key)} is not known`];
      return additionalProperties === true ? [] : flawsOf(each, additionalProperties, path(key));
    }),
  ];
}
