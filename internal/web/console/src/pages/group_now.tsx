// What a group is now: what is odd about it, who its members are, and who has what.
import type { Assigned, Explanation, Finding, GroupDetail, GroupPartition, Member } from "../../../ui/api";
import { useAsk } from "../ask";
import * as f from "../format";
import { type Owner, ownersOf } from "../owners";
import { RemoveMember } from "./act_group";
import { ActsHead, Command, Empty, Hitch, Num, Section, Table, When } from "../parts";

export function Now({ name, group }: { name: string; group: GroupDetail | undefined }) {
  const { data, problem } = useAsk("groupExplain", { group: name }, {});
  const owners = group ? ownersOf(group, []) : new Map<string, Owner>();
  return (
    <>
      {problem && <Hitch of={problem} data={data} />}
      <Hidden group={group} />
      {data && <Findings of={data} />}
      {group && <Members group={group} owners={owners} />}
      {group && group.partitions.length > 0 && <Map_ group={group} owners={owners} />}
    </>
  );
}

/** Says that a part of the group is not shown. */
export function Hidden({ group }: { group: GroupDetail | undefined }) {
  if (!group || group.hiddenTopics === 0) return null;
  return <p class="notice">The group reads {f.plural(group.hiddenTopics, "topic")} that you may not see.</p>;
}

function Findings({ of }: { of: Explanation }) {
  return (
    <Section title="Findings">
      {of.text && <p class="lead">{of.text}</p>}
      {of.underWay && (
        <div class="finding warn">
          <h3>
            <span aria-hidden="true">◐ </span>A rebalance is under way since {f.when(of.underWay.started)}
          </h3>
          {of.underWay.text.map((t) => (
            <p key={t}>{t}</p>
          ))}
        </div>
      )}
      {of.findings.length === 0 && (
        <p class="quiet">
          <span class="mark ok" aria-hidden="true">
            ✓{" "}
          </span>
          No problems found.
        </p>
      )}
      {of.findings.map((x, i) => (
        // Its text has an age, which changes; the finding stays, and with it what is selected there.
        <OneFinding key={`${x.id} ${of.findings.slice(0, i).filter((y) => y.id === x.id).length}`} finding={x} />
      ))}
    </Section>
  );
}

function OneFinding({ finding }: { finding: Finding }) {
  // A name in it may be anything; then it is for reading, not for copying.
  const found = [...new Set(f.commandsIn(finding.change))].filter(f.harmless);
  return (
    <div class="finding">
      <h3>
        <span aria-hidden="true">▲ </span>
        {f.capital(f.words(finding.id))}
      </h3>
      <p>{finding.text}</p>
      <p class="change">
        <strong>What helps:</strong> {finding.change}
      </p>
      {found.map((c) => (
        <Command key={c}>{c}</Command>
      ))}
    </div>
  );
}

export function Badge({ owner }: { owner: Owner | undefined }) {
  if (!owner) return <span class="badge none">–</span>;
  return (
    <span class={`badge own${owner.colour}`} title={owner.name}>
      {owner.letter}
    </span>
  );
}

function Members({ group, owners }: { group: GroupDetail; owners: Map<string, Owner> }) {
  if (group.members.length === 0) {
    return (
      <Section title="Members">
        <Empty title="The group has no members" commands={[f.command("consume", group.partitions[0]?.topic ?? "orders", `--group ${f.quoted(group.name)}`)]}>
          Its committed offsets stay. This would join it:
        </Empty>
      </Section>
    );
  }
  const epochs = group.members.some((m) => m.epoch !== null);
  return (
    <Section title="Members" note={f.count(group.members.length)}>
      <Table label="Members">
        <thead>
          <tr>
            <th scope="col">Member</th>
            <th scope="col">Client</th>
            <th scope="col">Host</th>
            {epochs && (
              <th scope="col" class="num">
                Epoch
              </th>
            )}
            <th scope="col" class="num">
              Partitions
            </th>
            <th scope="col">Reads</th>
            <ActsHead />
          </tr>
        </thead>
        <tbody>
          {group.members.map((m) => (
            <tr key={m.memberId}>
              <th scope="row">
                <Badge owner={owners.get(m.memberId)} />
                <span class="name" title={m.memberId}>
                  {m.name}
                </span>
                <span class="says">{notes(m)}</span>
              </th>
              <td>{m.clientId}</td>
              <td>{m.host}</td>
              {epochs && <Num>{m.epoch ?? "–"}</Num>}
              <Num quiet={size(m.assigned) === 0}>{m.assigned === null ? "–" : f.count(size(m.assigned))}</Num>
              <td class="wide">
                {m.assigned === null ? <span class="quiet">not known during a rebalance</span> : m.assigned.length === 0 ? <span class="quiet">{group.hiddenTopics > 0 ? "nothing that you may see" : "nothing"}</span> : <Parts of={m.assigned} />}
                {m.revoking && m.revoking.length > 0 && (
                  <span class="says warn">
                    ▲ is to give up <Parts of={m.revoking} />
                    {m.since && (
                      <>
                        , told <When time={m.since} />
                      </>
                    )}
                  </span>
                )}
                {m.waits && <span class="says warn">◐ waits for others to give up partitions{m.since && <>, since {f.when(m.since)}</>}</span>}
              </td>
              <td class="do">
                <RemoveMember group={group} member={m} />
              </td>
            </tr>
          ))}
        </tbody>
      </Table>
    </Section>
  );
}

function notes(m: Member): string {
  return [m.instanceId !== null && `static, ${m.instanceId}`, m.classic && "classic protocol", m.pattern !== null && `subscribes to /${m.pattern}/`].filter(Boolean).join(" · ");
}

const size = (list: Assigned[] | null): number => (list ?? []).reduce((sum, t) => sum + t.partitions.length, 0);

function Parts({ of }: { of: Assigned[] }) {
  return <span class="parts">{of.map((t) => `${t.topic} ${f.ranges(t.partitions)}`).join("; ")}</span>;
}

/** How many partitions the map shows, of all topics together. */
const most = 512;

/** The partitions that the map shows, by topic. */
function mapped(all: GroupPartition[]): { topic: string; shown: GroupPartition[] }[] {
  const out = new Map<string, GroupPartition[]>();
  for (const p of all.slice(0, most)) {
    const some = out.get(p.topic);
    if (some) some.push(p);
    else out.set(p.topic, [p]);
  }
  return [...out].map(([topic, shown]) => ({ topic, shown }));
}

function Map_({ group, owners }: { group: GroupDetail; owners: Map<string, Owner> }) {
  const topics = mapped(group.partitions);
  const left = group.partitions.length - most;
  return (
    <Section title="Assignment" note="a square for each partition, with the letter of the member that has it">
      {topics.map(({ topic, shown }) => (
        <div class="map" key={topic}>
          <h3>
            <a href={`/topics/${encodeURIComponent(topic)}`}>{topic}</a>
          </h3>
          <ol>
            {shown.map((p) => (
              <Cell key={p.partition} partition={p} owner={p.owner ? owners.get(p.owner) : undefined} />
            ))}
          </ol>
        </div>
      ))}
      {left > 0 && <p class="quiet">and {f.count(left)} more: the offsets tab has all.</p>}
    </Section>
  );
}

function Cell({ partition: p, owner }: { partition: GroupPartition; owner: Owner | undefined }) {
  const says = `partition ${p.partition}: ${owner ? owner.name : "no owner"}${p.verdict ? `, ${f.words(p.verdict)}` : ""}${p.lag !== null ? `, lag ${f.count(p.lag)}` : ""}`;
  return (
    <li class={`cell ${owner ? `own${owner.colour}` : "none"}${p.verdict ? " wrong" : ""}`} title={says}>
      <span class="unseen">{says}</span>
      <span aria-hidden="true">{owner?.letter ?? "–"}</span>
      <small aria-hidden="true">{p.verdict ? `${p.partition} ▲` : p.partition}</small>
    </li>
  );
}
