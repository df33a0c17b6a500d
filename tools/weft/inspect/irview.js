// The viewer of IR: rows in chunks that are drawn when they come into view, search,
// links to the text.

const kRowHeight = 18;
const kChunk = 100;
const kLongLine = 500;

/** A line's text with ops, symbols and types apart. */
function tinted(text) {
  const parts = [];
  const cut = text.lastIndexOf(' : ');
  const [front, back] = cut > 0 ? [text.slice(0, cut), text.slice(cut)] : [text, ''];
  let at = 0;
  for (const match of front.matchAll(/@[\w.$/-]+|@"[^"]*"|\b(?:weft|func|tile|builtin)\.[a-z_0-9.]+/g)) {
    parts.push(front.slice(at, match.index), h('span', {class: match[0][0] === '@' ? 'sym' : 'op'}, match[0]));
    at = match.index + match[0].length;
  }
  parts.push(front.slice(at));
  if (back) parts.push(h('span', {class: 'type'}, back));
  return parts;
}

function rowElement(view, entry, index) {
  if (entry.fold)
    return h('div', {class: 'l fold'}, h('span', {class: 'no'}), h('button', {class: 'link', type: 'button',
      on: {click: () => view.unfold(index)}}, `${exactly(entry.fold.length)} lines stayed`));
  const text = lineText(entry.k, entry.row);
  const place = linePlace(entry.k, entry.row);
  const at = placeOf(place);
  const line = h('div', {class: `l ${entry.sign === '+' ? 'add' : entry.sign === '-' ? 'del' : ''}`},
      h('span', {class: 'no'}, String(entry.row + 1)),
      h('span', {class: 'src', tip: at ? placeText(place) : null},
          at ? lineLink(at.at[0][0], at.at[0][1], `:${at.at[0][1]}`) : null),
      h('span', {class: 'sign'}, entry.sign));
  const content = h('span', {}, tinted(text.slice(0, kLongLine)));
  if (text.length > kLongLine)
    content.append(h('button', {class: 'link', type: 'button', on: {click: () => content.replaceChildren(...tinted(text))}},
        ` and ${exactly(text.length - kLongLine)} more characters`));
  line.append(content);
  if (view.hits.has(index)) line.classList.add('hit');
  if (view.here === index) line.classList.add('here');
  return line;
}

/** The scrolling box. `rows` are those of ir.js. */
class IrView {
  constructor() {
    this.element = h('div', {class: 'ir', tabindex: 0, role: 'region', 'aria-label': 'IR'});
    this.hits = new Set();
    this.here = -1;
    this.rows = [];
    this.observer = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) this.draw(entry.target);
    }, {root: this.element, rootMargin: '400px 0px'});
  }

  show(rows) {
    this.rows = rows;
    this.observer.disconnect();
    const chunks = [];
    for (let first = 0; first < rows.length; first += kChunk) {
      const chunk = h('div', {class: 'chunk', 'data-first': first});
      chunk.style.height = `${Math.min(kChunk, rows.length - first) * kRowHeight}px`;
      chunks.push(chunk);
    }
    this.element.replaceChildren(...chunks);
    for (const chunk of chunks) this.observer.observe(chunk);
    if (chunks.length) this.draw(chunks[0]);
  }

  draw(chunk) {
    const first = Number(chunk.dataset.first);
    chunk.replaceChildren(...this.rows.slice(first, first + kChunk).map((row, i) => rowElement(this, row, first + i)));
    this.observer.unobserve(chunk);
  }

  redraw() {
    for (const chunk of this.element.children) if (chunk.children.length) this.draw(chunk);
  }

  unfold(index) {
    const top = this.element.scrollTop;
    const rows = [...this.rows];
    rows.splice(index, 1, ...rows[index].fold);
    this.show(rows);
    this.element.scrollTop = top;
  }

  go(index) {
    this.here = index;
    const chunk = this.element.children[Math.floor(index / kChunk)];
    if (chunk && !chunk.children.length) this.draw(chunk);
    this.redraw();
    this.element.scrollTop = Math.max(0, index * kRowHeight - this.element.clientHeight / 3);
    showTip('', 0, 0);
  }
}

let irControls = null; // of the section, once it is made

function passesSection(body) {
  const passes = page.passes;
  const program = Object.keys(passes[passes.length - 1].traffic)
      .sort((a, b) => passes[passes.length - 1].traffic[b] - passes[passes.length - 1].traffic[a])[0];
  const most = Math.max(...passes.map((pass) => pass.traffic[program] || 0), 1);
  const traffic = (pass) => pass.traffic[program];
  const list = table([
    {name: 'pass', cell: (pass) => pass.changed ? h('button', {class: 'link mono', type: 'button',
      on: {click: () => { irControls.pick(passes.indexOf(pass)); irControls.view.element.scrollIntoView({block: 'nearest'}); }}}, pass.name)
      : h('span', {class: 'mono'}, pass.name)},
    {name: 'ms', n: true, cell: (pass) => num(pass.ms, pass.ms.toFixed(1))},
    {name: 'lines', n: true, cell: (pass) => plain(pass.lines)},
    {name: 'added', n: true, cell: (pass) => pass.added ? h('span', {class: 'plus'}, `+${exactly(pass.added)}`) : ''},
    {name: 'gone', n: true, cell: (pass) => pass.dropped ? h('span', {class: 'minus'}, `-${exactly(pass.dropped)}`) : ''},
    ...(program ? [{name: `bytes of ${program}`, n: true, tip: 'operands and results of every op that is not inside another, as if each were a kernel',
      cell: (pass) => traffic(pass) === undefined ? '' : h('span', {class: 'meter', vars: {'--share': `${100 * traffic(pass) / most}%`}}, bytes(traffic(pass)))}] : []),
  ], passes, {label: 'passes'});
  body.append(h('p', {class: 'note'}, `${exactly(passes.filter((pass) => pass.changed).length - 1)} of ${exactly(passes.length - 1)} passes changed the IR. ` +
      'Values that only got other numbers do not count as changed.'), list);

  const view = new IrView();
  const changed = passes.map((pass, i) => i).filter((i) => passes[i].changed);
  let [current, whole, found] = [changed[changed.length - 1], false, []];
  const select = h('select', {'aria-label': 'pass', on: {change: () => pick(Number(select.value))}},
      changed.map((i) => h('option', {value: i}, passes[i].name)));
  const modes = [['changes', false], ['whole', true]].map(([name, value]) =>
    h('button', {type: 'button', on: {click: () => { whole = value; pick(current); }}}, name));
  const search = h('input', {type: 'search', placeholder: 'search, or gpt2.weft:12', 'aria-label': 'search the IR',
    on: {input: () => find(false), keydown: (event) => { if (event.key === 'Enter') step(event.shiftKey ? -1 : 1); }}});
  const count = h('span', {class: 'note', role: 'status'});
  const step = (by) => {
    if (!found.length) return;
    const now = found.indexOf(view.here);
    view.go(found[(now + by + found.length) % found.length]);
    count.textContent = `${exactly(found.indexOf(view.here) + 1)} of ${exactly(found.length)}`;
  };
  function find(jump) {
    const wanted = search.value.trim();
    const at = /^(.*):(\d+)$/.exec(wanted);
    const file = at ? page.sources.files.findIndex((f) => f.path === at[1] || baseName(f.path) === at[1]) : -1;
    found = [];
    if (wanted) view.rows.forEach((entry, i) => {
      if (entry.fold) return;
      const ok = file >= 0 ? (placeOf(linePlace(entry.k, entry.row))?.at || []).some(([f, line]) => f === file && line === Number(at[2]))
        : lineText(entry.k, entry.row).includes(wanted);
      if (ok) found.push(i);
    });
    view.hits = new Set(found);
    view.here = -1;
    view.redraw();
    count.textContent = wanted ? `${exactly(found.length)} lines` : '';
    if (jump) step(1);
  }
  function pick(i) {
    current = i;
    select.value = i;
    modes.forEach((button, j) => button.setAttribute('aria-pressed', String(Boolean(j) === whole)));
    view.show(whole ? wholeRows(passes[i].text) : changeRows(passes[i].text));
    view.element.scrollTop = 0;
    find(false);
  }
  const start = h('button', {type: 'button', on: {click: () => { start.remove(); holder.hidden = false; pick(current); }}},
      'open the IR');
  const holder = h('div', {hidden: true}, h('div', {class: 'row'}, h('label', {}, 'after ', select), modes, search,
      h('button', {type: 'button', 'aria-label': 'previous hit', on: {click: () => step(-1)}}, 'up'),
      h('button', {type: 'button', 'aria-label': 'next hit', on: {click: () => step(1)}}, 'down'), count), view.element);
  irControls = {view, pick: (i) => { start.remove(); holder.hidden = false; pick(i); },
    ops: (words) => { start.remove(); holder.hidden = false; whole = true; search.value = words; pick(current); find(true); }};
  body.append(h('h3', {}, 'The IR'), start, holder);
}

/** Ops that came of a line of the text. */
function showOpsOf(file, line) {
  open('passes');
  irControls.ops(`${page.sources.files[file].path}:${line}`);
  irControls.view.element.scrollIntoView({block: 'center'});
}
