package group

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"muster/internal/group/schema"
)

func TestAHostHasKafkasSlashInRecordsAndNoneInside(t *testing.T) {
	for _, written := range []string{"/10.0.0.1", "10.0.0.1"} { // By Kafka or now, and by an older muster.
		g := newClassicGroup(base{id: "g"})
		g.members.add(g.reviveMember(&schema.GroupMember{MemberID: "m", ClientHost: written}, hosts{}))
		if got := g.members.first.who().Host; got != "10.0.0.1" {
			t.Errorf("%s is loaded as %s", written, got)
		}
		if got := g.record().Value.Members[0].ClientHost; got != "/10.0.0.1" {
			t.Errorf("%s is written again as %s", written, got)
		}
	}
}

// There are many members and few hosts, whose names they share. A host that nobody
// shared so far is remembered only up to a number.
func TestMembersOfOneHostShareItsName(t *testing.T) {
	known := hosts{}
	first, again := known.of("10.0.0.1"), known.of(strings.Clone("10.0.0.1"))
	if first != "/10.0.0.1" || unsafe.StringData(first) != unsafe.StringData(again) {
		t.Errorf("%s and %s are two copies", first, again)
	}
	e := schema.GroupMember{MemberID: "m", ClientHost: strings.Clone(first)}
	m := (newClassicGroup(base{id: "g"})).reviveMember(&e, known)
	if unsafe.StringData(m.host) != unsafe.StringData(first) || unsafe.StringData(e.ClientHost) != unsafe.StringData(first) {
		t.Error("a member that was loaded, or its record, has a copy")
	}
	for i := range 2 * maxHosts {
		if host := fmt.Sprint(i); known.of(host) != "/"+host {
			t.Errorf("%s is %s", host, known.of(host))
		}
	}
	if len(known) > maxHosts {
		t.Errorf("%d hosts are remembered", len(known))
	}
}

// There may be 100,000 groups, and as many members. The sizes are those of the
// allocator, so one field more may cost 32 bytes.
func TestMembersAndGroupsAreSmall(t *testing.T) {
	if n := unsafe.Sizeof(member{}); n > 256 {
		t.Errorf("a member takes %d bytes", n)
	}
	if n := unsafe.Sizeof(classicGroup{}); n > 288 {
		t.Errorf("a group takes %d bytes", n)
	}
}
