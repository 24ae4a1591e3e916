import type { TopicDetail } from "../../../ui/api";
import { useAsk } from "../ask";
import * as f from "../format";
import { Command, Fact, Hitch, Incomplete, Lag, Num, Section, State, Table, Title, useTitle } from "../parts";
import { groupPath, param, topicPath, withQuery } from "../route";
import { TopicSettings } from "./act_settings";
import { TopicActs } from "./act_topic";
import { Records } from "./records";

/** How many partitions are shown at a time: of ten thousand rows a browser takes seconds. */
const fewPartitions = 200;

export function Topic({ name }: { name: string }) {
  useTitle(name);
  const { data, problem } = useAsk("topic", { topic: name }, {});
  return (
    <>
      <Title above={<a href="/topics">Topics</a>}>{name}</Title>
      <Hitch of={problem} data={data} />
      {data && <Whole data={data} />}
    </>
  );
}

function Whole({ data }: { data: TopicDetail }) {
  const name = data.name;
  const tab = param("tab");
  const bytes = data.partitions.reduce((sum, p) => sum + (p.bytes ?? 0), 0);
  const counted = data.partitions.every((p) => p.records !== null);
  const records = data.partitions.reduce((sum, p) => sum + (p.records ?? 0), 0);
  return (
    <>
      <TopicActs topic={data} />
      <dl class="facts">
        <Fact label="Partitions">{f.count(data.partitions.length)}</Fact>
        <Fact label="Records">{counted ? f.count(records) : data.partitions.some((p) => p.logEndOffset !== null) ? "not known" : "–"}</Fact>
        <Fact label="Size">{f.bytes(bytes)}</Fact>
        <Fact label="Groups">{f.count(data.groups.length + data.moreGroups)}</Fact>
        <Fact label="Topic id">
          <code>{data.id}</code>
        </Fact>
      </dl>
      <nav class="tabs" aria-label="Views of the topic">
        <a href={topicPath(name)} aria-current={tab === "" ? "page" : undefined}>
          Topic
        </a>
        <a href={topicPath(name) + "?tab=records"} aria-current={tab === "records" ? "page" : undefined}>
          Records
        </a>
      </nav>
      {tab === "records" ? (
        <Records topic={name} />
      ) : (
        <>
          <Incomplete of={data.incomplete} />
          <Readers data={data} />
          <Partitions data={data} />
          {data.settings !== null && <TopicSettings topic={data.name} />}
        </>
      )}
    </>
  );
}

function Readers({ data }: { data: TopicDetail }) {
  if (data.groups.length === 0) {
    return (
      <Section title="Groups">
        <p class="quiet">No group reads it. This would:</p>
        <Command>{f.command("consume", data.name, "--group billing")}</Command>
      </Section>
    );
  }
  const worst = [...data.groups].sort((a, b) => b.lag - a.lag || (a.name < b.name ? -1 : 1));
  // The broker names so many and no more, by name: the worst may be among the others.
  const note =
    data.moreGroups > 0 ? (
      <>
        of the first {f.count(data.groups.length)} by name, by lag in this topic; <a href={`/groups?topic=${encodeURIComponent(data.name)}`}>all {f.count(data.groups.length + data.moreGroups)} by lag</a>
      </>
    ) : (
      "by lag in this topic"
    );
  return (
    <Section title="Groups" note={note}>
      <Table label="Groups that read the topic">
        <thead>
          <tr>
            <th scope="col">Group</th>
            <th scope="col">State</th>
            <th scope="col" class="num">Members</th>
            <th scope="col" class="num">Partitions</th>
            <th scope="col" class="num">Lag here</th>
            <th scope="col" class="num">Behind</th>
          </tr>
        </thead>
        <tbody>
          {worst.map((g) => (
            <tr key={g.name}>
              <td class="wide">
                <a class="name" data-row href={groupPath(g.name)}>
                  {g.name}
                </a>
              </td>
              <td>
                <State of={g.state} />
              </td>
              <Num quiet={g.members === 0}>{f.count(g.members)}</Num>
              <Num>{f.count(g.partitions)}</Num>
              <Num quiet={g.lag === 0}>
                <Lag records={g.lag} unknown={g.lagUnknown} />
              </Num>
              <Num quiet={g.lagSeconds === 0}>{g.lagSeconds > 0 ? f.duration(g.lagSeconds) : "–"}</Num>
            </tr>
          ))}
        </tbody>
      </Table>
    </Section>
  );
}

function Partitions({ data }: { data: TopicDetail }) {
  const streams = data.streams;
  const count = data.partitions.length;
  const asked = Math.floor(Number(param("from")) / fewPartitions) * fewPartitions;
  const from = asked > 0 && asked < count ? asked : 0;
  const shown = data.partitions.slice(from, from + fewPartitions);
  const other = (to: number, text: string) => <a href={withQuery({ from: to > 0 ? String(to) : "" })}>{text}</a>;
  const note = (
    <>
      {f.count(from)} to {f.count(from + shown.length - 1)} of {f.count(count)} {from > 0 && other(from - fewPartitions, "earlier")} {from + fewPartitions < count && other(from + fewPartitions, "later")}
    </>
  );
  return (
    <Section title="Partitions" note={count > fewPartitions ? note : undefined}>
      <Table label="Partitions">
        <thead>
          <tr>
            <th scope="col" class="num first">Partition</th>
            <th scope="col">Leader</th>
            <th scope="col" class="num">Log start</th>
            <th scope="col" class="num" title="the high watermark">Log end</th>
            <th scope="col" class="num" title="what readers of committed records may read up to">Last stable</th>
            <th scope="col" class="num">Records</th>
            <th scope="col" class="num">Size</th>
            {streams !== null && <th scope="col" title="the stream that Redis clients read and add to">Redis key</th>}
          </tr>
        </thead>
        <tbody>
          {shown.map((p) => (
            <tr key={p.partition}>
              <td class="num first">{p.partition}</td>
              <td>{p.leader === null ? <span class="bad">▲ none</span> : `broker ${p.leader}`}</td>
              <Num>{f.offset(p.logStartOffset)}</Num>
              <Num>{f.offset(p.logEndOffset)}</Num>
              <Num>
                {f.offset(p.lastStableOffset)}
                {p.lastStableOffset !== p.logEndOffset && <span class="says">open transaction</span>}
              </Num>
              <Num>{p.records === null ? "–" : f.count(p.records)}</Num>
              <Num>{p.bytes === null ? "–" : f.bytes(p.bytes)}</Num>
              {streams !== null && (
                <td>
                  <code>{streams + p.partition}</code>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </Table>
      {streams !== null && (
        <p class="quiet">
          Redis clients read the same records: <Command>{`redis-cli XRANGE ${f.quoted(streams + from)} - + COUNT 10`}</Command>
        </p>
      )}
    </Section>
  );
}
