package group

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestAHostHasKafkasSlashInRecordsAndNoneInside(t *testing.T) {
	for _, written := range []string{"/10.0.0.1", "10.0.0.1"} { // By Kafka or now, and by an older muster.
		g := &group{id: "g"}
		g.members.add(g.reviveMember(&kmsg.GroupMetadataValueMember{MemberID: "m", ClientHost: written}))
		if got := g.members.first.host; got != "10.0.0.1" {
			t.Errorf("%s is loaded as %s", written, got)
		}
		if got := g.record().Value.Members[0].ClientHost; got != "/10.0.0.1" {
			t.Errorf("%s is written again as %s", written, got)
		}
	}
}
