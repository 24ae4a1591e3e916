import type { GroupDetail } from "../../../ui/api";
import { useAsk } from "../ask";
import * as f from "../format";
import { Fact, Hitch, Lag, State, Title, useTitle } from "../parts";
import { param, withQuery } from "../route";
import { GroupActs } from "./act_group";
import { Now } from "./group_now";
import { Offsets } from "./group_offsets";
import { Time } from "./group_time";

const tabs: [id: string, text: string][] = [
  ["", "Now"],
  ["time", "Time"],
  ["offsets", "Offsets"],
];

export function Group({ name }: { name: string }) {
  useTitle(name);
  const { data, problem } = useAsk("group", { group: name }, {});
  const tab = param("tab");
  const gone = problem?.status === 404;
  return (
    <>
      <Title above={<a href="/groups">Groups</a>}>{name}</Title>
      {!gone && <Hitch of={problem} data={data} />}
      {data && <GroupActs group={data} />}
      {data && <Facts group={data} />}
      {gone && <p class="lead">There is no such group now. What the journal knows of it is below.</p>}
      {(data || gone) && (
        <>
          <nav class="tabs" aria-label="Views of the group">
            {tabs.map(([id, text]) => (
              <a key={id} href={withQuery({ tab: id, rebalance: "", sort: "" })} aria-current={tab === id ? "page" : undefined}>
                {text}
              </a>
            ))}
          </nav>
          {tab === "time" ? <Time name={name} group={data} /> : data && tab === "offsets" ? <Offsets group={data} /> : <Now name={name} group={data} />}
        </>
      )}
    </>
  );
}

function Facts({ group }: { group: GroupDetail }) {
  const w = group.watched;
  const protocol = group.type === "consumer" ? "consumer group (KIP-848)" : "classic group";
  const epoch = group.epoch === null ? "" : `, epoch ${group.epoch}${group.targetEpoch !== null && group.targetEpoch !== group.epoch ? ` on its way to ${group.targetEpoch}` : ""}`;
  return (
    <>
      <p class="lead">
        <State of={group.state} />
        <span class="quiet">
          {[f.plural(group.members.length, "member"), protocol + epoch, group.assignor && `assignor ${group.assignor}`, group.coordinator && `coordinator broker ${group.coordinator.broker}`].filter(Boolean).join(" · ")}
        </span>
      </p>
      <dl class="facts">
        <Fact label="Lag" note={group.uncommitted > 0 ? `${f.plural(group.uncommitted, "partition")} without a commit` : "records to be read"}>
          {group.totalLag !== null ? <Lag records={group.totalLag} unknown={group.totalLagAtLeast} /> : w ? <Lag records={w.lag} unknown={w.lagUnknown} /> : "–"}
        </Fact>
        <Fact label="Behind" note="age of the oldest unread record">
          {w ? (w.lagSeconds > 0 ? (w.lagSecondsAtLeast ? "≥ " : "") + f.duration(w.lagSeconds) : f.duration(0)) : "–"}
        </Fact>
        <Fact label="Catch-up" note="at the present pace">
          {w?.paceText || "–"}
        </Fact>
        <Fact label="Consumed" note="in the last 5 minutes">
          {w && w.consumedPerSecond !== null ? f.rate(w.consumedPerSecond) : "–"}
        </Fact>
        <Fact label="Produced" note="in the last 5 minutes">
          {w && w.producedPerSecond !== null ? f.rate(w.producedPerSecond) : "–"}
        </Fact>
        {w && w.overtakenInSeconds !== null && w.findings.includes("retention-overtakes") && (
          <Fact label="Retention overtakes" note="records are deleted unread">
            <span class="bad">in {f.duration(w.overtakenInSeconds)}</span>
          </Fact>
        )}
      </dl>
    </>
  );
}
