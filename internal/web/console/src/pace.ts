// When a group will have read everything, in words.
import type { GroupDetail } from "../../ui/api";
import { duration } from "./format";

/** How much faster or slower than producers is no difference: as in package lag, which then forecasts nothing. */
const same = 1.05;

/** What is shown, and the note below it. */
export function catchUp({ members, watched }: Pick<GroupDetail, "members" | "watched">): [text: string, note: string] {
  switch (watched?.catchUp) {
    case "caught-up":
      return ["caught up", "nothing is unread"];
    case "catching":
      return [watched.catchUpSeconds === null ? "–" : duration(watched.catchUpSeconds), "at the present pace"];
    case "not-catching": {
      if (members.length === 0) return ["never", "nobody reads"];
      if (watched.findings.includes("not-catching-up")) return ["never", "at the present pace"];
      // Who reads what comes always has a few records to read. Below five minutes nobody is told.
      const read = watched.consumedPerSecond ?? 0;
      return read > 0 && read * same >= (watched.producedPerSecond ?? 0) ? ["keeps pace", "with what is produced"] : ["–", "less than 5 minutes behind"];
    }
  }
  return ["–", "not watched for long enough"];
}
