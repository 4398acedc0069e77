/** @param {number} ms */
export function duration(ms) {
  return ms < 1000 ? `${brief(ms)} ms` : `${brief(ms / 1000)} s`;
}

/** @param {number} value */
export function percent(value) {
  return `${Number(value.toFixed(value > 99 ? 2 : 1))} %`;
}

/** @param {number} value three digits, whole above 100 */
export function brief(value) {
  return Math.abs(value) >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}

/** From blue over green to yellow, as light as the ground allows (after viridis). @param {number} index @param {number} count */
export function endpointColor(index, count) {
  const share = count < 2 ? 0.5 : index / (count - 1);
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const stops = isDark ? DARK_STOPS : LIGHT_STOPS;
  const position = share * (stops.length - 1);
  const from = stops[Math.floor(position)] ?? [0, 0, 0];
  const to = stops[Math.ceil(position)] ?? from;
  const mixed = from.map((channel, at) => Math.round(channel + (position % 1) * ((to[at] ?? channel) - channel)));
  return `rgb(${mixed.join(" ")})`;
}

const LIGHT_STOPS = [
  [68, 1, 84],
  [62, 74, 137],
  [38, 130, 142],
  [53, 160, 110],
  [170, 180, 40],
];
const DARK_STOPS = [
  [130, 100, 200],
  [80, 140, 210],
  [60, 180, 185],
  [110, 205, 120],
  [250, 230, 90],
];

/** @param {string} name of a CSS variable */
export function variable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** @param {string} id */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`The page has no element ${id}`);
  return found;
}

/** @param {string} tag @param {string} className @param {string} text */
export function element(tag, className, text) {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}
