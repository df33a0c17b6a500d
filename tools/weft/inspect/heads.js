// The map of heads: layers down, heads across; windows by shade, and in words.

const windowText = (window) => window < 0 ? 'full' : window === 0 ? '-' : exactly(window);

/** Shade of a window beside T positions: by doublings, darkest at an eighth of 4096 and less. */
function windowShade(window, positions) {
  const all = Math.log2(Math.max(positions, 2));
  const own = window < 0 ? all : Math.log2(Math.min(Math.max(window, 1), Math.max(positions, 2)));
  return Math.min(1, 1.6 * (1 - own / all));
}

function windowColours(window, positions) {
  const share = windowShade(window, positions);
  const mix = (from, to) => Math.round(from + share * (to - from));
  return {background: `rgb(${mix(224, 8)}, ${mix(236, 48)}, ${mix(248, 107)})`, ink: share > 0.45 ? '#fff' : '#111'};
}

/** The largest T that windows are beside: of the recipe, else their own. */
function positionsOf(map) {
  const windows = map.sites.flatMap((site) => site.windows);
  return map.positions || windows.reduce((most, window) => Math.max(most, window), 2);
}

const layerOf = (address) => address.replace(/\.[^.\]]*$/, '');

function headCell(site, head, window, frozen, pruned, positions) {
  const cell = h('td', {class: pruned ? 'pruned' : frozen ? 'frozen' : null,
    tip: `${site.address}.heads[${head}]: ${pruned ? 'pruned' : `window ${windowText(window)}`}${frozen ? ', a fixed pattern' : ''}`},
  pruned ? 'cut' : `${windowText(window)}${frozen ? ' f' : ''}`);
  if (!pruned) {
    const {background, ink} = windowColours(window, positions);
    cell.style.background = background;
    cell.style.color = ink;
  }
  return cell;
}

/** The table; `windows(site index, head)` and `left(site, head)` -> 'frozen', 'pruned' or ''. */
function headTable(map, windows, left) {
  const positions = positionsOf(map);
  const most = map.sites.reduce((n, site) => Math.max(n, site.windows.length), 0);
  return h('div', {class: 'box tall', tabindex: 0, role: 'region', 'aria-label': 'windows of heads'},
      h('table', {class: 'heads mono'},
          h('thead', {}, h('tr', {}, h('th', {scope: 'col'}, 'attention'),
              Array.from({length: most}, (_, head) => h('th', {scope: 'col'}, String(head))))),
          h('tbody', {}, map.sites.map((site, i) => h('tr', {}, h('th', {scope: 'row'}, site.address || 'the model'),
              site.windows.map((_, head) => {
                const state = left(site, head);
                return headCell(site, head, windows(i, head), state === 'frozen', state === 'pruned', positions);
              }))))));
}

function legend(map, counts, frozen, pruned) {
  const positions = positionsOf(map);
  const item = (name, paint) => { const box = h('i'); paint(box.style); return h('span', {}, box, name); };
  return h('div', {class: 'legend'},
      [...counts].sort((a, b) => (a[0] < 0 ? Infinity : a[0]) - (b[0] < 0 ? Infinity : b[0])).map(([window, n]) =>
        item(`${windowText(window)}: ${n}`, (style) => { style.background = windowColours(window, positions).background; })),
      frozen ? item(`f, frozen: ${frozen}`, (style) => { style.borderColor = 'var(--frozen)'; style.borderWidth = '2px'; }) : null,
      pruned ? item(`cut, pruned: ${pruned}`, (style) => { style.background = 'var(--line)'; }) : null);
}

function countWindows(map, windows, left) {
  const counts = new Map();
  let [frozen, pruned] = [0, 0];
  map.sites.forEach((site, i) => site.windows.forEach((_, head) => {
    const state = left(site, head);
    frozen += state === 'frozen';
    pruned += state === 'pruned';
    if (state !== 'pruned') counts.set(windows(i, head), (counts.get(windows(i, head)) || 0) + 1);
  }));
  return {counts, frozen, pruned};
}

const leftNow = (site, head) => site.frozen.includes(head) ? 'frozen' : site.pruned.includes(head) ? 'pruned' : '';

function droppedNote(map) {
  if (!map.dropped.length) return null;
  return h('p', {}, h('span', {class: 'mark dropped'}, 'dropped'), ` ${map.dropped.join(', ')}`);
}

function headsSection(body) {
  const map = page.heads;
  if (!map || !map.sites.length) {
    body.append(h('p', {class: 'note'}, map ? 'The model has no attention.' : 'The model could not be read.'), map ? droppedNote(map) || '' : '');
    return;
  }
  const windows = (i, head) => map.sites[i].windows[head];
  const {counts, frozen, pruned} = countWindows(map, windows, leftNow);
  const heads = totalOf(map.sites, (site) => site.windows.length);
  body.append(h('p', {class: 'note'}, `${exactly(heads)} heads in ${exactly(map.sites.length)} attentions` +
      (map.acr === undefined ? '.' : `; windows of ${(100 * map.acr).toFixed(2)}% of ${exactly(map.positions)} positions on average (ACR ${map.acr.toFixed(4)}), ` +
        `${(100 * map.pair_ratio).toFixed(2)}% of the pairs of full attention.`) +
      (map.sites.some((site) => site.later) ? ' Windows are chosen while a run goes on: these are the ones of its start, or of the checkpoint.' : '')));
  body.append(legend(map, counts, frozen, pruned), headTable(map, windows, leftNow));
  const note = droppedNote(map);
  if (note) body.append(note);
}
