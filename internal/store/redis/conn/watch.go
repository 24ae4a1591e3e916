package conn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"
)

// probeTimeout is after how long an unanswered probe has failed.
const probeTimeout = 2 * time.Second

// Watch looks at Redis every so often until ctx ends, and calls notify when it
// went away and when it came back, once each: with up or the error, and for
// how long it had been away. Redis counts as there when Watch begins.
func Watch(ctx context.Context, client rueidis.Client, every time.Duration, notify func(up bool, err error, downFor time.Duration)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var since time.Time // when it went away, zero if it did not
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		err := probe(ctx, client)
		if err != nil && since.IsZero() && time.Since(began) < probeTimeout {
			// A connection that was merely closed, by an idle timeout or a
			// proxy, is made again by the next command.
			err = probe(ctx, client)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && since.IsZero():
			since = began
			notify(false, err, 0)
		case err == nil && !since.IsZero():
			notify(true, nil, time.Since(since))
			since = time.Time{}
		}
	}
}

// probe says whether Redis serves.
func probe(ctx context.Context, client rueidis.Client) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if client.Mode() == rueidis.ClientModeCluster {
		return probeCluster(ctx, client)
	}
	return Attempt("asking redis whether it is there", client.Do(ctx, client.B().Ping().Build()).Error())
}

// probeCluster asks all nodes whether all slots are served. Those that answer
// must agree; those that do not are judged by the others, who know whether they
// are replicas.
func probeCluster(ctx context.Context, client rueidis.Client) error {
	type answer struct {
		silent, denied error
	}
	nodes := client.Nodes()
	answers := make(chan answer, len(nodes))
	for address, node := range nodes {
		go func() {
			text, err := node.Do(ctx, node.B().ClusterInfo().Build()).ToString()
			if err != nil && !IsPassing(err) {
				answers <- answer{} // It may not be asked, but it is there.
			} else if err != nil {
				answers <- answer{silent: fmt.Errorf("node %s: %w", address, err)}
			} else if err := allSlotsServed(text); err != nil {
				answers <- answer{denied: fmt.Errorf("node %s: %w", address, err)}
			} else {
				answers <- answer{}
			}
		}()
	}
	served := false
	var silent, denied error
	for range nodes {
		a := <-answers
		served = served || a == answer{}
		silent, denied = cmp.Or(a.silent, silent), cmp.Or(a.denied, denied)
	}
	switch {
	case denied != nil:
		return Attempt("asking redis whether it is there", denied)
	case !served:
		return Attempt("asking redis whether it is there", cmp.Or(silent, rueidis.ErrNoAddr))
	}
	return nil
}

// allSlotsServed reads the answer of CLUSTER INFO.
func allSlotsServed(text string) error {
	f := make(facts)
	f.read(text)
	switch {
	case f["cluster_state"] != "ok":
		return errors.New("the cluster's state is " + f["cluster_state"])
	case f["cluster_slots_ok"] != f["cluster_slots_assigned"]:
		return fmt.Errorf("of %s slots %s are served", f["cluster_slots_assigned"], f["cluster_slots_ok"])
	}
	return nil
}
