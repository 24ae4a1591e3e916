package groups

import (
	"fmt"
	"io"
	"strings"

	"muster/cmd/muster/internal/cli"
	"muster/internal/watch/groupview"
)

// printTopology shows what the application of a streams group is made of, and what it waits for.
func printTopology(w io.Writer, g *groupview.Group) {
	if g.State == groupview.NotReady {
		waits := "its topics do not have the numbers of partitions that it needs; the application logs which"
		if len(g.Missing) > 0 {
			waits = "missing topics: " + strings.Join(g.Missing, ", ")
		}
		fmt.Fprintf(w, "Waits for:    %s\n", waits)
	}
	for i := range g.Topology {
		s := &g.Topology[i]
		fmt.Fprintf(w, "Subtopology:  %s reads %s", s.ID, strings.Join(append(s.Sources, s.Repartitions...), ", "))
		if len(s.Sinks) > 0 {
			fmt.Fprintf(w, "; repartitions to %s", strings.Join(s.Sinks, ", "))
		}
		if len(s.Changelogs) > 0 {
			fmt.Fprintf(w, "; has state in %s", strings.Join(s.Changelogs, ", "))
		}
		fmt.Fprintln(w)
	}
}

// printStreams shows members of a streams group, those of a process one after the other.
func printStreams(w io.Writer, members []groupview.Member) error {
	t := cli.NewTable("PROCESS", "MEMBER", "CLIENT", "HOST", "INSTANCE", ">EPOCH", "ACTIVE", "STANDBY", "TARGET")
	for i := range members {
		m := &members[i]
		active, standby := formatTasks(m.Tasks.Active), formatTasks(m.Tasks.Standby)
		target := formatTasks(m.TargetTasks.Active)
		if copies := formatTasks(m.TargetTasks.Standby); copies != "none" {
			target += ", standby " + copies
		}
		if formatTasks(m.TargetTasks.Active) == active && formatTasks(m.TargetTasks.Standby) == standby {
			target = "the same"
		}
		t.Add(m.Process, m.ID, m.ClientID, m.Host, instanceOf(m), *m.Epoch, active, standby, target)
	}
	return t.Print(w)
}

// formatTasks words tasks as partitions are.
func formatTasks(tasks []groupview.SubtopologyTasks) string {
	list := []groupview.Assigned{}
	for _, t := range tasks {
		list = append(list, groupview.Assigned{Topic: t.Subtopology, Partitions: t.Partitions})
	}
	return cli.FormatAssigned(list)
}
