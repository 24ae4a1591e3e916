package group

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/group/schema"
)

func TestAHostHasKafkasSlashInRecordsAndNoneInside(t *testing.T) {
	for _, written := range []string{"/10.0.0.1", "10.0.0.1"} { // By Kafka or now, and by an older muster.
		g := classic.New(kind.Base{ID: "g"})
		g.Members.Add(g.ReviveMember(&schema.GroupMember{MemberID: "m", ClientHost: written}, kind.Hosts{}))
		if got := g.Members.First.Who().Host; got != "10.0.0.1" {
			t.Errorf("%s is loaded as %s", written, got)
		}
		if got := g.Record().Value.Members[0].ClientHost; got != "/10.0.0.1" {
			t.Errorf("%s is written again as %s", written, got)
		}
	}
}

// There are many members and few hosts, whose names they share. A host that no one
// shared so far is remembered only up to a number.
func TestMembersOfOneHostShareItsName(t *testing.T) {
	known := kind.Hosts{}
	first, again := known.Of("10.0.0.1"), known.Of(strings.Clone("10.0.0.1"))
	if first != "/10.0.0.1" || unsafe.StringData(first) != unsafe.StringData(again) {
		t.Errorf("%s and %s are two copies", first, again)
	}
	e := schema.GroupMember{MemberID: "m", ClientHost: strings.Clone(first)}
	m := (classic.New(kind.Base{ID: "g"})).ReviveMember(&e, known)
	if unsafe.StringData(m.Host) != unsafe.StringData(first) || unsafe.StringData(e.ClientHost) != unsafe.StringData(first) {
		t.Error("a member that was loaded, or its record, has a copy")
	}
	for i := range 2 * kind.MaxHosts {
		if host := fmt.Sprint(i); known.Of(host) != "/"+host {
			t.Errorf("%s is %s", host, known.Of(host))
		}
	}
	if len(known) > kind.MaxHosts {
		t.Errorf("%d hosts are remembered", len(known))
	}
}

// There may be 100,000 groups, and as many members. The sizes are those of the
// allocator, so one field more may cost 32 bytes.
func TestMembersAndGroupsAreSmall(t *testing.T) {
	if n := unsafe.Sizeof(classic.Member{}); n > 256 {
		t.Errorf("a member takes %d bytes", n)
	}
	if n := unsafe.Sizeof(classic.Group{}); n > 288 {
		t.Errorf("a group takes %d bytes", n)
	}
}
