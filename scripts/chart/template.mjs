// Template: Go templates, as far as the chart uses them: comments, {{- and -}}, variables, pipelines
// of functions in parentheses or not, if/else if/else, with, range (of lists and maps), define and
// include. No methods, template, block, break or continue: a template that has them is an error here.

const TOKEN = /\{\{-?\s*\/\*[\s\S]*?\*\/\s*-?\}\}|\{\{(-\s)?([\s\S]*?)(\s-)?\}\}/g;
const WORD =
  /\s*(?:("(?:[^"\\]|\\.)*")|`([^`]*)`|(:=|=|\(|\)|\||,)|(\$\w*(?:\.\w+)*|\.\w+(?:\.\w+)*|\.)|([A-Za-z]\w*)|(-?\d+(?:\.\d+)?))/y;

/** Text and actions in order: `{ text }` or `{ action }`. */
function lex(source) {
  const found = [];
  let from = 0;
  let trims = false;
  const addText = (text, trimsEnd) => {
    const start = trims ? text.trimStart() : text;
    found.push({ text: trimsEnd ? start.trimEnd() : start });
  };
  for (const match of source.matchAll(TOKEN)) {
    const [whole, , action] = match;
    addText(source.slice(from, match.index), whole.startsWith('{{-'));
    if (action !== undefined) found.push({ action: action.trim() });
    trims = whole.endsWith('-}}');
    from = match.index + whole.length;
  }
  addText(source.slice(from), false);
  return found;
}

function words(action) {
  const found = [];
  WORD.lastIndex = 0;
  while (action.slice(WORD.lastIndex).trim() !== '') {
    const at = WORD.lastIndex;
    const match = WORD.exec(action);
    if (!match)
      throw new Error(`the template has ${JSON.stringify(action.slice(at))}, which is not understood`);
    const [, quoted, raw, sign, path, name, number] = match;
    if (quoted !== undefined || raw !== undefined) found.push({ value: raw ?? JSON.parse(quoted) });
    else if (sign !== undefined) found.push({ sign });
    else if (path !== undefined) found.push({ path });
    else if (number !== undefined) found.push({ value: Number(number) });
    else if (['true', 'false', 'nil'].includes(name))
      found.push({ value: JSON.parse(name.replace('nil', 'null')) });
    else found.push({ name });
  }
  return found;
}

/** The tree of a list of tokens: `nodes`, up to an `end` or `else`, which is `stop`. */
function parse(tokens) {
  const nodes = [];
  for (;;) {
    const token = tokens.shift();
    if (token === undefined) return { nodes, stop: undefined };
    if (token.text !== undefined) {
      nodes.push(token);
      continue;
    }
    const [keyword] = /^\w+/.exec(token.action) ?? [''];
    const rest = token.action.slice(keyword.length).trim();
    if (keyword === 'end' || keyword === 'else') return { nodes, stop: { keyword, rest } };
    if (keyword === 'define') nodes.push({ define: words(rest)[0].value, body: parse(tokens).nodes });
    else if (['if', 'with', 'range'].includes(keyword)) nodes.push(branch(keyword, rest, tokens));
    else nodes.push({ print: words(token.action) });
  }
}

function branch(keyword, rest, tokens) {
  const { nodes: body, stop } = parse(tokens);
  if (stop === undefined) throw new Error(`{{ ${keyword} ${rest} }} has no end`);
  const [, nested, condition] = /^(if|with)\s+(.*)$/s.exec(stop.rest) ?? [];
  const otherwise =
    stop.keyword === 'end' ? [] : nested ? [branch(nested, condition, tokens)] : parse(tokens).nodes;
  return { [keyword]: words(rest), body, otherwise };
}

/** What Go takes for true. */
export const isTrue = (value) =>
  !(value === undefined || value === null || value === false || value === 0 || value === '') &&
  !(typeof value === 'object' && Object.keys(value).length === 0);

// fmt.Sprint of a missing value.
const textOf = (value) => (value === undefined || value === null ? '<no value>' : String(value));

export class Templates {
  #named = new Map();
  #functions;

  /** `functions`: by name; `this` of each is the whole. */
  constructor(functions) {
    this.#functions = functions;
  }

  /** Adds the definitions of a file, and returns what renders it: `(dot) => text`. */
  add(source) {
    const { nodes, stop } = parse(lex(source));
    if (stop !== undefined) throw new Error(`{{ ${stop.keyword} }} ends nothing`);
    for (const node of nodes) if (node.define !== undefined) this.#named.set(node.define, node.body);
    return (dot) => this.#render(nodes, dot, [{ $: dot }]);
  }

  include(name, dot) {
    const nodes = this.#named.get(name);
    if (nodes === undefined) throw new Error(`no template is called ${name}`);
    return this.#render(nodes, dot, [{ $: dot }]);
  }

  #render(nodes, dot, scopes) {
    return nodes.map((node) => this.#one(node, dot, scopes)).join('');
  }

  #one(node, dot, scopes) {
    if (node.text !== undefined) return node.text;
    if (node.define !== undefined) return '';
    if (node.print) return this.#print(node.print, dot, scopes);
    if (node.range) return this.#range(node, dot, scopes);
    const value = this.#pipeline([...(node.if ?? node.with)], dot, scopes);
    if (!isTrue(value)) return this.#render(node.otherwise, dot, [...scopes, {}]);
    return this.#render(node.body, node.with ? value : dot, [...scopes, {}]);
  }

  #print(tokens, dot, scopes) {
    const [first, second] = tokens;
    if (!['=', ':='].includes(second?.sign)) return textOf(this.#pipeline([...tokens], dot, scopes));
    const value = this.#pipeline(tokens.slice(2), dot, scopes);
    const holder = second.sign === ':=' ? scopes.at(-1) : scopes.findLast((scope) => first.path in scope);
    holder[first.path] = value;
    return '';
  }

  #range({ range, body, otherwise }, dot, scopes) {
    const at = range.findIndex(({ sign }) => sign === ':=');
    const names = range.slice(0, Math.max(0, at)).flatMap(({ path }) => path ?? []);
    const value = this.#pipeline(range.slice(at + 1), dot, scopes);
    if (!isTrue(value)) return this.#render(otherwise, dot, [...scopes, {}]);
    const entries = Array.isArray(value)
      ? [...value.entries()]
      : Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
    return entries
      .map(([key, each]) => {
        const scope = names.length === 2 ? { [names[0]]: key, [names[1]]: each } : { [names[0]]: each };
        return this.#render(body, each, [...scopes, scope]);
      })
      .join('');
  }

  /** Takes its tokens, up to a closing parenthesis. */
  #pipeline(tokens, dot, scopes) {
    let value;
    for (let isFirst = true; ; isFirst = false) {
      value = this.#command(tokens, dot, scopes, isFirst ? [] : [value]);
      if (tokens[0]?.sign !== '|') return value;
      tokens.shift();
    }
  }

  #command(tokens, dot, scopes, piped) {
    const [first] = tokens;
    if (first?.name === undefined) return this.#operand(tokens, dot, scopes);
    tokens.shift();
    const run = this.#functions[first.name];
    if (run === undefined) throw new Error(`the function ${first.name} is not known`);
    const args = [];
    while (tokens.length > 0 && !['|', ')'].includes(tokens[0].sign))
      args.push(this.#operand(tokens, dot, scopes));
    return run.call(this, ...args, ...piped);
  }

  #operand(tokens, dot, scopes) {
    const token = tokens.shift();
    if (token === undefined) throw new Error('a value is missing');
    if (token.sign === '(') {
      const value = this.#pipeline(tokens, dot, scopes);
      if (tokens.shift()?.sign !== ')') throw new Error('a parenthesis is not closed');
      return value;
    }
    if (token.path !== undefined) return lookUp(token.path, dot, scopes);
    if (token.name !== undefined) return this.#functions[token.name].call(this);
    if ('value' in token) return token.value;
    throw new Error(`unexpected ${token.sign}`);
  }
}

function lookUp(path, dot, scopes) {
  const [start, ...fields] = path.split('.');
  const holder = scopes.findLast((scope) => start in scope);
  if (start !== '' && holder === undefined) throw new Error(`the variable ${start} is not known`);
  let value = start === '' ? dot : holder[start];
  for (const field of fields.filter(Boolean)) {
    // As in Go: a field of a missing map has no value, a field of nothing is an error.
    if (value === undefined || value === null) throw new Error(`${path}: nil has no field ${field}`);
    value = value[field];
  }
  return value;
}
