// Strictly well-formed XML as a tree, as far as our own pictures go: no prologue, comments or
// CDATA.

export interface XmlElement {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly XmlElement[];
  /** Of the element itself, with its entities resolved. */
  readonly text: string;
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"' };

function resolved(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what XML forbids
  const forbidden = /[<\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Cs}|\]\]>/u.exec(text);
  if (forbidden) throw new Error(`${JSON.stringify(forbidden[0])} in the text ${JSON.stringify(text)}`);
  return text.replace(/&(?:(\w+);)?/g, (reference, name: string | undefined) => {
    const character = name === undefined ? undefined : ENTITIES[name];
    if (character === undefined) throw new Error(`the reference ${reference} in ${JSON.stringify(text)}`);
    return character;
  });
}

function attributesOf(text: string): Record<string, string> {
  const attributes: Record<string, string> = {};
  const rest = text.replace(/\s+([\w-]+)="([^"]*)"/g, (_, name: string, value: string) => {
    if (name in attributes) throw new Error(`${name} twice in <${text}>`);
    attributes[name] = resolved(value);
    return '';
  });
  if (rest.trim() !== '') throw new Error(`no attributes: ${JSON.stringify(rest)}`);
  return attributes;
}

/** The root element. @throws Error where the text is not well-formed */
export function parseXml(text: string): XmlElement {
  const top = { name: '', attributes: {}, children: [] as XmlElement[], text: '' };
  const open = [top];
  let end = 0;
  for (const match of text.matchAll(/<(\/?)([A-Za-z][\w-]*)((?:\s+[\w-]+="[^"]*")*)\s*(\/?)>/g)) {
    const [tag, isEnd, name, attributes, isEmpty] = match as unknown as [
      string,
      string,
      string,
      string,
      string,
    ];
    const inside = open.at(-1)!;
    inside.text += resolved(text.slice(end, match.index));
    end = match.index + tag.length;
    if (isEnd) {
      if (inside.name !== name) throw new Error(`</${name}> ends <${inside.name}>`);
      open.pop();
      continue;
    }
    const element = { name, attributes: attributesOf(attributes), children: [], text: '' };
    inside.children.push(element);
    if (!isEmpty) open.push(element);
  }
  const outside = `${top.text}${text.slice(end)}`.trim();
  if (open.length > 1 || outside !== '' || top.children.length !== 1) {
    throw new Error(
      `not one element: ${open.length - 1} open, ${top.children.length} at the top, ${outside}`,
    );
  }
  return top.children[0]!;
}

/** An element and all below it. */
export function allOf(element: XmlElement): XmlElement[] {
  return [element, ...element.children.flatMap(allOf)];
}
