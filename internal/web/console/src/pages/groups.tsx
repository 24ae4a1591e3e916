import type { GroupRow, GroupsQuery } from "../../../ui/api";
import { isDeleted } from "../act";
import { address, useAsk } from "../ask";
import * as f from "../format";
import { causeText } from "../owners";
import { Check, Chip, Choice, Empty, Filter, Hitch, Incomplete, Lag, Num, Pages, SortHead, State, Table, Title, useTitle, When } from "../parts";
import { groupPath, param } from "../route";
import { Spark } from "../spark";

const states = ["Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Dead"];

export function Groups() {
  useTitle("Groups");
  const sort = param("sort") || "-lag";
  const query: GroupsQuery = { q: param("q"), state: list("state"), type: list("type"), finding: list("finding"), topic: param("topic"), sort, after: param("after") };
  const { data, problem, waiting } = useAsk("groups", {}, query);
  const groups = data?.groups.filter((g) => !isDeleted("group", g.name, data.at)) ?? [];
  return (
    <>
      <Title>Groups</Title>
      <div class="filters" role="search">
        <Filter label="Filter by name" />
        <Choice label="State" name="state" options={[["", "Any state"], ...states.map((s): [string, string] => [s, f.spaced(s)])]} />
        <Choice label="Type" name="type" options={[["", "Any type"], ["classic", "Classic"], ["consumer", "Consumer (KIP-848)"]]} />
        <Check name="finding" value="any">
          Needs attention
        </Check>
        <Chip name="topic" label="Reads" />
      </div>
      <Hitch of={problem} data={data} />
      {data && (
        <>
          <Incomplete of={data.incomplete} />
          {groups.length === 0 ? <Nothing total={data.total} at={data.at} all={data.incomplete.length === 0} /> : <Rows rows={groups} sort={sort} stale={waiting} />}
          {groups.length > 0 && <Pages next={data.next} shown={groups.length} matched={data.matched} noun="group" csv={address("groups", {}, { ...query, after: "", limit: 1000 }, "csv")} />}
        </>
      )}
    </>
  );
}

const list = (name: string): string[] => param(name).split(",").filter(Boolean);

function Nothing({ total, at, all }: { total: number | null; at: string | null; all: boolean }) {
  if (at === null) return <Empty title="Collecting the first snapshot…">There is one every ten seconds.</Empty>;
  if (total !== 0) return <Empty title="No matching groups">Remove a filter to see more.</Empty>;
  if (!all) return <Empty title="No groups known yet">Not all brokers have answered.</Empty>;
  return (
    <Empty title="No groups yet" commands={["muster consume orders --group billing"]}>
      A group exists as soon as a consumer joins it or commits an offset:
    </Empty>
  );
}

function Rows({ rows, sort, stale }: { rows: GroupRow[]; sort: string; stale: boolean }) {
  return (
    <Table label="Groups" stale={stale}>
      <thead>
        <tr>
          <SortHead by="name" now={sort}>Group</SortHead>
          <SortHead by="lag" now={sort} num down title="records that are to be read">Lag</SortHead>
          <SortHead by="lagSeconds" now={sort} num down title="the age of the oldest unread record">Behind</SortHead>
          <SortHead by="catchUp" now={sort} title="how long it takes to catch up at the present pace">Catch-up</SortHead>
          <th scope="col">Last 30m</th>
          <SortHead by="state" now={sort}>State</SortHead>
          <SortHead by="members" now={sort} num down>Members</SortHead>
          <SortHead by="rebalanced" now={sort} down>Last rebalance</SortHead>
        </tr>
      </thead>
      <tbody>
        {rows.map((g) => (
          <tr key={g.name}>
            <td class="wide">
              <a class="name" data-row href={groupPath(g.name)}>
                {g.name}
              </a>
              {g.findings.length > 0 && (
                <span class="says warn">
                  <span aria-hidden="true">▲ </span>
                  {g.findings.map(f.words).join(", ")}
                </span>
              )}
            </td>
            <Num quiet={g.lag === 0}>
              <Lag records={g.lag} unknown={g.lagUnknown} about={g.lagApproximate} />
            </Num>
            <Num quiet={g.lagSeconds === 0}>{g.lagSeconds > 0 ? f.duration(g.lagSeconds) : "–"}</Num>
            <td class={g.pace === "caught-up" ? "quiet" : undefined}>{g.paceText}</td>
            <td>
              <Spark points={g.recentLagSeconds} />
            </td>
            <td>
              <State of={g.state} />
            </td>
            <Num quiet={g.members === 0}>{f.count(g.members)}</Num>
            <td class="cause">
              {g.rebalanced ? <When time={g.rebalanced} /> : <span class="quiet">–</span>}
              {g.cause && <span class="says">{causeText(g.cause)}</span>}
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
