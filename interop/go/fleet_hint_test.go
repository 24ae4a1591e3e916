package interop

import (
	"errors"
	"net"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/redistest"
)

// Who asks a broker that does not lead a partition is told who does, and where
// that is, so that no look at the metadata is needed (KIP-951).
func TestABrokerNamesTheLeaderInItsPlace(t *testing.T) {
	onlyOn(t, "redis")
	f := startFleet(t, redistest.Single(t).URL(), 2, "--set", "broker.session.timeout.ms=20000")
	createTopic(t, f.addrs[0], "hinted", 1)
	f.hasAll()
	leader := f.leader("hinted", 0)
	w := dial(t, f.addrs[1-leader])
	_, port, err := net.SplitHostPort(f.addrs[leader])
	if err != nil {
		t.Fatal(err)
	}
	req := produceRequest("hinted", 0, -1, batch{values: values("v", 1)}.encode())
	req.Version = 10
	var resp *kmsg.ProduceResponse
	waitFor(t, "the other broker to hear of the topic", func() error {
		resp = ask[*kmsg.ProduceResponse](w, req)
		if err := kerr.ErrorForCode(produced(t, resp).ErrorCode); errors.Is(err, kerr.UnknownTopicOrPartition) {
			return err
		}
		return nil
	})
	p := produced(t, resp)
	wantCode(t, "produce to the other broker", p.ErrorCode, kerr.NotLeaderForPartition)
	if p.CurrentLeader.LeaderID != int32(leader+1) || len(resp.Brokers) != 1 || strconv.Itoa(int(resp.Brokers[0].Port)) != port {
		t.Errorf("hint %+v, brokers %+v; the leader is %d at %s", p.CurrentLeader, resp.Brokers, leader+1, f.addrs[leader])
	}
}
