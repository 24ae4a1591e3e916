package assignor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The tests write a group as text. Topics are letters with their number of
// partitions, "a3 b2", in the order of their ids unless one is given: "a3/7". A
// member is "x@i: a b | a0 b1": its id, its group instance id if it has one, its
// topics, and its previous target. A target is "a0 a1 b0".

func parse(t testing.TB, topics string, members ...string) *Input {
	t.Helper()
	in := &Input{}
	for i, text := range strings.Fields(topics) {
		text, id, given := strings.Cut(text, "/")
		topic := Topic{Name: text[:1], Partitions: number(t, text[1:])}
		topic.ID[15] = byte(i)
		if given {
			topic.ID[15] = byte(number(t, id))
		}
		in.Topics = append(in.Topics, topic)
	}
	for _, text := range members {
		who, what, _ := strings.Cut(text, ":")
		subscribed, had, _ := strings.Cut(what, "|")
		m := Member{Previous: in.partitions(t, had)}
		m.ID, m.Instance, _ = strings.Cut(who, "@")
		for _, name := range strings.Fields(subscribed) {
			m.Topics = append(m.Topics, in.topic(t, name))
		}
		in.Members = append(in.Members, m)
	}
	return in
}

func number(t testing.TB, text string) int32 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int32(n)
}

func (in *Input) topic(t testing.TB, name string) int32 {
	t.Helper()
	i := slices.IndexFunc(in.Topics, func(topic Topic) bool { return topic.Name == name })
	if i < 0 {
		t.Fatalf("there is no topic %s", name)
	}
	return int32(i)
}

func (in *Input) partitions(t testing.TB, text string) []Partitions {
	t.Helper()
	var all []Partitions
	for _, f := range strings.Fields(text) {
		topic := in.topic(t, f[:1])
		if n := len(all); n == 0 || all[n-1].Topic != topic {
			all = append(all, Partitions{Topic: topic})
		}
		last := &all[len(all)-1]
		last.List = append(last.List, number(t, f[1:]))
	}
	return all
}

// show is the text of a result, a line for each member.
func (in *Input) show(result [][]Partitions) string {
	var text strings.Builder
	for m, all := range result {
		fmt.Fprintf(&text, "%s:", in.Members[m].ID)
		for _, part := range all {
			for _, p := range part.List {
				fmt.Fprintf(&text, " %s%d", in.Topics[part.Topic].Name, p)
			}
		}
		text.WriteString("\n")
	}
	return text.String()
}

// demand compares a result with its text.
func demand(t *testing.T, in *Input, result [][]Partitions, want ...string) {
	t.Helper()
	if got, want := in.show(result), strings.Join(want, "\n")+"\n"; got != want {
		t.Errorf("the target is\n%s, not\n%s", got, want)
	}
}
