// What can be done to a group besides reading it.
import { useState } from "preact/hooks";
import type { GroupDetail, Member } from "../../../ui/api";
import { type Body, deletes } from "../act";
import { Confirm } from "../confirm";
import { Acting, Acts, Form } from "../dialog";
import { Select } from "../fields";
import { numbers } from "../numbers";
import { go } from "../route";
import { Partitions, Reset } from "./act_reset";

export function GroupActs({ group }: { group: GroupDetail }) {
  const topics = [...new Set(group.partitions.filter((p) => p.committed !== null).map((p) => p.topic))];
  return (
    <Acts>
      <Reset group={group} />
      {topics.length > 0 && (
        <Acting text="Delete offsets …" danger title={`Delete committed offsets of ${group.name}`}>
          <DeleteOffsets group={group} topics={topics} />
        </Acting>
      )}
      <Acting text="Delete the group …" danger title={`Delete the group ${group.name}`}>
        <Confirm
          name="deleteGroup"
          params={{ group: group.name }}
          body={null}
          type={group.name}
          what="group"
          verb="Delete the group"
          after={() => {
            deletes("group", group.name);
            go("/groups");
          }}
        />
      </Acting>
    </Acts>
  );
}

function DeleteOffsets({ group, topics }: { group: GroupDetail; topics: string[] }) {
  const [topic, setTopic] = useState(topics[0] ?? "");
  const [partitions, setPartitions] = useState("");
  const [body, setBody] = useState<Body<"deleteOffsets">>();
  if (body) return <Confirm name="deleteOffsets" params={{ group: group.name }} body={body} verb="Delete the offsets" back={() => setBody(undefined)} />;
  return (
    <Form
      verb="Show what would happen"
      submit={() => setBody({ topic, ...(partitions.trim() && { partitions: numbers(partitions) }) })}
    >
      <p>The group forgets how far it has read. Members that come later begin where their own setting says (auto.offset.reset): at the beginning or at the end.</p>
      <Select label="Topic" value={topic} set={setTopic} options={topics.map((t) => [t, t])} />
      <Partitions value={partitions} set={setPartitions} />
    </Form>
  );
}

/** Removes a member, which is then no longer in the group, unless it joins again. */
export function RemoveMember({ group, member }: { group: GroupDetail; member: Member }) {
  return (
    <Acting plain danger text="Remove …" label={`Remove ${member.name}`} title={`Remove ${member.name} from ${group.name}`}>
      <Remove group={group} member={member} />
    </Acting>
  );
}

function Remove({ group, member }: { group: GroupDetail; member: Member }) {
  const who = member.instanceId === null ? { memberId: member.memberId } : { instanceId: member.instanceId };
  return <Confirm name="removeMember" params={{ group: group.name }} body={who} verb="Remove the member" />;
}
