// Page lines, functions and the calls that they make. No page access: texts in, data out.

const ELEMENT = /^([ \t]*(?:[+~>*-] )?)\[(\d+)\] ([A-Za-z]+)((?: '.*)?)$/;
const FENCE = /^(`{3,}|~{3,})([\w+-]*)[^\n]*\n([^]*?)^\1[ \t]*$/gm;
const PYTHON = new Set(['python', 'py', 'python3']);

/** The parts of a line such as `[3] button 'Send'`; null for another line. */
export function elementOf(line) {
  const found = ELEMENT.exec(line);
  if (!found) return null;
  return { indent: found[1], id: Number(found[2]), role: found[3], rest: found[4] };
}

/** All elements of a text by id: `{id, role, rest}`. */
export function elementsIn(text) {
  const found = new Map();
  for (const line of text.split('\n')) {
    const one = elementOf(line);
    if (one) found.set(one.id, one);
  }
  return found;
}

/** Split a prompt at its fences: a list of {kind: "text" | "python" | "page" | "block", text}. */
export function segments(text) {
  const out = [];
  let end = 0;
  for (const match of text.matchAll(FENCE)) {
    if (match.index > end) out.push({ kind: 'text', text: text.slice(end, match.index).replace(/\n$/, '') });
    const body = match[3].replace(/\n$/, '');
    let kind = PYTHON.has(match[2].toLowerCase()) ? 'python' : 'block';
    if (kind === 'block' && body.split('\n').some(elementOf)) kind = 'page';
    out.push({ kind, text: body });
    end = match.index + match[0].length + 1;
  }
  const rest = text.slice(end);
  if (rest.trim()) out.push({ kind: rest.split('\n').some(elementOf) ? 'page' : 'text', text: rest });
  return out.filter((one) => one.text.trim());
}

/** The text of a message, and the images that it may show. */
export function contentOf(message) {
  const parts = Array.isArray(message.content) ? message.content : [{ type: 'text', text: message.content || '' }];
  const texts = parts.filter((part) => typeof part.text === 'string').map((part) => part.text);
  const images = parts.map((part) => part.image_url && (part.image_url.url || part.image_url))
    .filter((url) => typeof url === 'string' && /^data:image\/(?:png|jpeg|webp|gif);base64,/.test(url));
  const others = parts.length - texts.length - images.length;
  return { text: texts.join('\n\n'), images, others };
}

/** The functions for an element, the most typical first. */
export function functionsFor(role, functions) {
  const rank = (one) => {
    const at = one.element_roles.indexOf(role);
    if (at >= 0) return at;
    return one.element_roles.includes('*') ? 1000 : -1;
  };
  return functions.filter((one) => rank(one) >= 0).sort((a, b) => rank(a) - rank(b));
}

function literal(schema) {
  const types = [schema.type, ...(schema.anyOf || []).map((one) => one.type)];
  if (types.includes('string')) return '""';
  if (types.includes('array')) return '[]';
  if (types.includes('object')) return '{}';
  if (types.includes('boolean')) return 'True';
  return '';
}

/**
 * A call of a function: its text, and where the cursor goes; `at` is -1 if nothing is left to write.
 * `given` has values by parameter; an element goes to `id`, or else to the first parameter.
 */
export function callOf(one, element) {
  const schema = one.parameters || {};
  const names = Object.keys(schema.properties || {});
  const required = schema.required || [];
  const target = names.includes('id') ? 'id' : names[0];
  const written = [];
  let at = -1;
  for (const name of names) {
    let value = null;
    if (element !== undefined && name === target) value = String(element);
    else if (required.includes(name)) value = literal(schema.properties[name]);
    if (value === null) continue;
    written.push(`${name}=${value}`);
    const open = value === '' ? 0 : 1;
    if (at < 0 && !(element !== undefined && name === target) && value !== 'True') {
      at = one.name.length + 1 + written.join(', ').length - (open && value.length - 1);
    }
  }
  return { text: `${one.name}(${written.join(', ')})`, at };
}

/** The signature of a function, as `click(id, link_name="")` without values. */
export function signatureOf(one) {
  const schema = one.parameters || {};
  const required = schema.required || [];
  const names = Object.keys(schema.properties || {}).map((name) => (required.includes(name) ? name : `${name}=…`));
  return `${one.name}(${names.join(', ')})`;
}

/** Put a call on a separate line at the cursor: the new text and the new cursor. */
export function insertCall(code, cursor, call) {
  const before = code.slice(0, cursor);
  const start = before.lastIndexOf('\n') + 1;
  const indent = /^[ \t]*/.exec(before.slice(start))[0];
  const stop = code.indexOf('\n', cursor) < 0 ? code.length : code.indexOf('\n', cursor);
  const blank = !code.slice(start, stop).trim();
  const head = blank ? code.slice(0, start) + indent : `${code.slice(0, stop)}\n${indent}`;
  const tail = code.slice(stop);
  const at = head.length + (call.at < 0 ? call.text.length : call.at);
  return { code: head + call.text + tail, cursor: at };
}

function openCall(before) {
  let depth = 0;
  for (let i = before.length - 1; i >= 0; i -= 1) {
    if (before[i] === '\n' && depth === 0) return '';
    if (before[i] === ')') depth += 1;
    if (before[i] === '(') {
      if (depth === 0) return (/[A-Za-z_]\w*$/.exec(before.slice(0, i)) || [''])[0];
      depth -= 1;
    }
  }
  return '';
}

/** Completions at the cursor: {start, options: [{text, label, help}]}, at most 12. */
export function completions(code, cursor, functions, elements, asked) {
  const before = code.slice(0, cursor);
  const word = /[A-Za-z_]\w*$|(?<==\s*)\d*$/.exec(before);
  const start = word ? word.index : cursor;
  const typed = before.slice(start);
  if (!asked && typed.length < 2) return { start, options: [] };
  const inside = functions.find((one) => one.name === openCall(before));
  const options = [];
  if (inside && /\b(?:id|to_id)\s*=\s*\d*$/.test(before)) {
    for (const [id, one] of elements) options.push({ text: String(id), label: `[${id}] ${one.role}${one.rest}` });
  } else {
    for (const name of Object.keys((inside && inside.parameters.properties) || {})) {
      options.push({ text: `${name}=`, label: `${name}=` });
    }
    for (const one of functions) options.push({ text: `${one.name}(`, label: signatureOf(one), help: one.help });
    const known = new Set(options.map((one) => one.text.replace(/[(=]$/, '')));
    const names = new Set(code.match(/[A-Za-z_]\w{2,}/g) || []);
    for (const name of names) if (!known.has(name) && name !== typed) options.push({ text: name, label: name });
  }
  const lower = typed.toLowerCase();
  const fits = options.filter((one) => one.text.toLowerCase().startsWith(lower) && one.text !== typed);
  return { start, options: fits.slice(0, 12) };
}
