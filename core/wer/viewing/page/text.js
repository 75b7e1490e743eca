// Everything that is shown becomes a text node here: no string is ever read as HTML, a style or a script.

const SVG = "http://www.w3.org/2000/svg";

// Control and format characters, half characters, and what reorders or hides text.
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\udb40[\udc00-\udfff]/g;

function shown(text) {
  const parts = document.createDocumentFragment();
  let from = 0;
  for (const match of text.matchAll(UNSEEN)) {
    parts.append(text.slice(from, match.index), named(match[0]));
    from = match.index + match[0].length;
  }
  parts.append(text.slice(from));
  return parts;
}

function named(char) {
  const code = char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
  const mark = document.createElement("span");
  mark.className = "unseen";
  mark.title = "a character that cannot be seen";
  mark.textContent = `U+${code}`;
  return mark;
}

function filled(node, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : shown(String(child)));
  }
  return node;
}

export function el(kind, given = {}, ...children) {
  return filled(document.createElement(kind), given, children);
}

export function svg(kind, given = {}, ...children) {
  return filled(document.createElementNS(SVG, kind), given, children);
}

export function count(value) {
  return value.toLocaleString("en-US");
}

export function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

export function figure(value, digits = 2) {
  return value === null || value === undefined ? "–" : value.toFixed(digits);
}

export function percent(value, digits = 1) {
  return value === null || value === undefined ? "–" : (100 * value).toFixed(digits);
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${seconds.toFixed(1)} s`;
  if (seconds < 100) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

export function short(key) {
  return key.slice(0, 8);
}
