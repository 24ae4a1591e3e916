package groups

import (
	"context"
	"fmt"
	"time"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/source"
	"muster/internal/journal"
	"muster/internal/watch/explain"
	"muster/internal/watch/groupview"
)

// undoSince is how far back resets are looked for in the journal, which is mostly kept for less.
const undoSince = 366 * 24 * time.Hour

// planUndo works out how to move back what a reset has moved.
func planUndo(ctx context.Context, flags *cli.Flags, loader *groupview.Loader, name string, g *groupview.Group, reset string) ([]resetPartition, error) {
	entries, err := source.GroupJournal.Read(ctx, flags, time.Now().Add(-undoSince), name)
	if err != nil {
		return nil, err
	}
	done, err := appliedReset(entries, name, reset)
	if err != nil {
		return nil, err
	}
	var topics []string
	for i := range done.Moved {
		topics = append(topics, done.Moved[i].Topic)
	}
	if err := loader.LoadLogs(ctx, topics); err != nil {
		return nil, err
	}
	current := currentOffsets(g)
	var rows []resetPartition
	for i := range done.Moved {
		m := &done.Moved[i]
		tp := source.TopicPartition{Topic: m.Topic, Partition: m.Partition}
		row := resetPartition{Topic: m.Topic, Partition: m.Partition, Current: current[tp]}
		if m.Before < 0 {
			row.Note = "left alone: nothing was committed before"
		} else {
			row.resolve(groupview.ResetTarget{Kind: groupview.ResetOffset, N: m.Before}, loader, tp, nil)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// appliedReset finds what a reset has moved. One that was not applied has moved nothing.
func appliedReset(entries []explain.Entry, name, reset string) (*journal.Reset, error) {
	begun, why := false, ""
	for i := range entries {
		r := entries[i].Reset
		if r == nil || r.Plan != reset {
			continue
		}
		if entries[i].Kind == journal.KindOffsetsReset {
			return r, nil
		}
		begun, why = true, r.Reason
	}
	switch {
	case why != "":
		return nil, fmt.Errorf("reset %s of group %s was not applied, so there is nothing to undo: %s", reset, name, why)
	case begun:
		return nil, fmt.Errorf("reset %s of group %s is under way, or was lost with the group's coordinator; as far as the journal knows it was not applied", reset, name)
	}
	return nil, fmt.Errorf("the journal knows of no reset %s of group %s; muster groups history %s tells of those that there were", reset, name, name)
}
