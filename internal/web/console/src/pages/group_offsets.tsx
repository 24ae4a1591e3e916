// Where a group is in each partition.
import type { GroupDetail, GroupPartition } from "../../../ui/api";
import * as f from "../format";
import { ownersOf } from "../owners";
import { Check, Empty, Num, SortHead, Table } from "../parts";
import { param, withQuery } from "../route";
import { Badge, Hidden } from "./group_now";

const orders: Record<string, (p: GroupPartition) => number> = {
  name: () => 0,
  lag: (p) => p.lag ?? -1,
  behind: (p) => p.lagSeconds ?? -1,
  margin: (p) => p.marginSeconds ?? Infinity,
};

/** How many rows are shown before someone wants all. */
const few = 500;

const verdicts: Record<string, string> = {
  "no-owner": "no owner",
  "not-fetching": "its owner does not fetch",
  "not-committing": "its owner fetches and does not commit",
  stopped: "no one commits any more",
  stalled: "the same offset is committed again and again",
  rewound: "the group went back",
};

export function Offsets({ group }: { group: GroupDetail }) {
  const sort = param("sort") || "name";
  const q = param("q").toLowerCase();
  const fits = group.partitions.filter((p) => (param("lagging") !== "true" || (p.lag ?? 0) > 0) && p.topic.toLowerCase().includes(q));
  const by = orders[sort.replace("-", "")] ?? (() => 0);
  const sign = sort.startsWith("-") ? -1 : 1;
  const sorted = [...fits].sort((a, b) => sign * (by(a) - by(b) || (a.topic < b.topic ? -1 : a.topic > b.topic ? 1 : a.partition - b.partition)));
  const shown = param("all") === "true" ? sorted : sorted.slice(0, few);
  const owners = ownersOf(group, []);
  if (group.partitions.length === 0 && group.hiddenTopics > 0) {
    return (
      <>
        <Hidden group={group} />
        <p class="quiet">The group has committed nothing that you may see.</p>
      </>
    );
  }
  if (group.partitions.length === 0) {
    return (
      <Empty title="No offset is committed" commands={[f.command("groups describe", group.name)]}>
        The group has not committed anything yet, and reads no topic.
      </Empty>
    );
  }
  return (
    <>
      <div class="filters">
        <Check name="lagging" value="true">
          Only with lag
        </Check>
      </div>
      <Hidden group={group} />
      <Table label="Offsets">
        <thead>
          <tr>
            <SortHead by="name" now={sort}>Partition</SortHead>
            <th scope="col" class="num">Log start</th>
            <th scope="col" class="num">Committed</th>
            <th scope="col" class="num">Log end</th>
            <SortHead by="lag" now={sort} num down>Lag</SortHead>
            <SortHead by="behind" now={sort} num down title="the age of the first unread record">Behind</SortHead>
            <th scope="col">Owner</th>
            <SortHead by="margin" now={sort} num title="when retention deletes the first unread record, at the earliest">Retention</SortHead>
          </tr>
        </thead>
        <tbody>
          {shown.map((p) => {
            const owner = p.owner ? owners.get(p.owner) : undefined;
            return (
              <tr key={p.topic + p.partition}>
                <th scope="row" class="wide">
                  <span class="name">
                    {p.topic} <span class="quiet">{p.partition}</span>
                  </span>
                  {p.verdict && (
                    <span class="says warn">
                      <span aria-hidden="true">▲ </span>
                      {verdicts[p.verdict] ?? f.words(p.verdict)}
                    </span>
                  )}
                </th>
                <Num quiet>{f.offset(p.logStartOffset)}</Num>
                <Num>{f.offset(p.committed)}</Num>
                <Num>{f.offset(p.logEndOffset)}</Num>
                <Num quiet={p.lag === 0}>{p.lag === null ? "–" : (p.lagAtLeast ? "≥ " : "") + f.count(p.lag)}</Num>
                <Num quiet={!p.lagSeconds}>{p.lagSeconds ? f.duration(p.lagSeconds) : "–"}</Num>
                <td>
                  {owner ? (
                    <>
                      <Badge owner={owner} /> {owner.name}
                    </>
                  ) : (
                    <span class="quiet">none</span>
                  )}
                </td>
                <Num quiet={!p.overtaken}>
                  {p.overtaken && p.overtakenInSeconds !== null ? <span class="bad">▲ overtakes in {f.duration(p.overtakenInSeconds)}</span> : p.marginSeconds === null ? "–" : f.duration(Math.max(p.marginSeconds, 0))}
                </Num>
              </tr>
            );
          })}
        </tbody>
      </Table>
      {shown.length < sorted.length && (
        <p>
          <a href={withQuery({ all: "true" })}>Show all {f.plural(sorted.length, "partition")}</a>
        </p>
      )}
    </>
  );
}
