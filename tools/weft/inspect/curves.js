// Curves of a run as SVG, with the exact values under the pointer or the arrow keys.

const kChart = {height: 240, left: 62, right: 12, top: 10, bottom: 26};

/** About `most` round numbers from `low` to `high`. */
function ticksOf(low, high, most) {
  const rough = (high - low) / most || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const unit = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) || power;
  const ticks = [];
  for (let i = Math.ceil(low / unit); i * unit <= high + unit * 1e-9 && ticks.length < 30; ++i) ticks.push(i * unit);
  return ticks;
}

const tickText = (value) => Math.abs(value) >= 1e18 ? value.toExponential(1) : Math.abs(value) >= 1e6 ? flopsText(value) : String(Number(value.toPrecision(6)));

/** Lowest and highest of the values; a spike beyond 20 times the middle half is cut off at the top. */
function rangeOf(series) {
  const all = series.flatMap((one) => one.values).sort((a, b) => a - b);
  if (!all.length) return null;
  let [low, high] = [all[0], all[all.length - 1]];
  const [q1, q3] = [all[Math.floor(all.length / 4)], all[Math.floor(3 * all.length / 4)]];
  let cut = false;
  if (q3 > q1 && high > q3 + 20 * (q3 - q1) && all.length > 20) {
    high = q3 + 20 * (q3 - q1);
    cut = true;
  }
  // Differences stay finite at the ends of what a number can be.
  [low, high] = [Math.max(low, -8e307), Math.min(high, 8e307)];
  if (low === high) [low, high] = [low - Math.abs(low || 1) * 0.05, high + Math.abs(high || 1) * 0.05];
  return {low, high, cut};
}

/** series: [{name, steps, values}]. */
function chart(title, series) {
  series = series.filter((one) => one.values.length);
  const range = rangeOf(series);
  if (!range) return h('div', {}, h('h3', {}, title), h('p', {class: 'note'}, 'No finite value was logged.'));
  const steps = [...new Set(series.flatMap((one) => one.steps))].sort((a, b) => a - b);
  const [first, last] = [steps[0], steps[steps.length - 1]];
  const svg = s('svg', {class: 'chart', tabindex: 0, role: 'img',
    'aria-label': `${title}: ${series.map((one) => `${one.name} ends at ${exactly(one.values[one.values.length - 1])}`).join(', ')}`});
  const cross = s('line', {class: 'cross', visibility: 'hidden'});
  let width = 0;
  const x = (step) => kChart.left + (last === first ? 0.5 : (step - first) / (last - first)) * (width - kChart.left - kChart.right);
  const y = (value) => kChart.top + (1 - (Math.max(range.low, Math.min(value, range.high)) - range.low) / (range.high - range.low)) *
      (kChart.height - kChart.top - kChart.bottom);
  function draw() {
    width = svg.clientWidth;
    if (!width) return;
    svg.setAttribute('viewBox', `0 0 ${width} ${kChart.height}`);
    svg.replaceChildren(
        ...ticksOf(range.low, range.high, 5).map((value) => [
          s('line', {class: 'grid', x1: kChart.left, x2: width - kChart.right, y1: y(value), y2: y(value)}),
          s('text', {class: 'tick', x: kChart.left - 6, y: y(value) + 4, 'text-anchor': 'end'}, tickText(value))]).flat(),
        ...ticksOf(first, last, Math.max(2, width / 110)).map((step) =>
          s('text', {class: 'tick', x: x(step), y: kChart.height - 8, 'text-anchor': 'middle'}, flopsText(step))),
        ...series.flatMap((one, i) => one.values.length === 1
          ? [s('circle', {class: `s${i % 4}`, cx: x(one.steps[0]), cy: y(one.values[0]), r: 3})]
          : [s('polyline', {class: `s${i % 4}`, points: one.steps.map((step, j) => `${x(step).toFixed(1)},${y(one.values[j]).toFixed(1)}`).join(' ')})]),
        cross);
  }
  let at = steps.length - 1;
  function point(index, left, top) {
    at = Math.max(0, Math.min(steps.length - 1, index));
    cross.setAttribute('x1', x(steps[at]));
    cross.setAttribute('x2', x(steps[at]));
    cross.setAttribute('y1', kChart.top);
    cross.setAttribute('y2', kChart.height - kChart.bottom);
    cross.setAttribute('visibility', 'visible');
    const values = series.map((one) => {
      const near = nearest(one.steps, steps[at]);
      return `${one.name} ${exactly(one.values[near])}${one.steps[near] === steps[at] ? '' : ` (step ${exactly(one.steps[near])})`}`;
    });
    showTip(`step ${exactly(steps[at])}\n${values.join('\n')}`, left, top);
  }
  svg.addEventListener('pointermove', (event) => {
    const bounds = svg.getBoundingClientRect();
    const share = (event.clientX - bounds.left - kChart.left) / (width - kChart.left - kChart.right);
    point(nearest(steps, first + share * (last - first)), event.clientX, event.clientY);
  });
  const away = () => { cross.setAttribute('visibility', 'hidden'); hideTip(); };
  svg.addEventListener('pointerleave', away);
  svg.addEventListener('blur', away);
  svg.addEventListener('keydown', (event) => {
    const by = {ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity}[event.key];
    if (!by) return;
    event.preventDefault();
    const bounds = svg.getBoundingClientRect();
    const next = Number.isFinite(by) ? at + by : by < 0 ? 0 : steps.length - 1;
    point(next, bounds.left + x(steps[Math.max(0, Math.min(steps.length - 1, next))]), bounds.top + kChart.height / 2);
  });
  new ResizeObserver(draw).observe(svg);
  return h('div', {}, h('h3', {}, title), svg, h('div', {class: 'legend'},
      series.map((one, i) => h('span', {}, s('svg', {width: 14, height: 10}, s('circle', {class: `s${i % 4}`, cx: 6, cy: 6, r: 4})),
          ` ${one.name}: `, plain(one.values[one.values.length - 1]))),
      range.cut ? h('span', {}, 'values above the top are drawn at it') : null));
}

/** Index of the step closest to `wanted`; `steps` rise. */
function nearest(steps, wanted) {
  let [low, high] = [0, steps.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low > 0 && wanted - steps[low - 1] < steps[low] - wanted ? low - 1 : low;
}
