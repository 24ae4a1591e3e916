package handler_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/coordinator"
	"muster/internal/handler"
	"muster/internal/metadata"
)

func TestTransactionsAreFilteredByStateProducerAndPattern(t *testing.T) {
	w, pid, _ := begun(t)
	w.initTxn("xy")
	list := func(change func(*kmsg.ListTransactionsRequest)) *kmsg.ListTransactionsResponse {
		req := kmsg.NewPtrListTransactionsRequest()
		req.Version, req.DurationFilterMillis = 2, -1
		change(req)
		return w.request(req).(*kmsg.ListTransactionsResponse)
	}
	pattern := func(p string) func(*kmsg.ListTransactionsRequest) {
		return func(r *kmsg.ListTransactionsRequest) { r.TransactionalIDPattern = &p }
	}
	for name, tt := range map[string]struct {
		change func(*kmsg.ListTransactionsRequest)
		want   string
		code   *kerr.Error
	}{
		"all":                           {func(*kmsg.ListTransactionsRequest) {}, "x xy", nil},
		"a state":                       {func(r *kmsg.ListTransactionsRequest) { r.StateFilters = []string{"Ongoing"} }, "x", nil},
		"no state":                      {func(r *kmsg.ListTransactionsRequest) { r.StateFilters = []string{"ongoing", "ongoing"} }, "", nil},
		"a producer":                    {func(r *kmsg.ListTransactionsRequest) { r.ProducerIDFilters = []int64{1, pid} }, "x", nil},
		"another producer":              {func(r *kmsg.ListTransactionsRequest) { r.ProducerIDFilters = []int64{1} }, "", nil},
		"a pattern":                     {pattern("x.+"), "xy", nil},
		"the whole id":                  {pattern("x"), "x", nil},
		"alternatives":                  {pattern("x|xy"), "x xy", nil},
		"no pattern":                    {pattern(""), "x xy", nil},
		"a bad pattern":                 {pattern("x)|(y"), "", kerr.InvalidRegularExpression},
		"a long pattern":                {pattern(strings.Repeat("x", 5000)), "", kerr.InvalidRegularExpression},
		"a pattern that takes too long": {pattern("(?:" + strings.Repeat("x*", 400) + "){1000}"), "", kerr.InvalidRegularExpression},
		"a pattern too large":           {pattern("(((x{1000}){1000}){1000})"), "", kerr.InvalidRegularExpression},
	} {
		resp := list(tt.change)
		var ids []string
		for _, s := range resp.TransactionStates {
			ids = append(ids, s.TransactionalID)
		}
		if got := strings.Join(ids, " "); got != tt.want || kerr.TypedErrorForCode(resp.ErrorCode) != tt.code {
			t.Errorf("%s: %q, error %d", name, got, resp.ErrorCode)
		}
		if unknown := resp.UnknownStateFilters; name == "no state" && !slices.Equal(unknown, []string{"ongoing"}) {
			t.Errorf("unknown states %q", unknown)
		}
	}
}

func TestABrokerThatHasNotTakenUpWhatItCoordinatesDoesNotListIt(t *testing.T) {
	w, _, _ := begun(t)
	for name, epochs := range map[string][]int32{"no shard": nil, "one of two": {coordinator.NotLed, 0}} {
		w.txns.Lead(epochs)
		req := kmsg.NewPtrListTransactionsRequest()
		req.Version, req.DurationFilterMillis = 2, -1
		resp := w.request(req).(*kmsg.ListTransactionsResponse)
		if resp.ErrorCode != kerr.CoordinatorLoadInProgress.Code || len(resp.TransactionStates) != 0 {
			t.Errorf("%s: error %d, listed are %+v", name, resp.ErrorCode, resp.TransactionStates)
		}
	}
}

func TestTransactionsAreDescribed(t *testing.T) {
	w, pid, epoch := begun(t)
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{"x", "none", ""}
	states := map[string]kmsg.DescribeTransactionsResponseTransactionState{}
	for _, s := range w.request(req).(*kmsg.DescribeTransactionsResponse).TransactionStates {
		states[s.TransactionalID] = s
	}
	x := states["x"]
	if x.ErrorCode != 0 || x.State != "Ongoing" || x.ProducerID != pid || x.ProducerEpoch != epoch || x.TimeoutMillis != 60_000 || x.StartTimestamp <= 0 {
		t.Errorf("%+v", x)
	}
	assert.True(t, len(x.Topics) == 1 && x.Topics[0].Topic == "t" && slices.Equal(x.Topics[0].Partitions, []int32{0, 1}), "its partitions are %+v", x.Topics)
	assert.True(t, states["none"].ErrorCode == kerr.TransactionalIDNotFound.Code && states[""].ErrorCode == kerr.InvalidRequest.Code, "%+v", states)
}

func TestClientsAreToldWhichFeaturesThereAre(t *testing.T) {
	w := newWorld(t)
	for version := range int16(5) {
		req := kmsg.NewPtrApiVersionsRequest()
		req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = version, "x", "1"
		resp := w.request(req).(*kmsg.ApiVersionsResponse)
		has, supported := map[string]int16{}, map[string]int16{}
		for _, f := range resp.FinalizedFeatures {
			has[f.Name] = f.MaxVersionLevel
		}
		for _, f := range resp.SupportedFeatures {
			supported[f.Name] = f.MaxVersion
		}
		want, none := map[string]int16{"group.version": 1, "share.version": 1, "streams.version": 1, "transaction.version": 2}, map[string]int16{}
		if version < 3 && !maps.Equal(has, none) || version >= 3 && (!maps.Equal(has, want) || resp.FinalizedFeaturesEpoch < 0) {
			t.Errorf("v%d: %+v, epoch %d", version, resp.FinalizedFeatures, resp.FinalizedFeaturesEpoch)
		}
		if version < 4 && !maps.Equal(supported, none) || version >= 4 && !maps.Equal(supported, want) {
			t.Errorf("v%d: supported %+v", version, resp.SupportedFeatures)
		}
	}
}

// streamWorld keeps topics as Redis streams, as far as settings say.
func streamWorld(t testing.TB) *world {
	t.Helper()
	w := worldWith(t, map[string]string{"muster.store": "redis", "muster.redis.layout": "stream"})
	w.fillWorld()
	return w
}

func TestAStreamHoldsNoTransactions(t *testing.T) {
	w := streamWorld(t)
	pid, epoch := w.initTxn("x")
	id := "x"
	got := w.produceTxn(12, &id, txnBatch(t, pid, epoch, 1))
	if got[0].ErrorCode != kerr.UnsupportedForMessageFormat.Code || got[0].ErrorMessage == nil || !strings.Contains(*got[0].ErrorMessage, "muster.redis.layout=indexed") {
		t.Errorf("%+v", got)
	}
	if got := w.produceTxn(12, nil, batch(t, 1)); got[0].ErrorCode != 0 {
		t.Errorf("a batch of no transaction: %+v", got)
	}
}

func TestATopicThatATransactionalProducerAsksForCanHoldTransactions(t *testing.T) {
	w := streamWorld(t)
	now := time.Now()
	w.opts.Now = func() time.Time { return now }
	w.h = handler.New(w.opts)
	layout := func(name string) string {
		w.metadataOf(name)
		return w.c.Image().Topic(name).Set["muster.redis.layout"]
	}
	assert.Equal(t, layout("before"), "", "before")
	w.initTxn("x")
	assert.Equal(t, layout("after"), "indexed", "after")
	now = now.Add(time.Hour)
	assert.Equal(t, layout("later"), "", "later")
}

func TestOnlySoManyTransactionalClientsAreRemembered(t *testing.T) {
	w := streamWorld(t)
	w.initTxn("x")
	for i := range 1000 {
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.Version, find.CoordinatorType, find.CoordinatorKeys = 4, 1, []string{"k"}
		frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("other"+strconv.Itoa(i))).AppendRequest(nil, find, 7)[4:]
		if _, err := w.h.Serve(t.Context(), handler.Origin{Listener: "L", Host: "127.0.0.1"}, frame); err != nil {
			t.Fatal(err)
		}
	}
	w.metadataOf("after")
	assert.Equal(t, w.c.Image().Topic("after").Set["muster.redis.layout"], "", "a client is remembered after a thousand others")
}

func TestTheCoordinatorOfATransactionIsFound(t *testing.T) {
	w := newWorld(t)
	for version := int16(1); version <= 6; version++ {
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.Version, find.CoordinatorType, find.CoordinatorKey, find.CoordinatorKeys = version, 1, "x", []string{"x"}
		resp := w.request(find).(*kmsg.FindCoordinatorResponse)
		code, node := resp.ErrorCode, resp.NodeID
		if version >= 4 {
			code, node = resp.Coordinators[0].ErrorCode, resp.Coordinators[0].NodeID
		}
		assert.True(t, code == 0 && node == 1, "v%d: error %d, node %d", version, code, node)
	}
	assert.True(t, metadata.IsInternal(metadata.TransactionsTopic), "its topic is not internal")
}
