// A small line of how far a group was behind in the last half hour, a point a minute, in a
// list. The row of the list carries it.
import * as f from "./format";

const width = 96;
const height = 22;
const minutes = 30;

export function Spark({ points }: { points: number[] }) {
  const known = points.filter((p) => p >= 0);
  if (known.length < 2) return <span class="spark" />;
  const top = Math.max(...known);
  const across = (i: number): string => (width - ((points.length - 1 - i) / (minutes - 1)) * width).toFixed(1);
  const down = (p: number): string => (height - 2 - (p / Math.max(top, 1)) * (height - 4)).toFixed(1);
  return (
    <svg class="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`at most ${f.duration(top)} behind in the last half hour`}>
      {pieces(points).map((piece) => {
        const line = piece.map((i) => `${across(i)},${down(points[i] ?? 0)}`);
        const first = across(piece[0] ?? 0);
        const last = across(piece[piece.length - 1] ?? 0);
        return (
          <>
            <path class="area" d={`M${first},${height - 1} L${line.join(" L")} L${last},${height - 1} Z`} />
            <polyline points={line.join(" ")} />
          </>
        );
      })}
    </svg>
  );
}

/** The places of points that follow one another without a gap. */
function pieces(points: number[]): number[][] {
  const out: number[][] = [];
  points.forEach((p, i) => {
    if (p < 0) return;
    const before = out[out.length - 1];
    if (before && before[before.length - 1] === i - 1) before.push(i);
    else out.push([i]);
  });
  return out;
}
