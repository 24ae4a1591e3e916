// Who had which partition when.
import type { Rebalance } from "../../ui/api";
import * as f from "./format";
import type { Owner, Ribbon, Span } from "./owners";
import { Badge } from "./pages/group_now";
import { Table } from "./parts";
import { place } from "./timeline";

interface Props {
  /** Of the partitions that are drawn. */
  rows: Ribbon[];
  owners: Map<string, Owner>;
  axis: { from: number; to: number };
  rebalances: Rebalance[];
}

const row = 18;

/** Those who have a letter in turn, together. */
function byLetter(owners: Owner[]): [Owner, ...Owner[]][] {
  const out = new Map<string, [Owner, ...Owner[]]>();
  for (const o of owners) {
    const before = out.get(o.letter);
    if (before) before.push(o);
    else out.set(o.letter, [o]);
  }
  return [...out.values()];
}

export function RibbonView({ rows: shown, all, owners, axis, rebalances }: Props & { all: number }) {
  const seen = new Set(shown.flatMap((r) => r.spans.map((s) => s.owner)));
  const topics = [...new Set(shown.map((r) => r.topic))];
  return (
    <>
      <div class="ribbon">
        {topics.map((topic) => (
          <TopicRows key={topic} topic={topic} rows={shown.filter((r) => r.topic === topic)} owners={owners} axis={axis} rebalances={rebalances} />
        ))}
      </div>
      <p class="legend quiet">
        {byLetter([...owners.values()].filter((o) => seen.has(o.id))).map(([first, ...others]) => (
          <span key={first.letter} title={[first, ...others].map((o) => o.name).join(", ")}>
            <Badge owner={first} /> {others.length > 0 ? `${first.client}, ${f.plural(others.length + 1, "member")} in turn` : first.name}
          </span>
        ))}
        {seen.has(null) && (
          <span>
            <span class="badge none">–</span> no owner
          </span>
        )}
        {seen.has(undefined) && (
          <span>
            <span class="badge unknown">?</span> not known
          </span>
        )}
      </p>
      {all > shown.length && <p class="quiet">The first {shown.length} of {f.plural(all, "partition")}.</p>}
      <AsTable rows={shown} owners={owners} />
    </>
  );
}

function TopicRows({ topic, rows, owners, axis, rebalances }: Props & { topic: string }) {
  return (
    <>
      <p class="topic">{topic}</p>
      <div class="rows" aria-hidden="true">
        {rows.map((r) => (
          <span key={r.partition}>{r.partition}</span>
        ))}
      </div>
      <svg height={rows.length * row} role="img" aria-label={`Owners of the partitions of ${topic} over time; the table below says the same`}>
        {rows.map((r, i) => r.spans.map((s) => <Piece key={`${i}-${s.from}`} span={s} y={i * row} axis={axis} owner={s.owner ? owners.get(s.owner) : undefined} />))}
        {rebalances.map((r) => (
          <line key={r.settled} x1={`${place(Date.parse(r.settled), axis)}%`} x2={`${place(Date.parse(r.settled), axis)}%`} y1="0" y2={rows.length * row} class="cut" />
        ))}
      </svg>
    </>
  );
}

function Piece({ span, y, axis, owner }: { span: Span; y: number; axis: Props["axis"]; owner: Owner | undefined }) {
  const left = place(span.from, axis);
  const width = place(span.to, axis) - left;
  const kind = owner ? `own${owner.colour}` : span.owner === null ? "none" : "unknown";
  return (
    <>
      <rect x={`${left}%`} y={y + 1} width={`${width}%`} height={row - 2} class={kind}>
        <title>{`${owner ? owner.name : span.owner === null ? "no owner" : "not known"}, ${f.when(new Date(span.from))} to ${f.when(new Date(span.to))}`}</title>
      </rect>
      {owner && width > 2.5 && (
        <text x={`${left}%`} dx="5" y={y + row - 5}>
          {owner.letter}
        </text>
      )}
    </>
  );
}

function AsTable({ rows, owners }: { rows: Ribbon[]; owners: Map<string, Owner> }) {
  return (
    <details class="as-table">
      <summary>As a table</summary>
      <Table label="Owners of partitions over time">
        <thead>
          <tr>
            <th scope="col">Partition</th>
            <th scope="col">Owners, the latest first</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((r) => (
            <tr key={r.topic + r.partition}>
              <th scope="row">
                {r.topic} {r.partition}
              </th>
              <td class="wide">
                {r.spans.map((s) => `${s.owner ? (owners.get(s.owner)?.name ?? s.owner) : s.owner === null ? "no owner" : "not known"} since ${f.when(new Date(s.from))}`).join("; ")}
              </td>
            </tr>
          ))}
        </tbody>
      </Table>
    </details>
  );
}
