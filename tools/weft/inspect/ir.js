// The IR after each pass, made whole again from what passes share (IrTexts.h).

const kPlace = /%(?![A-Za-z0-9_])/g;
const placesIn = new Map(); // template -> how many numbers it takes

function numbersOf(template) {
  if (!placesIn.has(template)) placesIn.set(template, (page.ir.templates[template].match(kPlace) || []).length);
  return placesIn.get(template);
}

const decoded = [];

/** Text k: {lines: numbers of page.ir.lines / 2, start: where a line's numbers are, numbers}. */
function irText(k) {
  for (let i = decoded.length; i <= k; ++i) decoded.push(decode(i));
  return decoded[k];
}

function decode(k) {
  const from = k === 0 ? [] : decoded[k - 1].lines;
  const lines = [];
  let at = 0;
  for (const [keep, drop, ...add] of page.ir.texts[k].edits) {
    for (let i = 0; i < keep; ++i) lines.push(from[at + i]);
    at += keep + drop;
    lines.push(...add);
  }
  for (; at < from.length; ++at) lines.push(from[at]);
  const packed = page.ir.texts[k].numbers;
  const numbers = new Array(packed.length);
  const start = new Array(lines.length);
  let next = 0;
  let current = -1;
  lines.forEach((line, row) => {
    start[row] = next;
    const count = numbersOf(page.ir.lines[2 * line]);
    for (let i = 0; i < count; ++i, ++next) {
      numbers[next] = i === 0 ? packed[next] + current + 1 : current - packed[next];
      if (i === 0) current = numbers[next];
    }
  });
  return {lines, start, numbers};
}

/** Row `row` of text k as it was printed. */
function lineText(k, row) {
  const text = irText(k);
  let next = text.start[row];
  return page.ir.templates[page.ir.lines[2 * text.lines[row]]].replace(kPlace, () => {
    const number = text.numbers[next++];
    return number < 0 ? '%' : `%${number}`;
  });
}

/** Where row `row` of text k came from; 0: nowhere. */
const linePlace = (k, row) => page.ir.lines[2 * irText(k).lines[row] + 1];

/** Rows of the whole text: {sign, k, row}. */
function wholeRows(k) {
  return irText(k).lines.map((_, row) => ({sign: ' ', k, row}));
}

/** Rows of the change from text k - 1 to text k; long runs that stayed are one row {fold: [rows]}. */
function changeRows(k) {
  if (k === 0) return irText(0).lines.map((_, row) => ({sign: '+', k: 0, row}));
  irText(k);
  const rows = [];
  let [old, now] = [0, 0];
  const kept = (count, first, last) => {
    const run = Array.from({length: count}, (_, i) => ({sign: ' ', k, row: now + i}));
    const [head, tail] = [first ? 0 : 3, last ? 0 : 3];
    if (count <= head + tail + 2) rows.push(...run);
    else rows.push(...run.slice(0, head), {fold: run.slice(head, count - tail)}, ...run.slice(count - tail));
    old += count;
    now += count;
  };
  const edits = page.ir.texts[k].edits;
  edits.forEach(([keep, drop, ...add], i) => {
    kept(keep, i === 0, false);
    for (let j = 0; j < drop; ++j) rows.push({sign: '-', k: k - 1, row: old++});
    for (let j = 0; j < add.length; ++j) rows.push({sign: '+', k, row: now++});
  });
  kept(irText(k).lines.length - now, edits.length === 0, true);
  return rows;
}
