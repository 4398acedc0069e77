import { element, variable } from "./show.js";

/** @import { Curve, Plot } from "./plots.js" */

/** @param {Plot} plot @param {HTMLElement} place @returns {uPlot.Options} */
export function optionsOf(plot, place) {
  /** @type {uPlot.Axis} */
  const axis = {
    stroke: variable("--faint"),
    font: `11px ${getComputedStyle(document.body).fontFamily}`,
    grid: { stroke: variable("--grid"), width: 1 },
    ticks: { show: false },
  };
  return {
    width: place.clientWidth,
    height: place.clientHeight,
    legend: { show: false },
    padding: [16, 14, 0, 0],
    focus: { alpha: 0.2 },
    cursor: {
      focus: { prox: 24 },
      y: false,
      points: { size: 6 },
      drag: { x: true, y: false },
      ...(plot.together === undefined ? {} : { sync: { key: plot.together } }),
    },
    scales: {
      x: { time: false, distr: plot.isLogX ? 3 : 1, range: plot.hasPoints ? padded : exact },
      y: plot.isLogY ? { distr: 3 } : { range: plot.rangeY ?? fromZero },
    },
    axes: [
      {
        ...axis,
        size: 28,
        space: 56,
        ...(plot.hasPoints && plot.at.length <= MARKED_VALUES ? { splits: [...plot.at] } : {}),
        ...(plot.isLogX ? { splits: roundSplits, filter: allSplits } : {}),
        values: (_, splits) => splits.map((value) => (value === null ? "" : plot.formatX(value))),
      },
      {
        ...axis,
        size: 58,
        ...(plot.isLogY ? { splits: roundSplits, filter: allSplits } : {}),
        values: (_, splits) => splits.map((value) => (value === null ? "" : plot.formatY(value))),
      },
    ],
    series: [
      {},
      ...plot.curves.map((curve) => ({
        label: curve.name,
        stroke: curve.color,
        width: curve.width,
        dash: curve.dash,
        spanGaps: true,
        points: { show: plot.hasPoints === true, size: 6, fill: curve.color },
        show: curve.isShown,
      })),
    ],
    plugins: [tip(plot)],
    hooks: { draw: [(chart) => drawLimits(chart, plot)] },
  };
}

/** Up to so many values of a sweep each get their own mark on the axis. */
const MARKED_VALUES = 12;

/**
 * 1, 2 and 5 times powers of ten on a logarithmic axis; fewer where those would crowd it.
 * @param {uPlot} _
 * @param {number} __
 * @param {number} min
 * @param {number} max
 * @returns {number[]}
 */
function roundSplits(_, __, min, max) {
  const decades = Math.log10(max / min);
  const steps = decades > 3 ? [1] : decades > 2 ? [1, 3] : [1, 2, 5];
  const first = Math.floor(Math.log10(min));
  const splits = Array.from({ length: Math.ceil(decades) + 2 }, (_, index) =>
    steps.map((step) => Number((step * 10 ** (first + index)).toPrecision(1))),
  ).flat();
  const inside = splits.filter((split) => split >= min && split <= max);
  return inside.length > 0 ? inside : [min, max];
}

/** @param {uPlot} _ @param {number[]} splits @returns {number[]} */
function allSplits(_, splits) {
  return splits;
}

/** @type {uPlot.Range.Function} */
function exact(_, min, max) {
  return [min, max];
}

/** @type {uPlot.Range.Function} */
function padded(_, min, max) {
  const margin = (max - min) * 0.03 || 0.5;
  return [min - margin, max + margin];
}

/** @type {uPlot.Range.Function} */
function fromZero(_, __, max) {
  return [0, max > 0 ? max * 1.06 : 1];
}

/** Limits of the SLO and of capacity as dashed lines. @param {uPlot} chart @param {Plot} plot */
function drawLimits(chart, { limitX, limitY }) {
  const { ctx, bbox } = chart;
  const right = bbox.left + bbox.width;
  const bottom = bbox.top + bbox.height;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = variable("--faint");
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.font = `${11 * devicePixelRatio}px ${getComputedStyle(document.body).fontFamily}`;
  ctx.beginPath();
  const x = limitX === undefined ? Number.NaN : chart.valToPos(limitX, "x", true);
  if (x >= bbox.left && x <= right) {
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bottom);
    ctx.textAlign = "center";
    ctx.fillText("SLO", x, bbox.top - 4 * devicePixelRatio);
  }
  const y = limitY === undefined ? Number.NaN : chart.valToPos(limitY, "y", true);
  if (y >= bbox.top && y <= bottom) {
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(right, y);
  }
  ctx.stroke();
  ctx.restore();
}

/** Most curves that a tip lists. */
const TIP_CURVES = 12;

/** Values under the pointer, the largest first. @param {Plot} plot @returns {uPlot.Plugin} */
function tip(plot) {
  const box = element("div", "tip", "");
  box.hidden = true;
  let isOver = false;
  /** Series nearest to the pointer; null: none is near. @type {number | null} */
  let near = null;
  /** @param {uPlot} chart */
  const fill = (chart) => {
    const { idx, left = -1, top = -1 } = chart.cursor;
    box.hidden = !isOver || idx === null || idx === undefined || left < 0;
    if (box.hidden || idx === null || idx === undefined) return;
    const rows = plot.curves
      .map((curve, index) => ({ curve, value: curve.values[idx] ?? null, series: index + 1 }))
      .filter(({ value, series }) => value !== null && chart.series[series]?.show)
      .sort((a, b) => (b.value ?? 0) - (a.value ?? 0));
    const listed = rows.filter(({ series }, index) => index < TIP_CURVES || series === near);
    box.replaceChildren(
      element("p", "", plot.formatX(plot.at[idx] ?? 0)),
      ...listed.map(({ curve, value, series }) => tipRow(curve, plot.formatY(value ?? 0), series === near)),
      ...(listed.length < rows.length ? [element("p", "", `and ${rows.length - listed.length} more`)] : []),
    );
    const isRight = left > chart.over.clientWidth / 2;
    box.style.left = isRight ? "" : `${left + 14}px`;
    box.style.right = isRight ? `${chart.over.clientWidth - left + 14}px` : "";
    box.style.top = `${Math.max(0, Math.min(top - 20, chart.over.clientHeight - box.offsetHeight))}px`;
  };
  return {
    hooks: {
      init: (chart) => {
        chart.over.append(box);
        chart.over.addEventListener("mouseenter", () => {
          isOver = true;
        });
        chart.over.addEventListener("mouseleave", () => {
          isOver = false;
          box.hidden = true;
        });
      },
      setCursor: fill,
      setSeries: (chart, series, changed) => {
        if (!("focus" in changed)) return;
        near = series;
        fill(chart);
      },
    },
  };
}

/** @param {Curve} curve @param {string} text @param {boolean} isNear @returns {HTMLElement} */
function tipRow(curve, text, isNear) {
  const row = element("div", isNear ? "near" : "", "");
  const color = element("i", "", "");
  color.style.background = curve.color;
  row.append(color, element("span", "", curve.name), element("b", "", text));
  return row;
}
