package handler_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/audit"
	"muster/internal/auth"
	"muster/internal/handler"
)

// A request that is no frame is answered as one that is: by the same rights, and told to the
// audit log; a version that is not served is refused.
func TestARequestThatIsNoFrameIsAnsweredAsOneThatIs(t *testing.T) {
	w := newGuardedWorld(t)
	var told []audit.Entry
	w.opts.Audit = func(e audit.Entry) { told = append(told, e) }
	w.h = handler.New(w.opts)
	var denied []auth.Request
	ask := func(who auth.Principal, req kmsg.Request) kmsg.Response {
		t.Helper()
		resp, err := w.h.Answer(t.Context(), handler.Origin{
			Listener: "L", Host: "10.0.0.1", Principal: who, Via: audit.ViaHTTP, Denied: func(q auth.Request) { denied = append(denied, q) },
		}, "page", req)
		must(t, err)
		return resp
	}
	create := func() kmsg.Request {
		req := kmsg.NewPtrCreateTopicsRequest()
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "made", 1, -1
		req.Version, req.Topics = 7, append(req.Topics, topic)
		return req
	}
	if got := ask(alice, create()).(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode; got != kerr.TopicAuthorizationFailed.Code || len(denied) != 1 || len(told) != 0 {
		t.Errorf("without the right: %d, denied %v, told %v", got, denied, told)
	}
	assert.Equal(t, ask(root, create()).(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode, 0, "with the right")
	if len(told) != 1 || told[0].Kind != audit.TopicCreated || told[0].Via != audit.ViaHTTP || told[0].ClientID != "page" || told[0].Principal != string(root) {
		t.Errorf("told %+v", told)
	}
	produced := ask(root, w.produceRequest(9, 0)).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	if again := ask(root, w.produceRequest(9, 0)).(*kmsg.ProduceResponse).Topics[0].Partitions[0]; produced.ErrorCode != 0 || again.ErrorCode != 0 || again.BaseOffset <= produced.BaseOffset {
		t.Errorf("produced %+v, then %+v", produced, again)
	}
	newer := create()
	newer.SetVersion(100)
	if resp, err := w.h.Answer(t.Context(), handler.Origin{Listener: "L", Principal: root}, "page", newer); err == nil {
		t.Errorf("a version that is not served is answered: %+v", resp)
	}
}
