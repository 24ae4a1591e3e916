// The lag of a group: records by the left axis, seconds by the right one.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { HistoryPoint } from "../../ui/api";
import * as f from "./format";
import { colour, drawn } from "./theme";
import { Table } from "./parts";

/** The room of the axes, which what is drawn below has, too. */
export const gutter = 64;

/** Distances of marks on the axis of seconds. */
const steps = [0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

/** How many rows the table beside the chart has. */
const most = 60;

interface Props {
  points: HistoryPoint[];
  step: number;
  axis: { from: number; to: number };
}

/** The columns of a chart. Where nothing is known there is a gap. */
function columns(points: HistoryPoint[], step: number): uPlot.AlignedData {
  const at: number[] = [];
  const lag: (number | null)[] = [];
  const seconds: (number | null)[] = [];
  for (const p of points) {
    const t = Date.parse(p.at) / 1000;
    const before = at[at.length - 1];
    if (before !== undefined && t - before > step * 1.6) {
      at.push(before + step);
      lag.push(null);
      seconds.push(null);
    }
    at.push(t);
    lag.push(p.lag);
    seconds.push(p.lagSeconds);
  }
  return [at, lag, seconds];
}

/** The axis moves with the time, so it is asked for whenever the chart is drawn. */
function options(width: number, axis: () => Props["axis"]): uPlot.Options {
  const text = colour("muted");
  const line = { stroke: colour("line"), width: 1 };
  const font = "12px system-ui, sans-serif";
  const top = (_: uPlot, __: number, max: number): [number, number] => [0, Math.max(max * 1.08, 1)];
  const common = { stroke: text, font, ticks: { show: false } };
  return {
    width,
    height: 240,
    padding: [12, 0, 0, 0],
    cursor: { y: false, points: { size: 7 } },
    legend: { live: true },
    scales: { x: { time: true, range: () => [axis().from / 1000, axis().to / 1000] }, lag: { range: top }, seconds: { range: top } },
    series: [
      { label: "time", value: (_, v) => (v ? f.when(new Date(v * 1000)) : "–") },
      { label: "lag", scale: "lag", stroke: colour("accent"), fill: colour("accent-soft"), width: 2, points: { show: false }, value: (_, v) => (v === null ? "–" : f.plural(v, "record")) },
      { label: "behind", scale: "seconds", stroke: colour("second"), width: 1.5, dash: [5, 4], points: { show: false }, value: (_, v) => (v === null ? "–" : f.duration(v)) },
    ],
    axes: [
      { ...common, size: 32, grid: { show: false }, values: (_, ticks) => ticks.map((t) => f.when(new Date(t * 1000)).replace(/:00$/, "")) },
      { ...common, scale: "lag", size: gutter, grid: line, values: (_, ticks) => ticks.map((t) => (Number.isInteger(t) ? f.short(t) : "")) },
      { ...common, scale: "seconds", side: 1, size: gutter, grid: { show: false }, incrs: steps, values: (_, ticks) => ticks.map(f.brief) },
    ],
  };
}

export function Chart({ points, step, axis }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const look = drawn.value;
  const latest = useRef({ points, step, axis });
  latest.current = { points, step, axis };
  useEffect(() => {
    const el = box.current;
    if (!el) return;
    const u = new uPlot(options(el.clientWidth, () => latest.current.axis), columns(latest.current.points, latest.current.step), el);
    plot.current = u;
    const sizes = new ResizeObserver(() => u.setSize({ width: el.clientWidth, height: 240 }));
    sizes.observe(el);
    return () => {
      sizes.disconnect();
      u.destroy();
      plot.current = null;
    };
  }, [look, axis.to - axis.from]);
  useEffect(() => {
    plot.current?.setData(columns(points, step));
  }, [points, step]);
  const last = points[points.length - 1];
  return (
    <>
      <div class="chart" ref={box} role="img" aria-label={last ? `Lag over time; the latest is ${f.plural(last.lag, "record")}, ${f.duration(last.lagSeconds)} behind.` : "Lag over time"} />
      <details class="as-table">
        <summary>As a table</summary>
        <Table label="Lag over time, the latest first">
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col" class="num">Lag</th>
              <th scope="col" class="num">Behind</th>
            </tr>
          </thead>
          <tbody>
            {[...points]
              .reverse()
              .slice(0, most)
              .map((p) => (
                <tr key={p.at}>
                  <td>{f.when(p.at)}</td>
                  <td class="num">{f.count(p.lag)}</td>
                  <td class="num">{f.duration(p.lagSeconds)}</td>
                </tr>
              ))}
          </tbody>
        </Table>
      </details>
    </>
  );
}
