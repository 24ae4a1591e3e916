// A group over time: lag, rebalances and who had which partition, on one axis.
import type { Event, Explanation, GroupDetail, Rebalance } from "../../../ui/api";
import { useAsk } from "../ask";
import { Chart } from "../chart";
import * as f from "../format";
import { causesOf, causeMark, causeText, ownersOf, ribbons } from "../owners";
import { Empty, Hitch, Incomplete, Section, Table, Waiting } from "../parts";
import { RibbonView } from "../ribbon";
import { param, withQuery } from "../route";
import { Timeline } from "../timeline";

const ranges: [id: string, text: string, resolution: string, seconds: number][] = [
  ["30m", "30 minutes", "10s", 1800],
  ["6h", "6 hours", "2m", 21600],
  ["48h", "2 days", "16m", 172800],
];

export interface Axis {
  from: number;
  to: number;
}

export function Time({ name, group }: { name: string; group: GroupDetail | undefined }) {
  const [id, , resolution, seconds] = ranges.find(([r]) => r === param("range")) ?? ranges[0]!;
  const history = useAsk("groupHistory", { group: name }, { resolution }, 10);
  const why = useAsk("groupExplain", { group: name }, { since: id, limit: 300 }, 10);
  const to = Date.now();
  const axis = { from: to - seconds * 1000, to };
  const points = history.data?.points ?? [];
  return (
    <>
      <nav class="ranges" aria-label="How far back">
        {ranges.map(([r, text]) => (
          <a key={r} href={withQuery({ range: r === "30m" ? "" : r })} aria-current={r === id ? "true" : undefined}>
            {text}
          </a>
        ))}
      </nav>
      <Section title="Lag" note="records to be read, and the age of the oldest">
        {history.problem && history.problem.status !== 404 && <Hitch of={history.problem} data={history.data} />}
        {!history.data && !history.problem ? <Waiting /> : !history.data && history.problem?.status !== 404 ? null : history.data?.hiddenTopics ? <p class="quiet">It adds up all topics of the group, and you may not see {f.plural(history.data.hiddenTopics, "topic")} of them.</p> : points.length < 2 ? <p class="quiet">No data for this time: there is a snapshot every ten seconds, and a group's history begins when its lag changes.</p> : <Chart points={points} step={history.data?.stepSeconds ?? 10} axis={axis} />}
      </Section>
      <Hitch of={why.problem} data={why.data} />
      {why.data && <Past why={why.data} group={group} axis={axis} />}
    </>
  );
}

/** How many there were, and how many of them are told. */
function told(shown: number, all: number, noun: string, partly: boolean): string {
  const were = (partly ? "at least " : "") + f.plural(all, noun);
  return shown < all ? `the latest ${f.count(shown)} of ${were}` : were;
}

function Past({ why, group, axis }: { why: Explanation; group: GroupDetail | undefined; axis: Axis }) {
  const picked = why.rebalances.find((r) => r.started === param("rebalance"));
  const owners = group && ownersOf(group, why.rebalances);
  const complete = !why.partly && why.incomplete.length === 0 && why.rebalances.length >= why.rebalanceCount;
  return (
    <>
      <Section title="Rebalances" note={told(why.rebalances.length, why.rebalanceCount, "rebalance", why.partly) + " in this time"}>
        <Incomplete of={why.incomplete} />
        {!why.journal && (
          <Empty title="There is no journal yet" commands={[`muster consume orders --group ${f.quoted(why.name)}`]}>
            It begins with the first rebalance of any group.
          </Empty>
        )}
        {(why.rebalances.length > 0 || why.underWay) && <Timeline why={why} axis={axis} picked={picked} />}
        {picked && <Told rebalance={picked} all={why.rebalances} />}
        {why.quietRestarts && <p>{why.quietRestarts}</p>}
        {why.rebalances.length > 0 && <List rebalances={why.rebalances} picked={picked} />}
      </Section>
      {group && owners && group.partitions.length > 0 && (
        <Section title="Owners" note="a row for each partition, coloured and lettered by the client whose member had it">
          <RibbonView rows={ribbons(group, why.rebalances, complete, axis.from, axis.to)} all={group.partitions.length} owners={owners} axis={axis} rebalances={why.rebalances} />
        </Section>
      )}
      {why.events.length > 0 && (
        <Section title="What else happened" note={why.partly || why.events.length < why.eventCount ? told(why.events.length, why.eventCount, "event", why.partly) : undefined}>
          <Events of={why.events} />
        </Section>
      )}
    </>
  );
}

function Told({ rebalance, all }: { rebalance: Rebalance; all: Rebalance[] }) {
  const at = all.indexOf(rebalance);
  const earlier = all[at + 1];
  const later = all[at - 1];
  return (
    <div class="finding told" role="status">
      <h3>
        Rebalance {rebalance.generation}, {f.when(rebalance.started)}
      </h3>
      {rebalance.text.map((t) => (
        <p key={t}>{t}</p>
      ))}
      <p class="steps">
        {earlier && <a href={withQuery({ rebalance: earlier.started })}>Earlier</a>}
        {later && <a href={withQuery({ rebalance: later.started })}>Later</a>}
        <a href={withQuery({ rebalance: "" })}>Close</a>
      </p>
    </div>
  );
}

function List({ rebalances, picked }: { rebalances: Rebalance[]; picked: Rebalance | undefined }) {
  return (
    <details class="as-table">
      <summary>As a table</summary>
      <Table label="Rebalances, the latest first">
        <thead>
          <tr>
            <th scope="col">Began</th>
            <th scope="col">Why</th>
            <th scope="col" class="num">Took</th>
            <th scope="col" class="num">Members</th>
            <th scope="col" class="num">Moved</th>
          </tr>
        </thead>
        <tbody>
          {rebalances.map((r) => (
            <tr key={r.started} aria-selected={r === picked ? true : undefined}>
              <td>
                <a data-row href={withQuery({ rebalance: r.started })}>
                  {f.when(r.started)}
                </a>
              </td>
              <td class="wide">
                {causesOf(r).map((c) => (
                  <span key={c}>
                    <span aria-hidden="true">{causeMark(c)} </span>
                    {causeText(c)}{" "}
                  </span>
                ))}
              </td>
              <td class="num">{f.duration(r.tookSeconds)}</td>
              <td class="num">{r.membersBefore === r.membersAfter ? r.membersAfter : `${r.membersBefore} → ${r.membersAfter}`}</td>
              <td class="num">
                {f.count(r.partitionsMoved)} of {f.count(r.partitions)}
              </td>
            </tr>
          ))}
        </tbody>
      </Table>
    </details>
  );
}

function Events({ of }: { of: Event[] }) {
  return (
    <Table label="What else happened, the latest first">
      <thead>
        <tr>
          <th scope="col">Time</th>
          <th scope="col">What</th>
        </tr>
      </thead>
      <tbody>
        {of.map((e) => (
          <tr key={e.time + e.kind}>
            <td class="time">{f.when(e.time)}</td>
            <td class="wide">{e.text}</td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
