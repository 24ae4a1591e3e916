import { useAsk } from "../ask";
import * as f from "../format";
import { Empty, Fact, Hitch, Incomplete, State, Table, Title, useTitle, When } from "../parts";
import { groupPath } from "../route";
import type { Overview as Answer } from "../../../ui/api";

export function Overview() {
  useTitle("Overview");
  const { data, problem } = useAsk("overview", {}, {});
  return (
    <>
      <Title>{data ? headline(data) : "Overview"}</Title>
      <Hitch of={problem} data={data} />
      {data && <Whole data={data} />}
    </>
  );
}

function Whole({ data }: { data: Answer }) {
  return (
    <>
      {(data.health.problems ?? []).map((p) => (
        <p class="notice bad" role="alert" key={p}>
          <span aria-hidden="true">▲ </span>
          {p}
        </p>
      ))}
      {data.unwell.map((h) => (
        <p class="notice bad" role="alert" key={h.node}>
          <span aria-hidden="true">▲ </span>
          Broker {h.node}: {h.problems?.join(" ")}
        </p>
      ))}
      <dl class="facts">
        <Fact label="Groups">{data.groups === null ? "–" : <a href="/groups">{f.count(data.groups)}</a>}</Fact>
        <Fact label="Need attention">{data.needing > 0 ? <a href="/groups?finding=any">{f.count(data.needing)}</a> : "0"}</Fact>
        <Fact label="Topics">
          <a href="/topics">{f.count(data.topics)}</a>
        </Fact>
        <Fact label="Storage">{store(data.health.store)}</Fact>
        <Fact label="As of">{data.at ? <When time={data.at} /> : "not yet"}</Fact>
      </dl>
      <Incomplete of={data.incomplete} />
      <Worst data={data} />
    </>
  );
}

/** Whether nothing is known to be wrong with any broker. */
const calm = (data: Answer): boolean => data.health.status === "ok" && data.unwell.length === 0 && data.incomplete.length === 0;

function headline(data: Answer): string {
  if (data.health.status !== "ok") return "The broker has a problem";
  if (data.unwell.length > 0) return data.unwell.length === 1 ? "A broker has a problem" : `${f.count(data.unwell.length)} brokers have a problem`;
  if (data.incomplete.length > 0) return "Not all brokers answer";
  if (data.at === null) return "The broker has just started";
  if (data.needing === 0) return "All is well";
  return data.needing === 1 ? "One group needs attention" : `${f.count(data.needing)} groups need attention`;
}

function store(kind: string): string {
  return kind === "memory" || kind === "mem" ? "in memory" : kind === "disk" ? "on disk" : kind === "redis" ? "in Redis" : kind;
}

/** What is said of groups if none of them needs attention. */
function quietly(data: Answer): string {
  if (data.at === null) return "Collecting the first snapshot…";
  if (!calm(data)) return "No known group needs attention.";
  return "Every group makes progress, and no partition is stuck.";
}

function Worst({ data }: { data: Answer }) {
  if (data.groups === 0 && calm(data)) {
    return (
      <Empty title="No groups yet" commands={["muster topics create orders --partitions 6", "echo 'alice=3 apples' | muster produce orders --key-separator =", "muster consume orders --group billing"]}>
        A group exists as soon as a consumer joins it or commits an offset. These commands create one:
      </Empty>
    );
  }
  if (data.worst.length === 0) {
    return <p class="lead quiet">{quietly(data)}</p>;
  }
  return (
    <Table label="Groups that need attention">
      <thead>
        <tr>
          <th scope="col">What is wrong</th>
          <th scope="col">State</th>
          <th scope="col" class="num">
            Lag
          </th>
          <th scope="col" class="num">
            Behind
          </th>
        </tr>
      </thead>
      <tbody>
        {data.worst.map((g) => (
          <tr key={g.name}>
            <td class="wide">
              <a class="name" data-row href={groupPath(g.name)}>
                {g.name}
              </a>
              <span class="says">{g.text}</span>
            </td>
            <td>
              <State of={g.state} />
            </td>
            <td class="num">{f.count(g.lag)}</td>
            <td class="num">{g.lagSeconds > 0 ? f.duration(g.lagSeconds) : "–"}</td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
