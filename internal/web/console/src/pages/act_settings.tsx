// The settings of a topic: what holds, what would hold by default, and changing them.
import { useState } from "preact/hooks";
import type { TopicConfig } from "../../../ui/api";
import { useAsk } from "../ask";
import { Confirm } from "../confirm";
import { Acting, Form } from "../dialog";
import { Select, Text } from "../fields";
import { ActsHead, Section, Table } from "../parts";
import { param, withQuery } from "../route";

export function TopicSettings({ topic }: { topic: string }) {
  const { data } = useAsk("topicConfigs", { topic }, {}, 30);
  if (!data) return null; // Also if someone may not see them.
  const every = param("settings") === "all";
  const shown = data.configs.filter((c) => every || c.set);
  return (
    <Section title="Settings" note={every ? <a href={withQuery({ settings: "" })}>only those of this topic</a> : <a href={withQuery({ settings: "all" })}>show all {data.configs.length}</a>}>
      {shown.length === 0 && <p class="quiet">None was set for this topic: it has the broker's.</p>}
      {shown.length > 0 && (
        <Table label="Settings of the topic">
          <thead>
            <tr>
              <th scope="col">Setting</th>
              <th scope="col">Value</th>
              <th scope="col">Default</th>
              <ActsHead />
            </tr>
          </thead>
          <tbody>
            {shown.map((c) => (
              <tr key={c.name}>
                <th scope="row" class="wide">
                  <code class={c.set ? "name" : undefined}>{c.name}</code>
                  <span class="says">{c.doc}</span>
                </th>
                <td class="value">{c.set ? c.value : <span class="quiet">by default</span>}</td>
                <td class="value quiet">{c.default === "" ? "empty" : c.default}</td>
                <td class="do">
                  <Change topic={topic} all={[c]} text="Change …" label={`Change ${c.name}`} plain />
                  {c.set && (
                    <Acting plain text="Reset …" label={`Reset ${c.name} to the default`} title={`Reset ${c.name} to the default`}>
                      <Confirm name="alterTopic" params={{ topic }} body={{ delete: [c.name] }} verb="Reset to the default" />
                    </Acting>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
      {!every && (
        <div class="acts">
          <Change topic={topic} all={data.configs} text="Change a setting …" label="Change a setting" />
        </div>
      )}
    </Section>
  );
}

function Change({ topic, all, text, label, plain }: { topic: string; all: TopicConfig[]; text: string; label: string; plain?: boolean }) {
  return (
    <Acting text={text} label={label} title={label} {...(plain && { plain })}>
      <Fields topic={topic} all={all} />
    </Acting>
  );
}

function Fields({ topic, all }: { topic: string; all: TopicConfig[] }) {
  const first = all[0];
  const [name, setName] = useState(first?.name ?? "");
  const [value, setValue] = useState(first?.value ?? "");
  const [asked, ask] = useState(false);
  const now = all.find((c) => c.name === name);
  if (!now) return null;
  if (asked) return <Confirm name="alterTopic" params={{ topic }} body={{ set: { [name]: value } }} verb="Change the setting" back={() => ask(false)} />;
  const values = now.oneOf.includes(value) || value === "" ? now.oneOf : [value, ...now.oneOf];
  return (
    <Form verb="Show what would happen" submit={() => ask(true)}>
      {all.length > 1 && <Select label="Setting" value={name} set={(n) => (setName(n), setValue(all.find((c) => c.name === n)?.value ?? ""))} options={all.map((c) => [c.name, c.name])} />}
      {now.oneOf.length > 0 && name !== "cleanup.policy" ? (
        <Select label="Value" value={value} set={setValue} options={values.map((v) => [v, v])} note={now.doc} />
      ) : (
        <Text label="Value" mono value={value} set={setValue} list={now.oneOf} note={now.doc} />
      )}
      <p class="quiet">
        By default it is <code>{now.default === "" ? "empty" : now.default}</code>. It holds at once.
      </p>
    </Form>
  );
}
