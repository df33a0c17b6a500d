// The program's text, with what plans and passes made of its lines.

const baseName = (path) => path.split('/').pop();
const lineId = (file, line) => `line-${file}-${line}`;

function lineLink(file, line, text) {
  const named = page.sources.files[file];
  if (!named) return '';
  return h('a', {href: `#${lineId(file, line)}`, on: {click: () => open('source')}},
      text || `${baseName(named.path)}:${line}`);
}

/** A place of the IR: {scopes, at: [[file, line, column]...]}, or null. */
const placeOf = (place) => (page.ir && page.ir.places[place]) || null;

function placeText(place) {
  const at = placeOf(place);
  if (!at) return '';
  const places = at.at.map(([file, line, column]) => `${baseName(page.sources.files[file].path)}:${line}:${column}`);
  return [...(at.scopes.length ? [at.scopes.join(', ')] : []), ...places].join('\n');
}

/** Links to the first lines of a place. */
function sourceLinks(place, most) {
  const at = placeOf(place);
  if (!at) return '';
  const lines = [...new Map(at.at.map(([file, line]) => [`${file}:${line}`, [file, line]])).values()];
  return h('span', {tip: placeText(place)},
      lines.slice(0, most).map(([file, line]) => lineLink(file, line)),
      lines.length > most ? ` and ${lines.length - most} more` : null);
}

function sourceFile(index, costs, total) {
  const file = page.sources.files[index];
  const marks = page.sources.marks.filter((mark) => mark.file === index);
  const lines = file.text.split(/\r\n|\n|\r/);
  if (lines.length > 1 && lines[lines.length - 1] === '') lines.pop();
  const withCosts = costs.size > 0;
  return h('div', {class: 'box tall code', tabindex: 0, role: 'region', 'aria-label': file.path},
      lines.map((text, i) => {
        const line = i + 1;
        const cost = costs.get(line);
        const share = cost ? cost[2] / total : 0;
        return h('div', {class: 'l', id: lineId(index, line)},
            h('a', {href: `#${lineId(index, line)}`, 'aria-label': `line ${line}`}, String(line)),
            withCosts ? h('span', {class: 'cost meter', vars: {'--share': `${(100 * share).toFixed(1)}%`},
              tip: cost ? `${exactly(cost[2])} FLOP, ${cost[3]} ops of the first program` : null},
              cost ? h('button', {class: 'link', type: 'button', 'aria-label': `ops of line ${line}`,
                on: {click: () => showOpsOf(index, line)}}, share >= 0.0005 ? `${(100 * share).toFixed(1)}%` : 'ops') : null)
              : null,
            h('span', {}, text || ' '),
            marks.filter((mark) => mark.line === line).map((mark) => h('span', {class: `mark ${mark.kind}`}, mark.text)));
      }));
}

function sourceSection(body) {
  const {files, costs} = page.sources;
  if (!files.length) {
    body.append(h('p', {class: 'note'}, 'The text could not be read.'));
    return;
  }
  const total = totalOf(costs, (row) => row[2]) || 1;
  const marked = new Set([...costs.map((row) => row[0]), ...page.sources.marks.map((mark) => mark.file)]);
  if (costs.length)
    body.append(h('p', {class: 'note'}, 'Beside each line: its share of the FLOPs of the first program. It opens the ops that came of the line.'));
  files.forEach((file, i) => {
    const own = new Map(costs.filter((row) => row[0] === i).map((row) => [row[1], row]));
    const details = h('details', {open: marked.has(i) || i === 0}, h('summary', {}, file.path));
    // Files that were only looked into are written out when they are opened.
    const fillOnce = () => { if (details.children.length === 1) details.append(sourceFile(i, own, total)); };
    if (details.open) fillOnce();
    details.addEventListener('toggle', fillOnce);
    body.append(details);
  });
}

/** After a link to a line: its file is open and the line is seen. */
function showLine(id) {
  const match = /^line-(\d+)-\d+$/.exec(id);
  if (!match) return;
  const details = document.querySelectorAll('#source details')[Number(match[1])];
  if (details && !details.open) {
    details.open = true;
    if (details.children.length === 1) details.dispatchEvent(new Event('toggle'));
  }
  const line = document.getElementById(id);
  if (!line) return;
  for (const other of document.querySelectorAll('.code .at')) other.classList.remove('at');
  line.classList.add('at');
  const box = line.closest('.box');
  box.scrollTop += line.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
  box.scrollIntoView({block: 'nearest'});
}
