import type { TopicsQuery } from "../../../ui/api";
import { isDeleted } from "../act";
import { address, useAsk } from "../ask";
import * as f from "../format";
import { Check, Empty, Filter, Hitch, Incomplete, Num, Pages, SortHead, Table, Title, useTitle } from "../parts";
import { Acts } from "../dialog";
import { param, topicPath } from "../route";
import { CreateTopic } from "./act_topic";

export function Topics() {
  useTitle("Topics");
  const sort = param("sort") || "name";
  const query: TopicsQuery = { q: param("q"), internal: param("internal") === "true", sort, after: param("after") };
  const { data, problem, waiting } = useAsk("topics", {}, query);
  const topics = data?.topics.filter((t) => !isDeleted("topic", t.name, data.at)) ?? [];
  return (
    <>
      <Title>Topics</Title>
      <Acts>
        <CreateTopic />
      </Acts>
      <div class="filters" role="search">
        <Filter label="Filter by name" />
        <Check name="internal" value="true">
          Show internal topics
        </Check>
      </div>
      <Hitch of={problem} data={data} />
      {data && <Incomplete of={data.incomplete} />}
      {data && topics.length === 0 && <Nothing filtered={param("q") !== ""} at={data.at} />}
      {data && topics.length > 0 && (
        <>
          <Table label="Topics" stale={waiting}>
            <thead>
              <tr>
                <SortHead by="name" now={sort}>Topic</SortHead>
                <SortHead by="partitions" now={sort} num down>Partitions</SortHead>
                <SortHead by="bytes" now={sort} num down>Size</SortHead>
                <SortHead by="groups" now={sort} num down>Groups</SortHead>
              </tr>
            </thead>
            <tbody>
              {topics.map((t) => (
                <tr key={t.id}>
                  <td class="wide">
                    <a class="name" data-row href={topicPath(t.name)}>
                      {t.name}
                    </a>
                    {t.internal && <span class="says">internal</span>}
                    {t.leaderless > 0 && (
                      <span class="says bad">
                        <span aria-hidden="true">▲ </span>
                        {f.plural(t.leaderless, "partition")} without a leader
                      </span>
                    )}
                  </td>
                  <Num>{f.count(t.partitions)}</Num>
                  <Num quiet={t.bytes === 0}>{f.bytes(t.bytes)}</Num>
                  <Num quiet={t.groups === 0}>{t.groups > 0 ? <a href={`/groups?topic=${encodeURIComponent(t.name)}`}>{f.count(t.groups)}</a> : "0"}</Num>
                </tr>
              ))}
            </tbody>
          </Table>
          <Pages next={data.next} shown={topics.length} matched={data.matched} noun="topic" csv={address("topics", {}, { ...query, after: "", limit: 1000 }, "csv")} />
        </>
      )}
    </>
  );
}

function Nothing({ filtered, at }: { filtered: boolean; at: string | null }) {
  if (at === null) return <Empty title="Collecting the first snapshot…">There is one every ten seconds.</Empty>;
  if (filtered) return <Empty title="No matching topics">Remove the filter to see more.</Empty>;
  return (
    <Empty title="There is no topic yet" commands={["muster topics create orders --partitions 6"]}>
      In a terminal, this makes one:
    </Empty>
  );
}
