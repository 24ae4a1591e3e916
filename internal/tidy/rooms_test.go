package tidy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// The most source files of a folder, and lines of the package that wires everything:
// what has more is in want of rooms.
const (
	maxFiles       = 30
	maxBrokerLines = 2500
)

// roomExceptions lists the folders that may have more files, with their own limits. The
// list only shrinks.
var roomExceptions = map[string]int{
	"bench/rig":            39,  // A file for each measure.
	"internal/handler":     109, // A file for each API key.
	"internal/sim":         50,
	"internal/store/redis": 50,
}

func TestFoldersAreSmall(t *testing.T) {
	report(t, checkRooms(tree(t), roomExceptions))
}

func checkRooms(sources []*source, exceptions map[string]int) []string {
	var problems []string
	files, broker := map[string]int{}, 0
	for _, s := range sources {
		if s.isTest() {
			continue
		}
		files[s.dir()]++
		if s.dir() == "internal/broker" {
			broker += strings.Count(s.text, "\n")
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(files)) {
		limit, ok := exceptions[dir]
		if ok && files[dir] <= maxFiles {
			problems = append(problems, fmt.Sprintf("%s: no longer too large, remove it from roomExceptions", dir))
		}
		if limit = max(limit, maxFiles); files[dir] > limit {
			problems = append(problems, fmt.Sprintf("%s: %d source files, more than %d", dir, files[dir], limit))
		}
	}
	if broker > maxBrokerLines {
		problems = append(problems, fmt.Sprintf("internal/broker: %d lines, more than %d", broker, maxBrokerLines))
	}
	return problems
}

func TestCheckRoomsFindsWhatIsTooLarge(t *testing.T) {
	var sources []*source
	for i := range 31 {
		sources = append(sources, fixture(t, fmt.Sprintf("a/%d.go", i), "package a\n"), fixture(t, fmt.Sprintf("b/%d_test.go", i), "package b\n"))
	}
	sources = append(sources, fixture(t, "c/c.go", "package c\n"), fixture(t, "internal/broker/b.go", "package broker\n"+strings.Repeat("//\n", 2500)))
	wantProblems(t, checkRooms(sources, map[string]int{"c": 40}),
		"a: 31 source files, more than 30", "c: no longer too large", "internal/broker: 2501 lines, more than 2500")
	wantProblems(t, checkRooms(sources[:62], map[string]int{"a": 31}))
}
