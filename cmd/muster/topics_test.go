package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/topics"
	"muster/internal/assert"
)

func TestTopicsCreateListDescribe(t *testing.T) {
	s := newShell(t)
	r := s.run("topics", "list")
	same(t, "stdout of an empty list", r.ok(), "")
	same(t, "stderr of an empty list", r.err, "there are no topics yet; create one with: muster topics create NAME\n")

	s.run("topics", "create", "orders", "--partitions", "3", "-c", "retention.ms=60000").prints("created topic orders with 3 partitions\n")
	s.run("topics", "create", "users").prints("created topic users with 1 partition\n")
	s.pipe("a\n", "produce", "orders", "-p", "1").ok()
	out := s.run("topics", "list").ok()
	lines := strings.Split(out, "\n")
	same(t, "the title", lines[0], "NAME    PARTITIONS  RECORDS  SIZE")
	same(t, "users", lines[2], "users            1        0   0 B")
	if fields := strings.Fields(lines[1]); len(fields) != 5 || fields[0] != "orders" || fields[1] != "3" || fields[2] != "1" {
		t.Errorf("the line of orders is %q", lines[1])
	}

	out = s.run("topics", "describe", "orders").ok()
	for _, want := range []string{
		"Topic:       orders\n", "Partitions:  3\n", "Records:     1\n",
		"SETTING       VALUE\nretention.ms  60000\n", "PARTITION  LEADER  EPOCH  LOG START  LOG END  SIZE\n        0       1      0          0        0   0 B\n        1       1      0          0        1",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("describe does not print %q:\n%s", want, out)
		}
	}
	assert.Contains(t, s.run("topics", "describe", "users").ok(), "Settings:    as the broker has them", "describe of a topic without settings prints")
	if out := s.run("topics", "describe", "users", "--all").ok(); !strings.Contains(out, "retention.ms                             604800000            default\n") {
		t.Errorf("describe --all does not print retention.ms:\n%s", out)
	}
}

func TestTopicsListFilters(t *testing.T) {
	s := newShell(t)
	s.run("topics", "create", "a.x", "a.y", "ba").ok()
	names := func(args ...string) string {
		var out []string
		for _, topic := range decode[[]topics.Listed](s.run(append([]string{"topics", "list", "--json"}, args...)...)) {
			out = append(out, topic.Name)
		}
		return strings.Join(out, " ")
	}
	same(t, "all", names(), "a.x a.y ba")
	same(t, "those with an a. at the beginning", names(`^a\.`), "a.x a.y")
	same(t, "those with a b", names("b"), "ba")
	s.run("topics", "list", "--json", "zzz").prints("[]\n")
	r := s.run("topics", "list", "zzz")
	same(t, "stdout", r.ok(), "")
	same(t, "stderr", r.err, "no topic matches \"zzz\"\n")
}

func TestTopicsJSON(t *testing.T) {
	s := newShell(t)
	created := decode[[]topics.Created](s.run("topics", "create", "orders", "-p", "2", "-c", "cleanup.policy=compact", "--json"))
	if len(created) != 1 || created[0].Name != "orders" || !created[0].Created || created[0].Partitions != 2 || created[0].Error != nil {
		t.Fatalf("create --json printed %+v", created)
	}
	s.pipe("k:v\n", "produce", "orders", "-K", ":", "-p", "1").ok()

	list := decode[[]topics.Listed](s.run("topics", "list", "--json"))
	if len(list) != 1 || *list[0].Records != 1 || *list[0].SizeBytes == 0 || list[0].Partitions != 2 || list[0].Internal {
		t.Errorf("list --json printed %+v", list)
	}
	same(t, "the id in list", list[0].ID, created[0].ID)

	described := decode[[]topics.Described](s.run("topics", "describe", "orders", "--json"))[0]
	same(t, "the id in describe", described.ID, created[0].ID)
	same(t, "records", *described.Records, 1)
	if len(described.Settings) != 1 || described.Settings[0].Name != "cleanup.policy" || *described.Settings[0].Value != "compact" || described.Settings[0].Source != "topic" {
		t.Errorf("the settings are %+v", described.Settings)
	}
	p := described.Partitions[1]
	if p.Partition != 1 || p.Leader != 1 || *p.LogStartOffset != 0 || *p.LogEndOffset != 1 || *p.SizeBytes == 0 || len(p.Replicas) != 1 || len(p.ISR) != 1 {
		t.Errorf("partition 1 is %+v", p)
	}
	sources := map[string]bool{}
	for _, setting := range decode[[]topics.Described](s.run("topics", "describe", "orders", "--json", "--all"))[0].Settings {
		sources[setting.Source] = true
	}
	assert.True(t, sources["topic"] && sources["default"], "with --all the settings come from %v", sources)
}

func TestTopicsCreateReportsEachRefusal(t *testing.T) {
	s := newShell(t)
	s.run("topics", "create", "orders").ok()
	s.run("topics", "create", "orders").fails(exitFailed, `muster: topic "orders" already exists`)
	s.run("topics", "create", "orders", "--if-not-exists").prints("topic orders exists already\n")
	s.run("topics", "create", "bad name").fails(exitFailed, "bad name")
	s.run("topics", "create", "x", "-c", "retention.mss=1").fails(exitFailed, `unknown topic setting "retention.mss"; did you mean "retention.ms"?`)
	s.run("topics", "create", "x", "-c", "retention.ms=soon").fails(exitFailed, `retention.ms must be a whole number of 64 bits, not "soon"`)
	s.run("topics", "create", "x", "-p", "0").fails(exitFailed, "partitions, not 0")

	r := s.run("topics", "create", "orders", "a", "bad name", "b", "a").fails(exitFailed, "already exists", "bad name")
	same(t, "stdout", r.stdout, "created topic a with 1 partition\ncreated topic b with 1 partition\n")
	for line := range strings.Lines(r.err) {
		assert.True(t, strings.HasPrefix(line, "muster: "), "a line of stderr does not begin with the program's name: %q", line)
	}
	r = s.run("topics", "create", "orders", "c", "--json").fails(exitFailed)
	results := decode[[]topics.Created](r)
	if len(results) != 2 || results[0].Error == nil || results[0].Created || results[1].Error != nil || !results[1].Created {
		t.Errorf("create --json printed %s", r.stdout)
	}
}

func TestTopicsDescribeReportsUnknownTopics(t *testing.T) {
	s := newShell(t)
	s.run("topics", "create", "b", "a").ok()
	r := s.run("topics", "describe", "b", "nope", "a").fails(exitFailed, `muster: there is no topic "nope"`)
	if at, after := strings.Index(r.stdout, "Topic:       b"), strings.Index(r.stdout, "Topic:       a"); at < 0 || after < at {
		t.Errorf("the others are not described in the order of the arguments:\n%s", r.stdout)
	}
	s.run("topics", "list", "nope").ok() // To describe a topic does not create it.
	same(t, "the list", s.run("topics", "list", "nope").stdout, "")
}

func TestTopicsAlter(t *testing.T) {
	s := newShell(t)
	s.run("topics", "create", "a", "-c", "retention.ms=1000", "-c", "segment.ms=1000").ok()
	settings := func() string {
		var out []string
		for _, setting := range decode[[]topics.Described](s.run("topics", "describe", "a", "--json"))[0].Settings {
			out = append(out, setting.Name+"="+*setting.Value)
		}
		return strings.Join(out, " ")
	}
	partitions := func() int { return decode[[]topics.Listed](s.run("topics", "list", "--json"))[0].Partitions }

	s.run("topics", "alter", "a", "-c", "retention.ms=2000").prints("altered topic a\n")
	same(t, "after a change", settings(), "retention.ms=2000 segment.ms=1000")
	s.run("topics", "alter", "a", "--delete-config", "retention.ms", "-c", "cleanup.policy=compact").ok()
	same(t, "after a deletion", settings(), "cleanup.policy=compact segment.ms=1000")
	s.run("topics", "alter", "a", "--partitions", "4").ok()
	same(t, "partitions", partitions(), 4)

	s.run("topics", "alter", "a", "--partitions", "2").fails(exitFailed, "can only grow")
	s.run("topics", "alter", "a", "-c", "segment.ms=1", "--partitions", "2").fails(exitFailed, "can only grow")
	s.run("topics", "alter", "a", "-c", "nope=1", "--partitions", "9").fails(exitFailed, `unknown topic setting "nope"`)
	same(t, "settings after refusals", settings(), "cleanup.policy=compact segment.ms=1000")
	same(t, "partitions after refusals", partitions(), 4)
	s.run("topics", "alter", "nope", "-c", "segment.ms=1").fails(exitFailed, `there is no topic "nope"`)
	s.run("topics", "alter", "nope", "--partitions", "3").fails(exitFailed, `there is no topic "nope"`)

	r := decode[cli.Result](s.run("topics", "alter", "a", "-c", "segment.ms=x", "--json").fails(exitFailed))
	assert.True(t, r.Name == "a" && r.Error != nil && strings.Contains(*r.Error, "segment.ms"), "alter --json printed %+v", r)
	if r := decode[cli.Result](s.run("topics", "alter", "a", "-c", "segment.ms=5", "--json")); r.Error != nil {
		t.Errorf("alter --json printed %+v", r)
	}
}

func TestTopicsDelete(t *testing.T) {
	s := newShell(t)
	s.run("topics", "create", "a", "b", "c").ok()
	s.pipe("y\n", "topics", "delete", "a").fails(exitUsage, "add --yes")
	s.run("topics", "delete", "a", "--yes").prints("deleted topic a\n")
	r := s.run("topics", "delete", "a", "b", "-y").fails(exitFailed, `there is no topic "a"`)
	same(t, "stdout", r.stdout, "deleted topic b\n")
	results := decode[[]cli.Result](s.run("topics", "delete", "b", "c", "-y", "--json").fails(exitFailed))
	assert.True(t, len(results) == 2 && results[0].Error != nil && results[1].Error == nil, "delete --json printed %+v", results)
	s.run("topics", "list", "--json").prints("[]\n")
}

func TestConfirmTakesOnlyAYes(t *testing.T) {
	for answer, yes := range map[string]bool{"y\n": true, "YES\n": true, "yes": true, "n\n": false, "\n": false, "": false, "yep\n": false} {
		var out bytes.Buffer
		err := cli.Confirm(t.Context(), strings.NewReader(answer), &out, "Sure?", true)
		assert.Equal(t, err == nil, yes, "the answer %q gives %v", answer, err)
		same(t, "the question", out.String(), "Sure? [y/N] ")
	}
}

func TestConfirmEndsOnInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in, typing := io.Pipe()
	defer typing.Close()
	assert.ErrorIs(t, cli.Confirm(ctx, in, io.Discard, "Sure?", true), context.Canceled, "the error")
}
