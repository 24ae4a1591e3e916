// What a group is now: what is odd about it, who its members are, and who has what.
import type { Assigned, Explanation, Finding, GroupDetail, Member } from "../../../ui/api";
import { useAsk } from "../ask";
import * as f from "../format";
import { type Owner, ownersOf } from "../owners";
import { RemoveMember } from "./act_group";
import { ActsHead, Command, Empty, Num, Problem, Section, Table, When } from "../parts";

export function Now({ name, group }: { name: string; group: GroupDetail | undefined }) {
  const { data, problem } = useAsk("groupExplain", { group: name }, {});
  const owners = group ? ownersOf(group, []) : new Map<string, Owner>();
  return (
    <>
      {problem && <Problem of={problem} />}
      {data && <Findings of={data} />}
      {group && <Members group={group} owners={owners} />}
      {group && group.partitions.length > 0 && <Map_ group={group} owners={owners} />}
    </>
  );
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
          Nothing is odd.
        </p>
      )}
      {of.findings.map((x) => (
        <OneFinding key={x.id + x.text} finding={x} />
      ))}
    </Section>
  );
}

/** A command in a sentence: from muster to the end of the sentence. */
const commands = /\bmuster (?:groups|topics|txns|users|acls|quotas|consume) .+?(?=[.,;]?(?:\s+[A-Z]|\s*$))/g;

function OneFinding({ finding }: { finding: Finding }) {
  // A name in it may be anything; then it is for reading, not for copying.
  const found = [...new Set(finding.change.match(commands) ?? [])].filter(f.harmless);
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
        <Empty title="Nobody is in the group" commands={[f.command("consume", group.partitions[0]?.topic ?? "orders", `--group ${f.quoted(group.name)}`)]}>
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
                {m.assigned === null ? <span class="quiet">not known during a rebalance</span> : m.assigned.length === 0 ? <span class="quiet">nothing</span> : <Parts of={m.assigned} />}
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

/** How many partitions of a topic the map shows. */
const most = 512;

function Map_({ group, owners }: { group: GroupDetail; owners: Map<string, Owner> }) {
  const topics = [...new Set(group.partitions.map((p) => p.topic))];
  return (
    <Section title="Assignment" note="a square for each partition, with the letter of the member that has it">
      {topics.map((topic) => {
        const all = group.partitions.filter((p) => p.topic === topic);
        return (
          <div class="map" key={topic}>
            <h3>
              <a href={`/topics/${encodeURIComponent(topic)}`}>{topic}</a>
            </h3>
            <ol>
              {all.slice(0, most).map((p) => {
                const owner = p.owner ? owners.get(p.owner) : undefined;
                const says = `partition ${p.partition}: ${owner ? owner.name : "nobody has it"}${p.verdict ? `, ${f.words(p.verdict)}` : ""}${p.lag !== null ? `, lag ${f.count(p.lag)}` : ""}`;
                return (
                  <li key={p.partition} class={`cell ${owner ? `own${owner.colour}` : "none"}${p.verdict ? " wrong" : ""}`} title={says}>
                    <span class="unseen">{says}</span>
                    <span aria-hidden="true">{owner?.letter ?? "–"}</span>
                    <small aria-hidden="true">{p.verdict ? `${p.partition} ▲` : p.partition}</small>
                  </li>
                );
              })}
            </ol>
            {all.length > most && <p class="quiet">and {f.count(all.length - most)} more: the offsets tab has all.</p>}
          </div>
        );
      })}
    </Section>
  );
}
