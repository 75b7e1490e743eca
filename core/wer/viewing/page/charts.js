// Small drawings in SVG: intervals, bars, curves. Every one has its figures as text beside it or in its title.

import { figure, svg } from "./text.js";

export function interval(low, mean, high, [from, to] = [0, 1]) {
  const x = (value) => (4 + (192 * (value - from)) / (to - from)).toFixed(1);
  const unsure = low === null || high === null;
  return svg(
    "svg",
    { viewBox: "0 0 200 18", class: "interval", "aria-hidden": "true" },
    [0, 0.25, 0.5, 0.75, 1].map((at) => svg("line", { x1: 4 + 192 * at, x2: 4 + 192 * at, y1: 2, y2: 16, class: from < 0 && at === 0.5 ? "tick zero" : "tick" })),
    unsure ? null : svg("line", { x1: x(low), x2: x(high), y1: 9, y2: 9, class: "whisker" }),
    mean === null ? null : svg("circle", { cx: x(mean), cy: 9, r: 4, class: "dot" }),
  );
}

export function scale([from, to], words) {
  const middle = (from + to) / 2;
  return svg(
    "svg",
    { viewBox: "0 0 200 16", class: "interval scale", "aria-hidden": "true" },
    [[from, 4, "start"], [middle, 100, "middle"], [to, 196, "end"]].map(([value, x, anchor]) => svg("text", { x, y: 12, "text-anchor": anchor }, words(value))),
  );
}

export function bar(share) {
  return svg(
    "svg",
    { viewBox: "0 0 200 10", class: "bar", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { x: 0, y: 0, width: 200, height: 10, class: "ground" }),
    svg("rect", { x: 0, y: 0, width: (200 * share).toFixed(1), height: 10, class: "level" }),
  );
}

const WIDE = 720;
const HIGH = 230;
const LEFT = 46;
const BELOW = 34;

export function lines(series) {
  const values = series.flatMap((each) => each.points.map((point) => point.value)).filter((value) => value !== null);
  const [low, high] = bounds(values);
  const longest = Math.max(1, ...series.map((each) => each.points.length - 1));
  const x = (at) => LEFT + ((WIDE - LEFT - 12) * at) / longest;
  const y = (value) => 10 + (HIGH - 10 - BELOW) * (1 - (value - low) / (high - low));
  const grid = [0, 0.25, 0.5, 0.75, 1].map((share) => low + share * (high - low));
  return svg(
    "svg",
    { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "curve", role: "img", "aria-label": series.map((each) => each.title).join(", ") },
    grid.map((value) => [
      svg("line", { x1: LEFT, x2: WIDE - 12, y1: y(value), y2: y(value), class: "tick" }),
      svg("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, tick(value, high - low)),
    ]),
    phases(series[0].points).map(({ stage, from }) => [
      svg("line", { x1: x(from), x2: x(from), y1: 10, y2: HIGH - BELOW + 5, class: "tick" }),
      svg("text", { x: x(from) + 3, y: HIGH - BELOW + 18 }, stage),
    ]),
    series.map((each, at) => one(each, at, x, y)),
  );
}

function one(series, at, x, y) {
  const known = series.points.map((point, place) => [place, point]).filter(([, point]) => point.value !== null);
  const path = known.map(([place, point], first) => `${first ? "L" : "M"}${x(place).toFixed(1)} ${y(point.value).toFixed(1)}`);
  return svg(
    "g",
    { class: `series s${at}` },
    svg("path", { d: path.join(""), fill: "none" }),
    known.length > 80
      ? null
      : known.map(([place, point]) =>
          svg("circle", { cx: x(place), cy: y(point.value), r: 3.5 }, svg("title", {}, `${series.title}: ${figure(point.value, 3)} (${point.stage}, step ${point.step})`)),
        ),
  );
}

function phases(points) {
  const found = [];
  points.forEach((point, from) => {
    if (!found.length || found[found.length - 1].stage !== point.stage) found.push({ stage: point.stage, from });
  });
  const every = Math.ceil(found.length / 8);
  return found.filter((_, at) => at % every === 0);
}

function bounds(values) {
  if (!values.length) return [0, 1];
  const low = Math.min(0, ...values);
  const high = Math.max(...values);
  const step = 10 ** Math.floor(Math.log10(Math.max(high - low, 1e-9)));
  const roof = Math.ceil(high / step) * step;
  return [low < 0 ? Math.floor(low / step) * step : 0, roof > low ? roof : low + 1];
}

function tick(value, range) {
  if (range >= 1000) return `${Math.round(value / 100) / 10}k`;
  return range >= 10 ? value.toFixed(0) : range >= 1 ? value.toFixed(2) : value.toFixed(3);
}
