// The rebalances of a group: a bar for each, by phase, and a button with the mark of its
// cause, which tells why.
import type { Explanation, Rebalance } from "../../ui/api";
import * as f from "./format";
import { causeMark, causesOf, causeText } from "./owners";
import { setQuery } from "./route";

interface Props {
  why: Explanation;
  axis: { from: number; to: number };
  picked: Rebalance | undefined;
}

/** Where a time is, in percent of the axis. */
export function place(time: number, axis: Props["axis"]): number {
  return Math.min(Math.max(((time - axis.from) / (axis.to - axis.from)) * 100, 0), 100);
}

function Bar({ rebalance, axis }: { rebalance: Rebalance; axis: Props["axis"] }) {
  const start = Date.parse(rebalance.started);
  const joined = start + rebalance.joinSeconds * 1000;
  const left = place(start, axis);
  const middle = place(joined, axis);
  const right = place(Date.parse(rebalance.settled), axis);
  return (
    <>
      <span class="bar join" style={{ left: `${left}%`, width: `${middle - left}%` }} />
      <span class="bar sync" style={{ left: `${middle}%`, width: `${right - middle}%` }} />
    </>
  );
}

/** How near marks may be, in percent of the axis: nearer ones share a button, or no one could press them. */
const near = 3;

/** Puts rebalances, the latest first, together with those that are near. */
function clusters(rebalances: Rebalance[], axis: Props["axis"]): Rebalance[][] {
  const out: Rebalance[][] = [];
  for (const r of rebalances) {
    const last = out[out.length - 1];
    const first = last?.[0];
    if (last && first && place(Date.parse(first.started), axis) - place(Date.parse(r.started), axis) < near) last.push(r);
    else out.push([r]);
  }
  return out;
}

const brief = (r: Rebalance): string => `${f.when(r.started)}: ${causesOf(r).map(causeText).join(", ") || "rebalance"}, took ${f.duration(r.tookSeconds)}`;

/** A button for rebalances that are near one another. Pressed again, it goes on to the one before. */
function Marker({ of, axis, picked }: { of: Rebalance[]; axis: Props["axis"]; picked: Rebalance | undefined }) {
  const first = of[0];
  if (!first) return null;
  const at = picked ? of.indexOf(picked) : -1;
  const next = of[at + 1];
  const says = of.length === 1 ? brief(first) : `${of.length} rebalances, the latest at ${brief(first)}`;
  return (
    <button
      type="button"
      class="marker"
      style={{ left: `${place(Date.parse(first.started), axis)}%` }}
      aria-label={says}
      aria-pressed={at >= 0}
      title={says}
      onClick={() => setQuery({ rebalance: next ? next.started : "" }, true)}
    >
      {of.length === 1 ? causeMark(causesOf(first)[0]) : of.length}
    </button>
  );
}

export function Timeline({ why, axis, picked }: Props) {
  const shown = why.rebalances.filter((r) => Date.parse(r.settled) >= axis.from);
  const causes = [...new Set(shown.flatMap(causesOf))];
  const began = why.underWay && Date.parse(why.underWay.started);
  return (
    <>
      <div class="timeline">
        <div class="lane">
          {shown.map((r) => (
            <Bar key={r.started} rebalance={r} axis={axis} />
          ))}
          {began !== null && <span class="bar open" style={{ left: `${place(began, axis)}%`, width: `${100 - place(began, axis)}%` }} />}
          {clusters(shown, axis).map((c) => (
            <Marker key={c[0]?.started} of={c} axis={axis} picked={picked} />
          ))}
        </div>
        <div class="scale" aria-hidden="true">
          <span>{f.when(new Date(axis.from))}</span>
          <span>now</span>
        </div>
      </div>
      <p class="legend quiet">
        {causes.map((c) => (
          <span key={c}>
            <span class="glyph">{causeMark(c)}</span> {causeText(c)}
          </span>
        ))}
        <span>
          <span class="swatch join" /> members join
        </span>
        <span>
          <span class="swatch sync" /> assignment is handed out
        </span>
        {why.underWay && (
          <span>
            <span class="swatch open" /> under way
          </span>
        )}
        {!picked && <span>Press a mark to read why.</span>}
      </p>
    </>
  );
}
