package source

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/protocol"
	"muster/internal/watch"
)

const (
	// boundsVersion is the version of ListOffsets that leaders are asked in.
	boundsVersion = 7
	// boundsAtOnce and boundsBytes are how many partitions one request asks for, and how
	// long it is: peers refuse what is too long.
	boundsAtOnce = 2000
	boundsBytes  = 1 << 20
	latest       = -1 // The timestamp that stands for the high watermark.
)

// Elsewhere implements watch.Source: all leaders are asked at the same time.
func (s *Source) Elsewhere(ctx context.Context, questions []watch.Question) []watch.Answer {
	out := make([]watch.Answer, len(questions))
	byLeader := map[int32][]int{}
	for i := range questions {
		byLeader[questions[i].Leader] = append(byLeader[questions[i].Leader], i)
	}
	var running sync.WaitGroup
	for leader, places := range byLeader {
		running.Go(func() {
			for len(places) > 0 && ctx.Err() == nil {
				n := boundsFit(questions, places)
				s.askBounds(ctx, leader, questions, places[:n], out)
				places = places[n:]
			}
		})
	}
	running.Wait()
	return out
}

// boundsFit says how many of the questions fit into one request, one at least.
func boundsFit(questions []watch.Question, places []int) int {
	size := 0
	for n, i := range places {
		size += len(questions[i].Topic)
		for _, r := range questions[i].Readers {
			size += len(r.ClientID) + len(r.Host)
		}
		if n == boundsAtOnce || n > 0 && size > boundsBytes {
			return n
		}
	}
	return len(places)
}

// askBounds asks one leader for some of the questions. What it does not answer stays
// unknown.
func (s *Source) askBounds(ctx context.Context, leader int32, questions []watch.Question, places []int, out []watch.Answer) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version = boundsVersion
	at := map[watch.Part]int{}
	topics := map[string]int{}
	for _, i := range places {
		q := &questions[i]
		n, ok := topics[q.Topic]
		if !ok {
			n = len(req.Topics)
			topics[q.Topic] = n
			t := kmsg.NewListOffsetsRequestTopic()
			t.Topic = q.Topic
			req.Topics = append(req.Topics, t)
		}
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = q.Partition, latest
		readers := make([]protocol.Reader, len(q.Readers))
		for j, r := range q.Readers {
			readers[j] = protocol.Reader(r)
		}
		protocol.AskBounds(&p.UnknownTags, readers)
		req.Topics[n].Partitions = append(req.Topics[n].Partitions, p)
		at[watch.Part{Topic: q.Topic, Partition: q.Partition}] = i
	}
	resp, err := s.opts.Ask(ctx, leader, req)
	if err != nil {
		s.opts.Logger.Debug("a leader could not be asked for its partitions", "node", leader, "partitions", len(places), "error", err)
		return
	}
	answers, ok := resp.(*kmsg.ListOffsetsResponse)
	if !ok {
		return
	}
	for _, t := range answers.Topics {
		for j := range t.Partitions {
			p := &t.Partitions[j]
			i, asked := at[watch.Part{Topic: t.Topic, Partition: p.Partition}]
			if b, ok := protocol.GetBounds(&p.UnknownTags); ok && asked && p.ErrorCode == 0 {
				out[i] = answer(p.Offset, b, s.opts.Now())
			}
		}
	}
}

func answer(end int64, b protocol.Bounds, now time.Time) watch.Answer {
	a := watch.Answer{Known: true, Log: watch.Log{Start: b.Start, End: end, LastStable: b.LastStable, Bytes: b.Bytes, Tail: b.Tail}}
	for _, ago := range b.Fetched {
		f := watch.Fetched{Known: ago >= protocol.NeverFetched}
		if ago >= 0 {
			f.At = now.Add(-time.Duration(ago) * time.Millisecond)
		}
		a.Fetched = append(a.Fetched, f)
	}
	return a
}
