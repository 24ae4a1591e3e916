package handler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/handler"
	"muster/internal/protocol"
	"muster/internal/store"
)

// fixedChecker is a store that says of its logs what it is told to.
type fixedChecker struct {
	store.Store
	asked []string
	found store.Checked
	err   error
}

func (f *fixedChecker) Check(_ context.Context, tp store.TopicPartition, from int64) (store.Checked, error) {
	f.asked = append(f.asked, fmt.Sprint(tp, from))
	return f.found, f.err
}

// checks asks for a check of a partition.
func checks(partition int32, from int64) *kmsg.DescribeTopicPartitionsRequest {
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	req.ResponsePartitionLimit = 10
	topic := kmsg.NewDescribeTopicPartitionsRequestTopic()
	topic.Topic = "t"
	protocol.AskCheck(&topic.UnknownTags, from)
	req.Topics = append(req.Topics, topic)
	req.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: "t", Partition: partition}
	return req
}

func TestThePartitionThatIsAskedForIsCheckedAndNoOther(t *testing.T) {
	w := newWorld(t)
	f := &fixedChecker{found: store.Checked{Layout: store.LayoutIndexed, Start: 1, Next: 9, End: 12, Records: 3, Deleted: 2, Wrong: []string{"that"}}}
	w.opts.Checker = f
	w.h = handler.New(w.opts)
	partitions := w.request(checks(0, 7)).(*kmsg.DescribeTopicPartitionsResponse).Topics[0].Partitions
	got := protocol.GetCheck(&partitions[0].UnknownTags)
	assert.True(t, got != nil && fmt.Sprintf("%+v", *got) == "{Unable: Layout:indexed Start:1 End:12 Next:9 Records:3 Deleted:2 Wrong:[that]}", "%+v", got)
	assert.True(t, len(partitions) == 2 && protocol.GetCheck(&partitions[1].UnknownTags) == nil, "%d partitions", len(partitions))
	w.request(checks(1, 0))
	plain := checks(1, 0)
	plain.Topics[0].UnknownTags = kmsg.Tags{}
	w.request(plain)
	w.request(checks(5, 0))
	if asked := strings.Join(f.asked, ", "); asked != "t-0 7, t-1 0" && asked != "{t 0} 7, {t 1} 0" {
		t.Errorf("checked: %s", asked)
	}
	f.err = errors.New("away")
	p := w.request(checks(0, 0)).(*kmsg.DescribeTopicPartitionsResponse).Topics[0].Partitions[0]
	assert.True(t, p.ErrorCode == kerr.KafkaStorageError.Code && protocol.GetCheck(&p.UnknownTags) == nil, "%+v", p)
}

func TestWhatCannotBeCheckedSaysWhy(t *testing.T) {
	w := newWorld(t)
	why := func() string {
		c := protocol.GetCheck(&w.request(checks(0, 0)).(*kmsg.DescribeTopicPartitionsResponse).Topics[0].Partitions[0].UnknownTags)
		assert.MustTrue(t, c != nil, "there is no answer")
		return c.Unable
	}
	assert.Contains(t, why(), "not in Redis", "no checker")
	w.opts.Checker = &fixedChecker{found: store.Checked{Layout: "another", Unable: "it has no index"}}
	w.h = handler.New(w.opts)
	assert.Equal(t, why(), "it has no index", "another layout")
}

func TestACheckNeedsDescribeOnTheTopic(t *testing.T) {
	w := newGuardedWorld(t)
	f := &fixedChecker{}
	w.opts.Checker = f
	w.h = handler.New(w.opts)
	if got := w.as(alice, checks(0, 0)).(*kmsg.DescribeTopicPartitionsResponse).Topics[0]; got.ErrorCode != kerr.TopicAuthorizationFailed.Code || len(f.asked) > 0 {
		t.Errorf("%+v", got)
	}
}

func TestAConversionNeedsAlterOnTheTopic(t *testing.T) {
	w := newGuardedWorld(t)
	req := checks(0, 0)
	req.Topics[0].UnknownTags = kmsg.Tags{}
	protocol.AskConvert(&req.Topics[0].UnknownTags, protocol.Convert{Step: protocol.ConvertLeave, Run: "alice's"})
	w.may(alice, auth.Read, auth.Topic, "t") // Which implies DESCRIBE.
	ask := func() kmsg.DescribeTopicPartitionsResponseTopic {
		return w.as(alice, req).(*kmsg.DescribeTopicPartitionsResponse).Topics[0]
	}
	if got := ask(); got.ErrorCode != kerr.TopicAuthorizationFailed.Code || len(got.Partitions) > 0 {
		t.Errorf("without ALTER: %+v", got)
	}
	w.may(alice, auth.Alter, auth.Topic, "t")
	got := ask()
	assert.MustTrue(t, got.ErrorCode == 0 && len(got.Partitions) > 0, "with ALTER: %+v", got)
	out := protocol.GetConverting(&got.Partitions[0].UnknownTags)
	assert.MustTrue(t, out != nil, "there is no answer")
	assert.Contains(t, out.Unable, "not in Redis")
}

// layoutsOf is a store whose logs have layouts.
type layoutsOf struct {
	store.Store
	layout store.Layout
}

func (l layoutsOf) Layouts(_ context.Context, tps []store.TopicPartition) ([]store.LogLayout, error) {
	return slices.Repeat([]store.LogLayout{{Layout: l.layout}}, len(tps)), nil
}

func (layoutsOf) Places(context.Context, []store.Place) ([]int64, error) { return nil, nil }

func TestAConversionIsAuditedOnceItIsDone(t *testing.T) {
	w, told := audited(t)
	step := func(layout store.Layout, step string) (*protocol.Converting, string) {
		w.opts.Converter = layoutsOf{layout: layout}
		w.h = handler.New(w.opts)
		req := checks(0, 0)
		req.Topics[0].UnknownTags = kmsg.Tags{}
		protocol.AskConvert(&req.Topics[0].UnknownTags, protocol.Convert{Step: step, Run: "1"})
		resp := w.request(req).(*kmsg.DescribeTopicPartitionsResponse)
		return protocol.GetConverting(&resp.Topics[0].Partitions[0].UnknownTags), summary(told())
	}
	for _, s := range []string{protocol.ConvertPreview, protocol.ConvertPrepare, protocol.ConvertSwitch, protocol.ConvertFinish} {
		if out, entries := step("log", s); out == nil || out.Unable == "" || entries != "" {
			t.Errorf("step %s, where it cannot be done: %+v, %q", s, out, entries)
		}
	}
	out, entries := step(store.LayoutIndexed, protocol.ConvertFinish)
	if out == nil || !out.Done || entries != "settings-changed topic t (muster.redis.layout=indexed)" {
		t.Errorf("%+v, %q", out, entries)
	}
}
