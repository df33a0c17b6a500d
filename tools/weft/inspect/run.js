// The sections of a run.

const curveOf = (kind, key) => page.log.curves.find((curve) => curve.kind === kind && curve.key === key);

function seriesOf(list) {
  return list.map(([name, kind, key]) => [name, curveOf(kind, key)]).filter(([, curve]) => curve)
      .map(([name, curve]) => ({name, steps: curve.steps, values: curve.values}));
}

function curvesSection(body) {
  const known = [
    ['Loss', [['training', 'train', 'loss'], ['held out', 'eval', 'loss']]],
    ['Learning rate', [['rate', 'train', 'lr']]],
    ['Tokens a second', [['tokens/s', 'train', 'tokens_per_s']]],
    ['Norm of the gradient', [['norm', 'train', 'grad_norm']]],
    ['Windows: shares of full attention', [['ACR', 'windows', 'acr'], ['pairs', 'windows', 'pair_ratio'], ['executed', 'windows', 'executed_ratio']]],
  ];
  const charts = known.map(([title, list]) => [title, seriesOf(list)]).filter(([, series]) => series.length);
  for (const curve of page.log.curves)
    if (curve.kind === 'watch') charts.push([curve.key, [{name: curve.key, steps: curve.steps, values: curve.values}]]);
  for (const curve of page.log.curves)
    if (curve.broken)
      body.append(h('p', {class: 'warn'}, `${curve.kind}/${curve.key}: ${exactly(curve.broken)} values are not finite, at step${curve.broken > 1 ? 's' : ''} ` +
          `${curve.broken_steps.map(exactly).join(', ')}${curve.broken > curve.broken_steps.length ? ', ...' : ''}`));
  if (!charts.length) body.append(h('p', {class: 'note'}, 'The log has no numbers yet.'));
  const thin = page.log.curves.find((curve) => curve.points > curve.steps.length);
  if (thin)
    body.append(h('p', {class: 'note'}, `Of ${exactly(thin.points)} points a curve, those drawn are the first, the least, the greatest and the last of each stretch.`));
  body.append(h('div', {class: 'charts'}, charts.map(([title, series]) => chart(title, series))));
}

/** Windows of frame i by site and head. */
function frameWindows(frames, i) {
  const text = frames.frames[i][1];
  const windows = [];
  let at = 0;
  for (const heads of frames.heads) {
    windows.push(Array.from({length: heads}, () => {
      let code = 0;
      for (let j = 0; j < frames.width; ++j) code = code * frames.alphabet.length + frames.alphabet.indexOf(text[at++]);
      return frames.palette[code];
    }));
  }
  return windows;
}

/** Heads that freezing and pruning had taken by `step`: 'address of the site/head' -> word. */
function leftBy(step) {
  const left = new Map();
  for (const event of page.log.freezes)
    if (event.kind === 'freeze' && event.step <= step)
      for (const head of event.installed || []) left.set(`${head.site}/${head.head}`, event.action === 'prune' ? 'pruned' : 'frozen');
  return left;
}

function windowsSection(body) {
  const frames = page.log.windows;
  if (!frames) {
    body.append(h('p', {class: 'note'}, 'No plan of this run gives windows.'));
    return;
  }
  const map = {positions: page.heads?.positions || 0, dropped: [], sites: frames.heads.map((heads, i) => {
    const known = page.heads?.sites[i];
    const same = known && known.windows.length === heads;
    return {path: same ? known.path : '', address: same ? known.address : `attention ${i}`, windows: new Array(heads).fill(-1)};
  })};
  if (!map.positions) map.positions = frames.palette.reduce((most, window) => Math.max(most, window), 2);
  const decodedFrames = frames.frames.map((_, i) => frameWindows(frames, i));
  const holder = h('div');
  const label = h('output', {class: 'mono'});
  const slider = h('input', {type: 'range', min: 0, max: frames.frames.length - 1, value: frames.frames.length - 1,
    'aria-label': 'step', on: {input: () => draw(Number(slider.value))}});
  function draw(i) {
    const [step] = frames.frames[i];
    const gone = leftBy(step);
    const left = (site, head) => gone.get(`${site.path}/${head}`) || '';
    const windows = (site, head) => decodedFrames[i][site][head];
    const {counts, frozen, pruned} = countWindows(map, windows, left);
    slider.value = i;
    slider.setAttribute('aria-valuetext', `step ${step}`);
    label.textContent = `step ${exactly(step)}`;
    holder.replaceChildren(legend(map, counts, frozen, pruned), headTable(map, windows, left));
  }
  const move = (by) => draw(Math.max(0, Math.min(frames.frames.length - 1, Number(slider.value) + by)));
  body.append(
      h('p', {class: 'note'}, `${exactly(frames.lines)} lines of the log, ${exactly(frames.changes)} changes` +
          (frames.changes > frames.frames.length ? `, ${exactly(frames.frames.length)} of them here.` : '.')),
      h('div', {class: 'row'}, h('button', {type: 'button', 'aria-label': 'earlier', on: {click: () => move(-1)}}, 'earlier'), slider,
          h('button', {type: 'button', 'aria-label': 'later', on: {click: () => move(1)}}, 'later'), label), holder);
  draw(frames.frames.length - 1);
  if (frames.frames.length > 1) body.append(h('h3', {}, 'Every head over time'), windowHistory(map, frames, decodedFrames, draw));
}

/** Heads down, frames across. */
function windowHistory(map, frames, decodedFrames, draw) {
  const rows = map.sites.flatMap((site, i) => site.windows.map((_, head) => ({site, i, head})));
  const tall = Math.max(1, Math.min(14, Math.floor(900 / Math.max(rows.length, 1))));
  const {canvas} = picture(Math.max(60, rows.length * tall), 'windows of every head, a row each, over the steps of the run', (context, width, height) => {
    const [w, tallNow] = [width / frames.frames.length, height / rows.length];
    decodedFrames.forEach((windows, x) => rows.forEach(({i, head}, y) => {
      context.fillStyle = windowColours(windows[i][head], map.positions).background;
      context.fillRect(x * w, y * tallNow, w + 0.6, tallNow + 0.6);
    }));
  });
  const under = (event) => {
    const bounds = canvas.getBoundingClientRect();
    const clamp = (share, n) => Math.max(0, Math.min(n - 1, Math.floor(share * n)));
    return {x: clamp((event.clientX - bounds.left) / bounds.width, frames.frames.length),
      y: clamp((event.clientY - bounds.top) / bounds.height, rows.length)};
  };
  canvas.addEventListener('pointermove', (event) => {
    const {x, y} = under(event);
    const {site, i, head} = rows[y];
    showTip(`${site.address}.heads[${head}], step ${exactly(frames.frames[x][0])}: ${windowText(decodedFrames[x][i][head])}`, event.clientX, event.clientY);
  });
  canvas.addEventListener('pointerleave', hideTip);
  canvas.addEventListener('click', (event) => draw(under(event).x));
  return canvas;
}

/** The pattern of a frozen head: rows are queries, columns keys; P[i, j] = exp(a[j] + r[i - j]) / Z[i]. */
function patternPicture(pattern) {
  const n = pattern.p ? pattern.p.length : pattern.a.length;
  const scale = pattern.length / n;
  const window = pattern.window < 0 ? Infinity : pattern.window;
  const rows = Array.from({length: n}, (_, i) => {
    const row = Array.from({length: n}, (__, j) => j > i || ((i - j) * scale >= window && j * scale >= pattern.first_places) ? 0
      : pattern.p ? pattern.p[i][j] : Math.exp(pattern.a[j] + pattern.r[i - j]));
    const sum = pattern.p ? 1 : totalOf(row, (value) => value);
    return row.map((value) => sum > 0 ? value / sum : 0);
  });
  const most = rows.map((row) => Math.max(...row, 1e-12));
  const name = `${pattern.address}.heads[${pattern.head}]`;
  const {canvas} = picture(150, `pattern of ${name}: queries down, keys across`, (context, width, height) => {
    rows.forEach((row, i) => row.forEach((value, j) => {
      if (j > i) return;
      context.fillStyle = `rgba(47, 127, 208, ${Math.sqrt(value / most[i]).toFixed(3)})`;
      context.fillRect(j * width / n, i * height / n, width / n + 0.4, height / n + 0.4);
    }));
  });
  canvas.addEventListener('pointermove', (event) => {
    const bounds = canvas.getBoundingClientRect();
    const at = (share) => Math.max(0, Math.min(n - 1, Math.floor(share * n)));
    const [i, j] = [at((event.clientY - bounds.top) / bounds.height), at((event.clientX - bounds.left) / bounds.width)];
    showTip(`${name}\nquery ${Math.floor(i * scale)}, key ${Math.floor(j * scale)}: ${j > i ? 'not seen' : shortly(rows[i][j])}`, event.clientX, event.clientY);
  });
  canvas.addEventListener('pointerleave', hideTip);
  return h('figure', {}, canvas, h('figcaption', {class: 'note'}, `${name}, window ${windowText(pattern.window)}${pattern.first_places ? ` and ${pattern.first_places} first places` : ''}${pattern.trained ? ', trained' : ''}`));
}

/** Where a field of a head stands in its row; others follow as they are. */
const kHeadFields = ['site', 'head', 'score', 'kl', 'window', 'chosen', 'reason'];
const rankOf = (key) => (kHeadFields.indexOf(key) + kHeadFields.length + 1) % (kHeadFields.length + 1);

function freezeSection(body) {
  if (page.patterns.length) {
    const n = page.patterns[0].p ? page.patterns[0].p.length : page.patterns[0].a.length;
    body.append(h('h3', {}, 'Patterns in force'), h('p', {class: 'note'},
        `Rows are queries, columns keys, each row's largest share darkest; ${n} of ${exactly(page.patterns[0].length)} places a side.`),
    h('div', {class: 'patterns'}, page.patterns.map(patternPicture)));
  }
  const events = page.log.freezes;
  if (!events.length) {
    body.append(h('p', {class: 'note'}, 'Nothing was frozen or pruned.'));
    return;
  }
  if (page.log.freeze_count > events.length)
    body.append(h('p', {class: 'note'}, `The first ${exactly(events.length)} of ${exactly(page.log.freeze_count)} decisions.`));
  for (const event of events) {
    if (event.kind === 'freeze_budget') {
      body.append(h('p', {}, `step ${exactly(event.step)}: budget of ${event.statement}: perplexity `, plain(100 * event.rise), '%, ',
          plain(100 * event.spent), '% of ', plain(100 * event.limit), `% spent before: ${event.installed ? 'installed' : 'left as they were'}`));
      continue;
    }
    const heads = event.heads || [];
    const keys = [...new Set(heads.flatMap((head) => Object.keys(head)))].filter((key) => heads.every((head) => typeof head[key] !== 'object' || head[key] === null))
        .sort((a, b) => rankOf(a) - rankOf(b));
    const installed = new Set((event.installed || []).map((head) => `${head.site}/${head.head}`));
    body.append(h('h3', {}, `step ${exactly(event.step)}: ${event.action} by ${event.by}`),
        h('p', {}, `${event.statement}: ${counted(installed.size, 'head')} now, ${exactly(event.chosen)} chosen of ${exactly(event.eligible)}` +
            `${event.pattern ? `; pattern ${event.pattern}` : ''}${event.form ? `, ${event.form}` : ''}.`),
        table([
          {name: 'now', cell: (head) => installed.has(`${head.site}/${head.head}`) ? event.action === 'prune' ? 'pruned' : 'frozen' : ''},
          ...keys.map((key) => ({name: key, n: heads.some((head) => typeof head[key] === 'number') && key !== 'site', key: (head) => head[key] ?? -Infinity,
            cell: (head) => key === 'window' && head[key] >= 2147483647 ? 'full'
              : typeof head[key] === 'number' ? plain(head[key]) : String(head[key] ?? '')})),
        ], heads, {label: `heads of step ${event.step}`, most: 40}));
  }
}

function runSection(body) {
  const {checkpoints, console: text, log} = page;
  body.append(h('h3', {}, 'Checkpoints'));
  if (checkpoints.length) {
    body.append(table([
      {name: 'checkpoint', cell: (c) => h('span', {class: 'mono'}, c.name)},
      {name: 'step', n: true, cell: (c) => c.step === undefined ? c.problem : `${exactly(c.step)} of ${exactly(c.total)}`},
      {name: 'tokens', n: true, cell: (c) => c.tokens === undefined ? '' : plain(c.tokens)},
      {name: 'seconds', n: true, cell: (c) => c.seconds === undefined ? '' : plain(c.seconds)},
      {name: 'skipped', n: true, cell: (c) => c.skipped === undefined ? '' : plain(c.skipped)},
      {name: 'bytes', n: true, cell: (c) => bytes(c.bytes)},
      {name: 'build', cell: (c) => c.build || ''},
    ], checkpoints, {label: 'checkpoints'}));
  } else body.append(h('p', {class: 'note'}, 'None.'));
  body.append(h('h3', {}, 'Resumes'), text.resumes.length ? h('ul', {}, text.resumes.map((line) => h('li', {class: 'mono'}, line)))
    : h('p', {class: 'note'}, 'The run was never resumed.'));
  body.append(h('h3', {}, 'Device and console'), text.head.length
    ? h('pre', {class: 'box mono', tabindex: 0}, [...text.head, ...(text.tail.length ? ['...', ...text.tail] : [])].join('\n'))
    : h('p', {class: 'note'}, 'There is no console.log.'));
  body.append(h('p', {class: 'note'}, `log.jsonl: ${exactly(log.lines)} lines${log.torn ? ', and one that was torn' : ''}.`));
}

function runSummary(body) {
  const {summary, log, checkpoints} = page;
  const train = log.last.train || {};
  const held = log.last.eval || {};
  const newest = checkpoints.filter((c) => c.step !== undefined).sort((a, b) => b.step - a.step)[0] || {};
  const cards = [
    ['steps', train.step === undefined ? null : plain(train.step), newest.total === undefined ? '' : `of ${exactly(newest.total)}`],
    ['loss', train.loss === undefined ? null : plain(train.loss), 'training, last'],
    ['held-out loss', held.loss === undefined ? null : plain(held.loss), held.perplexity === undefined ? '' : `perplexity ${shortly(held.perplexity)}`],
    ['tokens', train.tokens === undefined ? null : num(train.tokens, flopsText(train.tokens)), train.seconds === undefined ? '' : `in ${shortly(train.seconds)} s`],
    ['tokens a second', train.tokens_per_s === undefined ? null : num(train.tokens_per_s, flopsText(train.tokens_per_s)), 'last'],
    ['skipped steps', train.skipped === undefined ? null : plain(train.skipped), ''],
    ['parameters', summary.parameters === undefined ? null : num(summary.parameters, flopsText(summary.parameters)), summary.model || ''],
    ['batch', summary.rows === undefined ? null : `${summary.rows} x ${summary.positions}`, `${counted(summary.micro_batches, 'micro-batch', 'es')}, seed ${exactly(summary.seed)}`],
  ];
  for (const problem of page.problems) body.append(h('p', {class: 'warn'}, problem));
  if (log.damaged) body.append(h('p', {class: 'warn'}, `log.jsonl: ${exactly(log.damaged)} lines are damaged and were left out, line${log.damaged > 1 ? 's' : ''} ${log.damaged_lines.join(', ')}${log.damaged > log.damaged_lines.length ? ', ...' : ''}`));
  if (log.torn) body.append(h('p', {class: 'warn'}, 'log.jsonl ends in the middle of a line, which was left out: the run works on it, or was killed.'));
  body.append(h('div', {class: 'cards'}, cards.filter(([, value]) => value !== null).map(([name, value, more]) =>
    h('div', {class: 'card'}, h('span', {class: 'k'}, name), h('b', {}, value), h('span', {class: 'k'}, more)))));
}
