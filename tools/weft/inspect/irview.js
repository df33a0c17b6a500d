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

/** The viewer with its controls: which pass, whole or as a change, search. */
class IrPanel {
  constructor(passes) {
    this.passes = passes;
    this.changed = passes.map((_, i) => i).filter((i) => passes[i].changed);
    this.current = this.changed[this.changed.length - 1];
    this.whole = false;
    this.found = [];
    this.view = new IrView();
    this.select = h('select', {'aria-label': 'pass', on: {change: () => this.pick(Number(this.select.value))}},
        this.changed.map((i) => h('option', {value: i}, passes[i].name)));
    this.modes = ['changes', 'whole'].map((name) => h('button', {type: 'button',
      on: {click: () => { this.whole = name === 'whole'; this.pick(this.current); }}}, name));
    this.search = h('input', {type: 'search', placeholder: 'search, or FILE:LINE', 'aria-label': 'search the IR', on: {
      input: () => this.find(),
      keydown: (event) => { if (event.key === 'Enter') this.step(event.shiftKey ? -1 : 1); }}});
    this.count = h('span', {class: 'note', role: 'status'});
    this.body = h('div', {hidden: true}, h('div', {class: 'row'}, h('label', {}, 'after ', this.select), this.modes, this.search,
        h('button', {type: 'button', 'aria-label': 'previous hit', on: {click: () => this.step(-1)}}, 'up'),
        h('button', {type: 'button', 'aria-label': 'next hit', on: {click: () => this.step(1)}}, 'down'), this.count), this.view.element);
    this.start = h('button', {type: 'button', on: {click: () => this.pick(this.current)}}, 'open the IR');
    this.element = h('div', {}, this.start, this.body);
  }

  /** Shows what pass number `i` made. */
  pick(i) {
    this.start.remove();
    this.body.hidden = false;
    this.current = i;
    this.select.value = i;
    this.modes.forEach((button, j) => button.setAttribute('aria-pressed', String((j === 1) === this.whole)));
    const {text} = this.passes[i];
    this.view.show(this.whole ? wholeRows(text) : changeRows(text));
    this.view.element.scrollTop = 0;
    this.find();
  }

  /** The whole text with the lines that hold `words`, or that came of FILE:LINE; the first of them in view. */
  seek(words) {
    this.whole = true;
    this.search.value = words;
    this.pick(this.current);
    this.step(1);
  }

  /** Whether a row has what was searched for. */
  matcher(wanted) {
    const at = /^(.*):(\d+)$/.exec(wanted);
    const file = at ? page.sources.files.findIndex((f) => f.path === at[1] || baseName(f.path) === at[1]) : -1;
    if (file < 0) return (entry) => lineText(entry.k, entry.row).includes(wanted);
    return (entry) => (placeOf(linePlace(entry.k, entry.row))?.at || []).some(([f, line]) => f === file && line === Number(at[2]));
  }

  find() {
    const wanted = this.search.value.trim();
    const matches = this.matcher(wanted);
    this.found = wanted ? this.view.rows.map((_, i) => i).filter((i) => !this.view.rows[i].fold && matches(this.view.rows[i])) : [];
    this.view.hits = new Set(this.found);
    this.view.here = -1;
    this.view.redraw();
    this.count.textContent = wanted ? counted(this.found.length, 'line') : '';
  }

  /** To the next hit (by = 1) or the one before (-1), round the end. */
  step(by) {
    if (!this.found.length) return;
    const now = this.found.indexOf(this.view.here);
    const next = now < 0 && by < 0 ? this.found.length - 1 : (now + by + this.found.length) % this.found.length;
    this.view.go(this.found[next]);
    this.count.textContent = `${exactly(next + 1)} of ${exactly(this.found.length)}`;
  }
}

let irPanel = null; // once the section is drawn

/** The program that moves most, by which passes are compared. */
function mainProgram(passes) {
  const {traffic} = passes[passes.length - 1];
  return Object.keys(traffic).sort((a, b) => traffic[b] - traffic[a])[0];
}

function passTable(passes) {
  const program = mainProgram(passes);
  const traffic = (pass) => pass.traffic[program];
  const most = Math.max(...passes.map((pass) => traffic(pass) || 0), 1);
  const show = (pass) => {
    irPanel.pick(passes.indexOf(pass));
    irPanel.view.element.scrollIntoView({block: 'nearest'});
  };
  return table([
    {name: 'pass', cell: (pass) => pass.changed
      ? h('button', {class: 'link mono', type: 'button', on: {click: () => show(pass)}}, pass.name) : h('span', {class: 'mono'}, pass.name)},
    {name: 'ms', n: true, cell: (pass) => num(pass.ms, pass.ms.toFixed(1))},
    {name: 'lines', n: true, cell: (pass) => plain(pass.lines)},
    {name: 'added', n: true, cell: (pass) => pass.added ? h('span', {class: 'plus'}, `+${exactly(pass.added)}`) : ''},
    {name: 'gone', n: true, cell: (pass) => pass.dropped ? h('span', {class: 'minus'}, `-${exactly(pass.dropped)}`) : ''},
    ...(program ? [{name: `bytes of ${program}`, n: true, tip: 'operands and results of every op that is not inside another, as if each were a kernel',
      cell: (pass) => traffic(pass) === undefined ? ''
        : h('span', {class: 'meter', vars: {'--share': `${100 * traffic(pass) / most}%`}}, bytes(traffic(pass)))}] : []),
  ], passes, {label: 'passes'});
}

function passesSection(body) {
  const {passes} = page;
  irPanel = new IrPanel(passes);
  body.append(h('p', {class: 'note'}, `${exactly(passes.filter((pass) => pass.changed).length - 1)} of ${exactly(passes.length - 1)} passes changed the IR. ` +
      'Values that only got other numbers do not count as changed.'), passTable(passes), h('h3', {}, 'The IR'), irPanel.element);
}

/** Ops that came of a line of the text. */
function showOpsOf(file, line) {
  open('passes');
  irPanel.seek(`${page.sources.files[file].path}:${line}`);
  irPanel.view.element.scrollIntoView({block: 'center'});
}
