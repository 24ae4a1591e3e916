// Light and dark: as the system has it, unless someone chose.
import { signal } from "@preact/signals";

type Theme = "system" | "light" | "dark";
const key = "muster.theme";

function stored(): Theme {
  const value = localStorage.getItem(key);
  return value === "light" || value === "dark" ? value : "system";
}

export const theme = signal<Theme>(stored());

/** Changes whenever colours do, for what is drawn and not styled. */
export const drawn = signal(0);

export function applyTheme(): void {
  if (theme.value === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", theme.value);
  drawn.value++;
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.value++);

export function Switch() {
  return (
    <label class="theme">
      Colours
      <select
        value={theme.value}
        onChange={(e) => {
          theme.value = e.currentTarget.value as Theme;
          if (theme.value === "system") localStorage.removeItem(key);
          else localStorage.setItem(key, theme.value);
          applyTheme();
        }}
      >
        <option value="system">System</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  );
}

/** A colour of the style sheet as it is now, for a canvas. */
export function colour(name: string): string {
  const probe = document.createElement("i");
  probe.className = `probe ${name}`;
  document.body.append(probe);
  const out = getComputedStyle(probe).color;
  probe.remove();
  return out;
}
