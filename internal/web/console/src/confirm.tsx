// An act that destroys something: the broker says what it would do, and then it is asked.
import { useEffect, useState } from "preact/hooks";
import { act, type Body, type Shown } from "./act";
import type { Params } from "./ask";
import type { Done } from "../../ui/api";
import { Form, Refusal } from "./dialog";
import { Text } from "./fields";
import { sentence } from "./parts";

interface Of<N extends Shown> {
  name: N;
  params: Params;
  body: Body<N>;
  verb: string;
  /** What must be typed, if much is lost, and of what that is the name. */
  type?: string;
  what?: string;
  /** To the step before, if there is one. */
  back?: () => void;
  /** Where to go afterwards. */
  after?: () => void;
}

/** Asks after the broker has said what would happen. */
export function Confirm<N extends Shown>({ name, params, body, verb, type, what, back, after }: Of<N>) {
  const [will, setWill] = useState<Done>();
  const [refused, setRefused] = useState<Error>();
  const [typed, setTyped] = useState("");
  useEffect(() => {
    act<Shown>(name, params, body, true).then(setWill, setRefused);
  }, []);
  const ready = will !== undefined && !will.refused && (type === undefined || typed === type);
  return (
    <Form
      verb={verb}
      danger
      ready={ready}
      typed={type !== undefined}
      {...(back && { back })}
      submit={async () => {
        const { sentences } = await act<Shown>(name, params, body);
        after?.();
        return sentences.join(" ");
      }}
    >
      {refused ? <Refusal of={refused} asks /> : will ? <Will of={will} /> : <Looking />}
      {type !== undefined && (
        <Text
          label={`Name of the ${what ?? ""}`}
          mono
          value={typed}
          set={setTyped}
          note={
            <>
              To be sure, type <code>{type}</code>
            </>
          }
        />
      )}
    </Form>
  );
}

function Looking() {
  return (
    <p class="quiet" role="status">
      Asking the broker what would happen …
    </p>
  );
}

/** What an act would do, or why it would be refused. */
export function Will({ of }: { of: { sentences: string[]; refused?: string } }) {
  return (
    <>
      {of.sentences.length > 0 && (
        <ul class="will">
          {of.sentences.map((x) => (
            <li key={x}>{sentence(x)}</li>
          ))}
        </ul>
      )}
      {of.refused && (
        <p class="notice bad" role="alert">
          <span aria-hidden="true">▲ </span>
          It would be refused now: {sentence(of.refused)}
        </p>
      )}
    </>
  );
}
