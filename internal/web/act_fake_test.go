package web

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"muster/internal/auth"
	"muster/internal/watch/groupview"
)

// fakeActs notes what it is told to do.
type fakeActs struct {
	did       []string
	fails     error
	committed map[groupview.TopicPartition]int64
	holds     func() // Called by Committed.
}

func (f *fakeActs) note(who Asker, format string, args ...any) error {
	f.did = append(f.did, fmt.Sprintf("%s@%s ", who.Principal, who.Host)+fmt.Sprintf(format, args...))
	return f.fails
}

func (f *fakeActs) CreateTopic(_ context.Context, who Asker, t *NewTopic, only bool) (int32, error) {
	return 3, f.note(who, "create %s %t", t.Name, only)
}

func (f *fakeActs) DeleteTopic(_ context.Context, who Asker, topic string) error {
	return f.note(who, "delete %s", topic)
}

func (f *fakeActs) AddPartitions(_ context.Context, who Asker, topic string, count int32, only bool) error {
	return f.note(who, "grow %s %d %t", topic, count, only)
}

func (f *fakeActs) AlterTopic(_ context.Context, who Asker, topic string, change *ChangedConfigs, only bool) error {
	return f.note(who, "alter %s %v %v %t", topic, change.Set, change.Delete, only)
}

func (f *fakeActs) Produce(_ context.Context, who Asker, topic string, m *Message) (partition int32, offset int64, err error) {
	return 1, 1 << 60, f.note(who, "produce %s %q %q", topic, m.Key, m.Value)
}

func (f *fakeActs) DeleteRecords(_ context.Context, who Asker, topic string, before map[int32]int64) (map[int32]int64, error) {
	return before, f.note(who, "trim %s %v", topic, before)
}

func (f *fakeActs) Committed(context.Context, Asker, string, []groupview.TopicPartition) (map[groupview.TopicPartition]int64, error) {
	out := maps.Clone(f.committed) // As it is when somebody asks.
	if f.holds != nil {
		f.holds()
	}
	return out, nil
}

func (f *fakeActs) Offsets(_ context.Context, _ Asker, of []groupview.TopicPartition, _ *time.Time) (map[groupview.TopicPartition]Place, error) {
	out := map[groupview.TopicPartition]Place{}
	for _, tp := range of {
		out[tp] = Place{End: 100, At: 50, Dense: true}
	}
	return out, nil
}

func (f *fakeActs) Commit(_ context.Context, who Asker, group string, to map[groupview.TopicPartition]int64) error {
	for tp, at := range to {
		f.committed[tp] = at
	}
	return f.note(who, "commit %s %v", group, to)
}

func (f *fakeActs) DeleteGroup(_ context.Context, who Asker, group string) error {
	return f.note(who, "delete group %s", group)
}

func (f *fakeActs) DeleteOffsets(_ context.Context, who Asker, group, topic string, partitions []int32) error {
	return f.note(who, "forget %s %s %v", group, topic, partitions)
}

func (f *fakeActs) RemoveMember(_ context.Context, who Asker, group string, m *MemberToRemove) error {
	return f.note(who, "remove %s %s%s", group, m.Member, m.Instance)
}

func (f *fakeActs) SetPassword(_ context.Context, who Asker, user, password string, mechanisms []string) error {
	return f.note(who, "password %s %s %v", user, password, mechanisms)
}

func (f *fakeActs) DeleteUser(_ context.Context, who Asker, user string) error {
	return f.note(who, "delete user %s", user)
}

func (f *fakeActs) AddRule(_ context.Context, who Asker, r auth.Rule) error {
	return f.note(who, "allow %s", r)
}

func (f *fakeActs) RemoveRule(_ context.Context, who Asker, r auth.Rule) (bool, error) {
	return true, f.note(who, "disallow %s", r)
}

func (f *fakeActs) AlterQuota(_ context.Context, who Asker, q *ChangedQuota, only bool) error {
	return f.note(who, "quota %s %v %v %t", quotaWords(q.Entity), q.Set, q.Remove, only)
}

// bringing gives a request a body.
func bringing(contentType, body string) func(*http.Request) {
	return func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Type", contentType)
	}
}

func acting(f *fakeActs) func(*Options) { return func(o *Options) { o.Actions = f } }
