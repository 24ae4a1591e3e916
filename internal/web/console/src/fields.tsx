// Fields of forms, each with its label, and a note that belongs to it.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface Of<T> {
  label: string;
  value: T;
  set: (value: T) => void;
  note?: ComponentChildren;
}

function Field({ id, label, note, children }: { id: string; label: string; note: ComponentChildren; children: ComponentChildren }) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children}
      {note && (
        <p id={id + "-note"} class="says">
          {note}
        </p>
      )}
    </div>
  );
}

const described = (id: string, note: ComponentChildren): { id: string; "aria-describedby"?: string } => (note ? { id, "aria-describedby": id + "-note" } : { id });

interface Extra {
  type?: "text" | "number" | "password" | "datetime-local";
  required?: boolean;
  pattern?: string;
  min?: number;
  max?: number;
  step?: string;
  list?: string[];
  mono?: boolean;
  hint?: string;
}

/** A line of text, or a number, a time, a password. */
export function Text({ label, value, set, note, type = "text", required, pattern, min, max, step, list, mono, hint }: Of<string> & Extra) {
  const id = useId();
  return (
    <Field id={id} label={label} note={note}>
      <input
        {...described(id, note)}
        type={type as "text"}
        value={value}
        required={required}
        pattern={pattern}
        min={min}
        max={max}
        step={step}
        placeholder={hint}
        list={list && id + "-list"}
        class={mono ? "mono" : undefined}
        autoComplete={type === "password" ? "new-password" : "off"}
        spellcheck={false}
        onInput={(e) => set(e.currentTarget.value)}
      />
      {list && (
        <datalist id={id + "-list"}>
          {list.map((x) => (
            <option key={x} value={x} />
          ))}
        </datalist>
      )}
    </Field>
  );
}

/** Text of several lines. */
export function Area({ label, value, set, note }: Of<string>) {
  const id = useId();
  return (
    <Field id={id} label={label} note={note}>
      <textarea {...described(id, note)} class="mono" rows={4} value={value} spellcheck={false} onInput={(e) => set(e.currentTarget.value)} />
    </Field>
  );
}

/** One of a few. */
export function Select({ label, value, set, note, options }: Of<string> & { options: [value: string, text: string][] }) {
  const id = useId();
  return (
    <Field id={id} label={label} note={note}>
      <select {...described(id, note)} value={value} onChange={(e) => set(e.currentTarget.value)}>
        {options.map(([v, text]) => (
          <option key={v} value={v} selected={v === value}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}

/** Yes or no. */
export function Tick({ label, value, set }: Of<boolean>) {
  return (
    <label class="check">
      <input type="checkbox" checked={value} onChange={(e) => set(e.currentTarget.checked)} />
      {label}
    </label>
  );
}

/** One of a few that are all seen. */
export function Radios({ label, value, set, options }: Of<string> & { options: [value: string, text: string][] }) {
  const id = useId();
  return (
    <fieldset class="radios">
      <legend>{label}</legend>
      {options.map(([v, text]) => (
        <label key={v} class="check">
          <input type="radio" name={id} value={v} checked={v === value} onChange={() => set(v)} />
          {text}
        </label>
      ))}
    </fieldset>
  );
}

/** Names with values, as many as are wanted. */
export function Pairs({ label, value, set, name, text, list, add }: Of<[string, string][]> & { name: string; text: string; list?: string[]; add: string }) {
  const id = useId();
  const change = (at: number, pair: [string, string]): void => set(value.map((p, i) => (i === at ? pair : p)));
  return (
    <fieldset class="pairs">
      <legend>{label}</legend>
      {value.map(([n, v], i) => (
        <div class="pair" key={i}>
          <input aria-label={`${name} ${i + 1}`} placeholder={name} class="mono" list={list && id} value={n} spellcheck={false} autoComplete="off" onInput={(e) => change(i, [e.currentTarget.value, v])} />
          <input aria-label={`${text} ${i + 1}`} placeholder={text} class="mono" value={v} spellcheck={false} autoComplete="off" onInput={(e) => change(i, [n, e.currentTarget.value])} />
          <button type="button" class="plain" aria-label={`Take ${n || name + " " + (i + 1)} away`} onClick={() => set(value.filter((_, j) => j !== i))}>
            ✕
          </button>
        </div>
      ))}
      <button type="button" class="plain add" onClick={() => set([...value, ["", ""]])}>
        + {add}
      </button>
      {list && (
        <datalist id={id}>
          {list.map((x) => (
            <option key={x} value={x} />
          ))}
        </datalist>
      )}
    </fieldset>
  );
}
