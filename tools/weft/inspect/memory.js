// The arena over time: a rectangle a buffer, from the call that first uses it to the
// last, at its offset; above it what is alive.

const kClassColours = {attention: '#c4500a', product: '#2f7fd0', rows: '#3d9a57', loss: '#9457c4', optimiser: '#b8860b', memory: '#7d848d'};

function classOfKernel(name) {
  return page.kernels.find((kernel) => kernel.name === name)?.class || 'memory';
}

function bufferText(program, buffer) {
  const [first, last, size, offset, type, writer] = buffer;
  const name = (number) => program.kernels[number] ?? 'nothing';
  return `${program.types[type]}\n${exactly(size)} bytes at ${exactly(offset)}\ncalls ${first} to ${last}: ` +
      `written by ${name(writer)}, last used by ${name(program.calls[last])}`;
}

/** Bytes alive at each call. */
function aliveOf(program) {
  const change = new Array(program.calls.length + 1).fill(0);
  for (const [first, last, size] of program.buffers) {
    change[first] += size;
    change[last + 1] -= size;
  }
  let sum = 0;
  return change.slice(0, -1).map((by) => (sum += by));
}

const kMemory = {height: 380, top: 60, gap: 8};

/** The rectangle of a buffer in a picture of this size. */
function boxOf(program, [first, last, size, offset], width, height) {
  const steps = Math.max(program.calls.length, 1);
  const room = (height - kMemory.top - kMemory.gap) / Math.max(program.arena, 1);
  const left = first / steps * width;
  const bottom = height - offset * room;
  return {left, right: Math.max((last + 1) / steps * width, left + 1), top: Math.min(bottom - size * room, bottom - 1), bottom};
}

function drawMemory(program, alive, chosen, context, width, height) {
  context.fillStyle = colour('--bar');
  alive.forEach((size, call) => {
    const tall = size / Math.max(program.arena, 1) * kMemory.top;
    context.fillRect(call / alive.length * width, kMemory.top - tall, Math.max(width / alive.length, 1), tall);
  });
  context.strokeStyle = colour('--bg');
  context.lineWidth = 0.5;
  for (const buffer of program.buffers) {
    const {left, right, top, bottom} = boxOf(program, buffer, width, height);
    context.fillStyle = kClassColours[classOfKernel(program.kernels[buffer[5]])];
    context.fillRect(left, top, right - left, bottom - top);
    if (bottom - top > 3 && right - left > 3) context.strokeRect(left, top, right - left, bottom - top);
  }
  if (chosen < 0) return;
  const {left, right, top, bottom} = boxOf(program, program.buffers[chosen], width, height);
  context.strokeStyle = colour('--fg');
  context.lineWidth = 2.5;
  context.strokeRect(left, top, right - left, bottom - top);
}

function memoryPicture(program) {
  const alive = aliveOf(program);
  const bySize = program.buffers.map((_, i) => i).sort((a, b) => program.buffers[b][2] - program.buffers[a][2]);
  let chosen = -1;
  const {canvas, redraw} = picture(kMemory.height,
      `memory of program ${program.name} over its ${program.calls.length} calls; arrow keys go through the buffers by size`,
      (context, width, height) => drawMemory(program, alive, chosen, context, width, height));
  const choose = (i) => {
    if (i === chosen) return;
    chosen = i;
    redraw();
  };
  canvas.addEventListener('pointermove', (event) => {
    const bounds = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - bounds.left, event.clientY - bounds.top];
    choose(program.buffers.findIndex((buffer) => {
      const {left, right, top, bottom} = boxOf(program, buffer, bounds.width, bounds.height);
      return x >= left && x < right && y >= top && y < bottom;
    }));
    const call = Math.max(0, Math.min(alive.length - 1, Math.floor(x / bounds.width * alive.length)));
    showTip(chosen >= 0 ? bufferText(program, program.buffers[chosen])
      : `call ${call}: ${program.kernels[program.calls[call]]}\n${exactly(alive[call] || 0)} bytes alive`, event.clientX, event.clientY);
  });
  canvas.addEventListener('pointerleave', () => { choose(-1); hideTip(); });
  canvas.addEventListener('keydown', (event) => {
    const by = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (!by || !bySize.length) return;
    event.preventDefault();
    choose(bySize[(bySize.indexOf(chosen) + by + bySize.length) % bySize.length]);
    const bounds = canvas.getBoundingClientRect();
    const {left, bottom} = boxOf(program, program.buffers[chosen], bounds.width, bounds.height);
    showTip(bufferText(program, program.buffers[chosen]), bounds.left + left, bounds.top + bottom);
  });
  return canvas;
}

function programMemory(program) {
  const alive = aliveOf(program);
  const peak = alive.reduce((most, size) => Math.max(most, size), 0);
  const used = [...new Set(program.buffers.map((buffer) => classOfKernel(program.kernels[buffer[5]])))];
  const largest = [...program.buffers].sort((a, b) => b[2] - a[2]);
  return [
    h('p', {class: 'note'}, `${exactly(program.buffers.length)} buffers over ${exactly(program.calls.length)} calls; arena `,
        bytes(program.arena), ', at most ', bytes(peak), ' alive, ',
        bytes(totalOf(program.buffers, (buffer) => buffer[2])), ' without sharing.'),
    memoryPicture(program),
    h('div', {class: 'legend'}, 'written by', used.map((name) => {
      const mark = h('i');
      mark.style.background = kClassColours[name];
      return h('span', {}, mark, name);
    })),
    h('h3', {}, 'Largest buffers'),
    table([
      {name: 'bytes', n: true, key: (b) => b[2], cell: (b) => bytes(b[2])},
      {name: 'type', cell: (b) => h('span', {class: 'mono'}, program.types[b[4]])},
      {name: 'at', n: true, key: (b) => b[3], cell: (b) => bytes(b[3])},
      {name: 'calls', n: true, key: (b) => b[1] - b[0], cell: (b) => `${exactly(b[0])} to ${exactly(b[1])}`},
      {name: 'written by', cell: (b) => h('span', {class: 'mono'}, b[5] < 0 ? '' : kernelLink(program.kernels[b[5]]))},
    ], largest, {label: `largest buffers of ${program.name}`, most: 20}),
  ];
}

function memorySection(body) {
  const {programs, state} = page.memory;
  const roles = new Map();
  for (const [, role, , , size] of state.entries) {
    const sum = roles.get(role) || {count: 0, bytes: 0};
    roles.set(role, {count: sum.count + 1, bytes: sum.bytes + size});
  }
  const holder = h('div');
  const draw = (name) => {
    holder.replaceChildren(...programMemory(programs.find((program) => program.name === name)));
    showExact(holder);
  };
  const order = [...programs].sort((a, b) => b.arena - a.arena).map((program) => program.name);
  if (order.length) {
    draw(order[0]);
    body.append(h('div', {class: 'row'}, choice('program', order, draw)), holder);
  }
  body.append(h('h3', {}, 'State, which outlives programs'),
      h('div', {class: 'cards'}, [...roles].map(([role, sum]) => h('div', {class: 'card'}, h('span', {class: 'k'}, role),
          h('b', {}, bytes(sum.bytes)), h('span', {class: 'k'}, `${exactly(sum.count)} entries`)))),
      table([
        {name: 'entry', key: (e) => e[0], cell: (e) => h('span', {class: 'mono'}, e[0])},
        {name: 'role', key: (e) => e[1], cell: (e) => e[1]},
        {name: 'type', cell: (e) => h('span', {class: 'mono'}, e[2])},
        {name: 'at', n: true, key: (e) => e[3], cell: (e) => bytes(e[3])},
        {name: 'bytes', n: true, key: (e) => e[4], cell: (e) => bytes(e[4])},
      ], state.entries, {label: 'state', most: 20}));
}
