// Numbers of partitions as people type them.

/** What someone typed is wrong. The broker was not asked. */
export class Mistyped extends Error {}

/** What the form takes: numbers and ranges, with commas or spaces between. */
export const pattern = "\\s*(\\d+([\\-–]\\d+)?([\\s,]+|$))*";

/** How many numbers a range may have. */
const most = 100_000;

/** Numbers of partitions from 0, 2-4. What is not meant that way is refused: an act on none would be one on all. */
export function numbers(text: string): number[] {
  const out = new Set<number>();
  for (const part of text.split(/[\s,]+/).filter(Boolean)) {
    const range = /^(\d+)(?:[-–](\d+))?$/.exec(part);
    if (!range) throw new Mistyped(`“${part}” is no partition and no range of them; write 3 or 2-4`);
    const first = Number(range[1]);
    const last = Number(range[2] ?? range[1]);
    if (first > last) throw new Mistyped(`the range ${part} ends before it begins`);
    if (last - first >= most) throw new Mistyped(`the range ${part} has too many partitions`);
    for (let n = first; n <= last; n++) out.add(n);
  }
  if (out.size === 0) throw new Mistyped("name partitions as in 0, 2-4, or leave the field empty for all");
  return [...out].sort((a, b) => a - b);
}
