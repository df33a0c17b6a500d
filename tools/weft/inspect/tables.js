// Tables that sort, and the sections that are tables: kernels, ledger, parameters, FLOPs.

/**
 * A table in its own scrolling box. Columns: {name, cell(row) -> node or text, key(row)
 * -> what to sort by, n: a number, wrap, tip}. With `sort` the table starts sorted.
 */
function table(columns, rows, {label, sort, down = true, most = 200, rowId} = {}) {
  let order = sort === undefined ? null : {column: sort, down};
  let limit = most;
  const body = h('tbody');
  const heads = columns.map((column, i) => h('th', {scope: 'col', class: column.n ? 'n' : null, tip: column.tip},
      column.key ? h('button', {type: 'button', on: {click: () => sortBy(i)}}, column.name) : column.name));
  const more = h('button', {type: 'button', on: {click: () => { limit = Infinity; draw(); }}});
  function sortBy(i) {
    order = {column: i, down: order && order.column === i ? !order.down : Boolean(columns[i].n)};
    draw();
  }
  function draw() {
    let list = rows;
    if (order) {
      const key = columns[order.column].key;
      const sign = order.down ? -1 : 1;
      list = [...rows].sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        return sign * (x < y ? -1 : x > y ? 1 : 0);
      });
    }
    heads.forEach((head, i) => {
      if (order && order.column === i) head.setAttribute('aria-sort', order.down ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
    body.replaceChildren(...list.slice(0, limit).map((row) => h('tr', {id: rowId ? rowId(row) : null},
        columns.map((column) => h('td', {class: column.n ? 'n' : column.wrap ? 'wrap' : null}, column.cell(row))))));
    more.hidden = list.length <= limit;
    more.textContent = `all ${exactly(list.length)} rows`;
    showExact(body);
  }
  draw();
  return h('div', {},
      h('div', {class: 'box tall', tabindex: 0, role: 'region', 'aria-label': label},
          h('table', {}, h('thead', {}, h('tr', {}, heads)), body)),
      h('div', {class: 'row'}, more));
}

/** A labelled choice. */
function choice(label, options, pick) {
  const select = h('select', {'aria-label': label, on: {change: () => pick(select.value)}},
      options.map((option) => h('option', {value: option}, option)));
  return h('label', {}, `${label} `, select);
}

const totalOf = (list, value) => list.reduce((sum, item) => sum + value(item), 0);
const kernelId = (name) => `kernel-${name}`;

function kernelLink(name) {
  const known = page.kernels.some((kernel) => kernel.name === name);
  return known ? h('a', {href: `#${kernelId(name)}`, on: {click: () => open('kernels')}}, name) : name;
}

function kernelsSection(body) {
  const programs = [...new Set(page.kernels.flatMap((kernel) => Object.keys(kernel.calls)))];
  const calls = (kernel) => totalOf(Object.values(kernel.calls), (n) => n);
  const ofGpu = page.kernels.some((kernel) => 'registers' in kernel || 'note' in kernel);
  const fact = (name, tip) => ({name, n: true, tip, key: (k) => k[name] ?? -1,
    cell: (k) => k[name] === undefined ? '' : name === 'shared' || name === 'spill' || name === 'scratch'
        ? bytes(k[name]) : plain(k[name])});
  const columns = [
    {name: 'kernel', key: (k) => k.name, cell: (k) => h('span', {class: 'mono'}, k.name)},
    {name: 'class', key: (k) => k.class, cell: (k) => k.class},
    ...programs.map((p) => ({name: p, n: true, tip: `calls in program ${p}`, key: (k) => k.calls[p] || 0,
      cell: (k) => k.calls[p] ? plain(k.calls[p]) : ''})),
    {name: 'bytes', n: true, tip: 'operands and results of one call', key: (k) => k.bytes, cell: (k) => bytes(k.bytes)},
    {name: 'FLOP', n: true, tip: 'products of one call; windows are not counted', key: (k) => k.flops,
      cell: (k) => flops(k.flops)},
    {name: 'FLOP a byte', n: true, key: (k) => k.flops / k.bytes || 0, cell: (k) => plain(Number((k.flops / k.bytes || 0).toPrecision(3)))},
    ...(ofGpu ? [fact('threads', 'of a block'), fact('registers', 'of a thread, by ptxas'),
      fact('shared', 'shared memory of a block'), fact('spill', 'stores and loads of a thread'),
      {name: 'note', cell: (k) => k.note || ''}] : []),
    {name: 'ops', wrap: true, cell: (k) => k.ops.join(' ')},
  ];
  const holder = h('div');
  const draw = (word) => {
    const list = page.kernels.filter((k) => !word || `${k.name} ${k.class} ${k.ops.join(' ')}`.includes(word));
    holder.replaceChildren(table(columns, list, {label: 'kernels', sort: columns.findIndex((c) => c.name === 'FLOP'), rowId: (k) => kernelId(k.name)}));
  };
  const search = h('input', {type: 'search', placeholder: 'name, class or op', 'aria-label': 'show kernels with',
    on: {input: () => draw(search.value.trim())}});
  draw('');
  const classes = [...new Set(page.kernels.map((k) => k.class))];
  body.append(
      h('p', {class: 'note'}, `${exactly(page.kernels.length)} kernels, ${exactly(totalOf(page.kernels, calls))} calls: `,
          classes.map((c) => `${c} ${totalOf(page.kernels.filter((k) => k.class === c), calls)}`).join(', '),
          '. Equal kernels stand once.'),
      h('div', {class: 'row'}, search), holder);
}

function scopesText(scopes) {
  const counts = new Map();
  for (const scope of scopes) counts.set(scope, (counts.get(scope) || 0) + 1);
  return [...counts].map(([scope, n]) => n > 1 ? `${scope} (${n})` : scope);
}

/** The first scope, all of them on hover. */
function whereText(scopes) {
  const list = scopesText(scopes);
  return h('span', {tip: list.join('\n')}, list.length > 1 ? `${list[0]} and ${list.length - 1} more` : list[0] || '');
}

function ledgerSection(body) {
  const programs = [...new Set(page.ledger.map((row) => row.program))];
  const removed = (row) => (row.apart - row.fused) * row.calls;
  if (!programs.length) {
    body.append(h('p', {class: 'note'}, 'No kernel holds more than one op.'));
    return;
  }
  body.append(h('p', {class: 'note'}, 'Bytes removed = operands and results of the ops one by one, less those of the ' +
      'kernel that they became, times its calls.'));
  body.append(h('div', {class: 'cards'}, programs.map((p) => {
    const list = page.ledger.filter((row) => row.program === p);
    const apart = totalOf(list, (row) => row.apart * row.calls);
    const gone = totalOf(list, removed);
    return h('div', {class: 'card'}, h('span', {class: 'k'}, `${p}: removed`), h('b', {}, bytes(gone)),
        h('span', {class: 'k'}, `of ${bytesText(apart)} (${(100 * gone / apart || 0).toFixed(1)}%), `,
            `${totalOf(list, (row) => row.calls)} fusions`));
  })));
  const holder = h('div');
  const columns = [
    {name: 'kernel', key: (r) => r.kernel, cell: (r) => h('span', {class: 'mono'}, kernelLink(r.kernel))},
    {name: 'ops', n: true, key: (r) => r.count, cell: (r) => plain(r.count)},
    {name: 'calls', n: true, key: (r) => r.calls, cell: (r) => plain(r.calls)},
    {name: 'apart', n: true, tip: 'bytes of the ops one by one, one call', key: (r) => r.apart, cell: (r) => bytes(r.apart)},
    {name: 'fused', n: true, tip: 'bytes of the kernel, one call', key: (r) => r.fused, cell: (r) => bytes(r.fused)},
    {name: 'removed', n: true, tip: 'by all calls', key: removed, cell: (r) => bytes(removed(r))},
    {name: 'text', cell: (r) => sourceLinks(r.place, 1)},
    {name: 'where', cell: (r) => whereText(r.scopes)},
    {name: 'what', wrap: true, cell: (r) => r.ops.join(' ')},
  ];
  const draw = (p) => holder.replaceChildren(
      table(columns, page.ledger.filter((row) => row.program === p), {label: `fusions of ${p}`, sort: 5}));
  draw(programs[0]);
  body.append(h('div', {class: 'row'}, choice('program', programs, draw)), holder);
  remarksOf(body);
}

/** What passes remarked: once a line of the text, with all layers. */
function remarksOf(body) {
  const rows = new Map();
  for (const [place, text] of page.remarks) {
    const at = placeOf(place);
    const key = JSON.stringify([text, at ? at.at : null]);
    if (!rows.has(key)) rows.set(key, {place, text, scopes: []});
    rows.get(key).scopes.push(...(at ? at.scopes : []));
  }
  if (!rows.size) return;
  body.append(h('h3', {}, 'What passes remarked'), table([
    {name: 'text', cell: (row) => sourceLinks(row.place, 1)},
    {name: 'where', cell: (row) => whereText(row.scopes)},
    {name: 'remark', wrap: true, cell: (row) => row.text}], [...rows.values()], {label: 'remarks'}));
}

function parametersTable() {
  return table([
    {name: 'parameter', key: (r) => r[0], cell: (r) => h('span', {class: 'mono'}, r[0])},
    {name: 'axes', cell: (r) => r[1]},
    {name: 'shape', cell: (r) => r[2].join(' x ')},
    {name: 'elements', n: true, key: (r) => r[3], cell: (r) => plain(r[3])},
    {name: 'text', cell: (r) => lineLink(r[4], r[5])},
  ], page.parameters, {label: 'parameters', most: 60});
}

function flopsTable() {
  const programs = Object.keys(page.flops);
  const layers = [...new Set(programs.flatMap((p) => page.flops[p].map((row) => row[0])))];
  const at = (p, layer) => page.flops[p].find((row) => row[0] === layer);
  const total = (p, layer) => { const row = at(p, layer); return row ? row[1] + row[2] : 0; };
  const sum = (p) => totalOf(page.flops[p], (row) => row[1] + row[2]);
  return table([
    {name: 'layer', cell: (layer) => layer},
    ...programs.map((p) => ({name: p, n: true, key: (layer) => total(p, layer), cell: (layer) => {
      const row = at(p, layer);
      return row ? h('span', {tip: `products ${exactly(row[1])}\nothers ${exactly(row[2])}\n${(100 * total(p, layer) / sum(p) || 0).toFixed(2)}% of ${p}`},
          flops(row[1] + row[2])) : '';
    }})),
  ], layers, {label: 'FLOPs by layer'});
}
