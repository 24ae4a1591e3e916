package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"muster"
	"muster/cmd/muster/internal/brokers"
	"muster/internal/assert"
	"muster/internal/redistest"
)

// twoShells starts two brokers that share a Redis, and returns a shell for each.
func twoShells(t *testing.T, redis *redistest.Server, properties ...string) (shells []*shell, running []*muster.Broker) {
	t.Helper()
	for i := range 2 {
		b := startBroker(t, muster.Config{Redis: redis.URL()}, append(properties, "node.id", strconv.Itoa(i+1))...)
		shells, running = append(shells, &shell{t, b.Addr()}), append(running, b)
	}
	for _, s := range shells {
		redistest.Eventually(t, "the brokers to know each other", func() bool {
			return len(decode[[]brokers.Listed](s.run("brokers", "list", "--json"))) == 2
		})
	}
	return shells, running
}

// broker returns what list says of one.
func (s *shell) listed(id int32) brokers.Listed {
	s.t.Helper()
	for _, b := range decode[[]brokers.Listed](s.run("brokers", "list", "--json")) {
		if b.ID == id {
			return b
		}
	}
	s.t.Fatalf("broker %d is not listed", id)
	return brokers.Listed{}
}

func TestABrokerIsDrainedAndUndrained(t *testing.T) {
	shells, running := twoShells(t, redistest.Single(t))
	s := shells[0]
	s.run("topics", "create", "orders", "-p", "4").ok()
	led := s.listed(2).Partitions
	assert.MustTrue(t, led >= 2, "broker 2 leads %d partitions", led)
	// There may be more meanwhile: brokers create topics of their own.
	out := s.run("brokers", "drain", "2").ok()
	var moved int
	if _, err := fmt.Sscanf(out, "drained broker 2: moved %d partitions; it can be stopped now\n", &moved); err != nil || moved < led {
		t.Errorf("drain printed %q, and it led %d partitions", out, led)
	}
	for _, s := range shells {
		redistest.Eventually(t, "every broker to know that broker 2 is drained", func() bool {
			b := s.listed(2)
			return b.Partitions == 0 && b.Drained != nil && *b.Drained && b.Running
		})
	}
	if out := s.run("brokers", "list").ok(); !strings.Contains(out, "0  drained\n") || !strings.Contains(out, "running, controller\n") {
		t.Errorf("list printed\n%s", out)
	}
	s.run("topics", "create", "later", "-p", "4").ok()
	s.run("brokers", "drain", "2").prints("broker 2 is drained already; it leads no partitions\n")
	s.run("brokers", "drain", "1").fails(exitFailed, "at least one broker must not be drained")
	assert.Equal(t, decode[brokers.DrainResult](s.run("brokers", "drain", "2", "--json")), brokers.DrainResult{ID: 2, Drained: true})
	s.run("brokers", "drain", "2", "--undo").prints("broker 2 may lead partitions again\n")
	redistest.Eventually(t, "broker 2 to lead partitions again", func() bool {
		b := s.listed(2)
		return b.Partitions >= 4 && !*b.Drained
	})
	s.run("brokers", "undrain", "2").prints("broker 2 is not drained\n")

	s.run("brokers", "drain", "2").ok()
	must(t, running[1].Close())
	redistest.Eventually(t, "broker 2 to be gone", func() bool {
		b := s.listed(2)
		return !b.Running && *b.Drained
	})
	assert.Contains(t, s.run("brokers", "list").ok(), "drained, not running\n", "list printed")
	s.run("brokers", "undrain", "2").prints("broker 2 may lead partitions again when it is started\n")
}

func TestDrainsThatCannotBeSayWhy(t *testing.T) {
	s := newShell(t)
	s.run("brokers", "drain", "1").fails(exitFailed, "there is no other one to lead its partitions", "several brokers share a Redis store")
	s.run("brokers", "drain", "7").fails(exitFailed, "muster: there is no broker 7; running are 1")
	s.run("brokers", "undrain", "7").fails(exitFailed, "muster: there is no broker 7; running are 1")
	s.run("brokers", "undrain", "1").prints("broker 1 is not drained\n")
	for _, args := range [][]string{{}, {"x"}, {"-1"}, {"1", "2"}} {
		s.run(append([]string{"brokers", "drain"}, args...)...).fails(exitUsage)
	}
	list := decode[[]brokers.Listed](s.run("brokers", "list", "--json"))
	assert.True(t, len(list) == 1 && list[0].ID == 1 && list[0].Controller && list[0].Running && !*list[0].Drained, "%+v", list)
}
