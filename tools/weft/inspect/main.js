// Which sections there are, and when they are drawn: those in view at once, others
// when the page is idle or a link leads to them.

function modelSummary(body) {
  const {summary} = page;
  const sum = (program) => totalOf(page.flops[program] || [], (row) => row[1] + row[2]);
  const step = page.flops.micro ? sum('micro') * summary.micro_batches + sum('update') : null;
  const forward = page.flops.eval ? sum('eval') : page.flops.prefill ? sum('prefill') : null;
  const gone = summary.parameters_written - summary.parameters;
  const cards = [
    ['parameters', num(summary.parameters, flopsText(summary.parameters)), gone ? `${exactly(gone)} left with plans` : `${exactly(page.parameters.length)} tensors`],
    ['a forward', forward === null ? null : flops(forward), `FLOP, ${summary.batch} x ${summary.positions} positions`],
    ['a step', step === null ? null : flops(step), `FLOP, ${counted(summary.micro_batches, 'micro-batch', 'es')} and the optimiser`],
    ['memory', bytes(summary.state + summary.arena + summary.ports + summary.workspace), 'all of it, by plan'],
    ['state', bytes(summary.state), 'parameters, gradients, moments'],
    ['arena', bytes(summary.arena), `of the largest program; gradients: ${summary.policy}`],
    ['inputs, results', bytes(summary.ports), ''],
    ['workspace', summary.workspace ? bytes(summary.workspace) : null, 'of products'],
    ['kernels', plain(page.kernels.length), `${summary.target}; equal ones once`],
  ];
  body.append(h('div', {class: 'cards'}, cards.filter(([, value]) => value !== null).map(([name, value, more]) =>
    h('div', {class: 'card'}, h('span', {class: 'k'}, name), h('b', {}, value), h('span', {class: 'k'}, more)))));
  const buffers = page.memory.programs.flatMap((program) => program.buffers.map((buffer) => ({program, buffer})))
      .sort((a, b) => b.buffer[2] - a.buffer[2]).slice(0, 5);
  if (buffers.length)
    body.append(h('h3', {}, 'Largest buffers'), table([
      {name: 'bytes', n: true, cell: (b) => bytes(b.buffer[2])},
      {name: 'program', cell: (b) => b.program.name},
      {name: 'type', cell: (b) => h('span', {class: 'mono'}, b.program.types[b.buffer[4]])},
      {name: 'written by', cell: (b) => h('span', {class: 'mono'}, b.buffer[5] < 0 ? '' : kernelLink(b.program.kernels[b.buffer[5]]))},
    ], buffers, {label: 'largest buffers'}));
  if (Object.keys(page.flops).length)
    body.append(h('h3', {}, 'FLOPs by layer'), h('p', {class: 'note'}, 'A multiply-add of a product counts two; attention counts the pairs that windows let through.'), flopsTable());
  body.append(h('details', {}, h('summary', {}, `Parameters: ${exactly(page.parameters.length)} tensors`), parametersTable()));
}

const kSections = page.kind === 'model'
  ? [['summary', 'Summary', modelSummary], ['source', 'Source', sourceSection], ['heads', 'Head map', headsSection],
    ['passes', 'Passes', passesSection], ['ledger', 'Fusions', ledgerSection], ['kernels', 'Kernels', kernelsSection],
    ['memory', 'Memory', memorySection]]
  : [['summary', 'Summary', runSummary], ['curves', 'Curves', curvesSection], ['windows', 'Windows over time', windowsSection],
    ['freeze', 'Frozen heads', freezeSection], ['heads', 'Head map', headsSection], ['run', 'Run', runSection],
    ['source', 'Recipe and model', sourceSection]];

const pending = new Map();

/** Draws a section now, if it is not yet drawn. */
function open(id) {
  const draw = pending.get(id);
  if (!draw) return;
  pending.delete(id);
  draw();
}

/** To what the address names: its section is drawn first. */
function follow() {
  const id = decodeURIComponent(location.hash.slice(1));
  if (!id) return;
  if (/^line-/.test(id)) open('source');
  if (/^kernel-/.test(id)) open('kernels');
  open(id);
  showLine(id);
  document.getElementById(id)?.scrollIntoView({block: /^(line|kernel)-/.test(id) ? 'center' : 'start'});
}

function start() {
  const main = document.getElementById('main');
  document.getElementById('subtitle').textContent = page.kind === 'model'
    ? `${page.summary.file}${page.summary.plans.length ? `, plans ${page.summary.plans.join(', ')}` : ''}; for ${page.summary.target}, ` +
      `${page.summary.batch} x ${page.summary.positions} positions`
    : `${page.summary.run}${page.summary.plans?.length ? `, plans ${page.summary.plans.join(', ')}` : ''}`;
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) open(entry.target.id);
  }, {rootMargin: '300px 0px'});
  for (const [id, name, draw] of kSections) {
    const section = h('section', {id, 'aria-labelledby': `${id}-name`}, h('h2', {id: `${id}-name`}, name));
    main.append(section);
    document.getElementById('nav').append(h('a', {href: `#${id}`, on: {click: () => open(id)}}, name));
    pending.set(id, () => { draw(section); showExact(section); });
    seen.observe(section);
  }
  document.getElementById('exact').addEventListener('change', (event) => {
    exactOn = event.target.checked;
    showExact(document);
  });
  addEventListener('hashchange', follow);
  follow();
  const later = window.requestIdleCallback || ((run) => setTimeout(run, 50));
  const next = () => {
    const [id] = pending.keys();
    if (id === undefined) {
      document.documentElement.dataset.drawn = 'all';
      return;
    }
    open(id);
    later(next);
  };
  later(next);
}

start();
