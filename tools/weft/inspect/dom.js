'use strict';
// Elements, numbers, tooltips. Every text from the document becomes a text node or an
// attribute by name: nothing of it is ever parsed as markup.

const page = JSON.parse(document.getElementById('document').textContent);

/** An element: h('td', {class: 'n', tip: 'exact'}, child...). */
function h(tag, options, ...children) {
  const element = document.createElement(tag);
  return fill(element, options, children);
}

/** The same in SVG. */
function s(tag, options, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), options, children);
}

function fill(element, options, children) {
  for (const [key, value] of Object.entries(options || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key === 'on') for (const [event, run] of Object.entries(value)) element.addEventListener(event, run);
    else if (key === 'tip') element.dataset.tip = value;
    else if (key === 'vars') for (const [name, text] of Object.entries(value)) element.style.setProperty(name, text);
    else element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/** 24736 as 24,736; fractions with all their digits. */
function exactly(number) {
  if (typeof number !== 'number') return number === null || number === undefined ? 'none' : String(number);
  return Number.isInteger(number) ? number.toLocaleString('en-US') : String(number);
}

/** 1 head, 2 heads. */
const counted = (number, what, ending = 's') => `${exactly(number)} ${what}${number === 1 ? '' : ending}`;

function scaled(number, base, units) {
  let at = 0;
  let value = Math.abs(number);
  while (value >= base && at + 1 < units.length) {
    value /= base;
    at += 1;
  }
  const text = at === 0 && Number.isInteger(value) ? String(value) : value.toPrecision(value >= 1000 ? 4 : 3);
  return `${number < 0 ? '-' : ''}${text}${units[at] ? ` ${units[at]}` : ''}`;
}

const kBytes = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const bytesText = (number) => scaled(number, 1024, kBytes);
const flopsText = (number) => scaled(number, 1000, ['', 'k', 'M', 'G', 'T', 'P', 'E']);

function shortly(number) {
  if (typeof number !== 'number') return exactly(number);
  if (Number.isInteger(number) && Math.abs(number) < 1e7) return exactly(number);
  const size = Math.abs(number);
  return size !== 0 && (size < 1e-3 || size >= 1e7) ? number.toExponential(3) : String(Number(number.toPrecision(5)));
}

/** A number shown short, its exact form on hover and with the switch at the top. */
function num(number, short, unit) {
  const exact = exactly(number) + (unit ? ` ${unit}` : '');
  return h('span', {class: 'num', 'data-exact': exact, tip: exact === short ? null : exact}, short);
}
const bytes = (number) => num(number, bytesText(number), 'bytes');
const flops = (number) => num(number, flopsText(number), 'FLOP');
const plain = (number) => num(number, shortly(number));

let exactOn = false;
function showExact(root) {
  if (!exactOn && root === document) {
    for (const span of document.querySelectorAll('.num[data-short]')) span.textContent = span.dataset.short;
    return;
  }
  if (!exactOn) return;
  for (const span of root.querySelectorAll('.num')) {
    span.dataset.short ??= span.textContent;
    span.textContent = span.dataset.exact;
  }
}

//===----------------------------------------------------------------------===//
// Tooltips
//===----------------------------------------------------------------------===//

const tip = document.getElementById('tip');

function showTip(text, x, y) {
  tip.textContent = text;
  tip.hidden = !text;
  if (!text) return;
  const box = tip.getBoundingClientRect();
  const left = Math.max(4, Math.min(x + 12, innerWidth - box.width - 4));
  const top = y + 16 + box.height > innerHeight ? y - box.height - 10 : y + 16;
  tip.style.left = `${left}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}
function hideTip() { tip.hidden = true; }

document.addEventListener('pointerover', (event) => {
  const on = event.target.closest('[data-tip]');
  if (on) showTip(on.dataset.tip, event.clientX, event.clientY);
  else if (!event.target.closest('canvas, svg')) hideTip();
});
document.addEventListener('focusin', (event) => {
  const on = event.target.closest('[data-tip]');
  if (!on || !on.matches(':focus-visible')) return;
  const box = on.getBoundingClientRect();
  showTip(on.dataset.tip, box.left, box.bottom - 10);
});
document.addEventListener('focusout', hideTip);
document.addEventListener('keydown', (event) => { if (event.key === 'Escape') hideTip(); });

/** A colour of the style sheet, for a canvas. */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A canvas drawn at the width it has, again when that or the colours change. */
function picture(height, label, draw) {
  const canvas = h('canvas', {tabindex: 0, role: 'img', 'aria-label': label});
  const redraw = () => {
    const width = canvas.clientWidth;
    if (!width) return;
    const sharp = Math.min(devicePixelRatio || 1, 2);
    canvas.width = width * sharp;
    canvas.height = height * sharp;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext('2d');
    context.scale(sharp, sharp);
    draw(context, width, height);
  };
  new ResizeObserver(redraw).observe(canvas);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  return {canvas, redraw};
}
