package redistest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// Primary waits until some node takes writes for a key, and returns it.
func (s *Server) Primary(t testing.TB, key string) *Node {
	t.Helper()
	var found *Node
	if err := Poll(settle, func() (err error) {
		found, err = s.primary(key)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

func (s *Server) primary(key string) (*Node, error) {
	switch s.Kind {
	case KindCluster:
		return s.slotOwner(key)
	case KindSentinel:
		return s.monitored()
	default:
		return s.Nodes[0], nil
	}
}

// monitored returns the primary that most sentinels name, if it agrees.
func (s *Server) monitored() (*Node, error) {
	votes := make(map[int]int)
	for _, sentinel := range s.Sentinels {
		v, err := sentinel.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName)
		if addr, ok := v.([]any); err == nil && ok && len(addr) == 2 {
			port, _ := addr[1].(string)
			n, _ := strconv.Atoi(port)
			votes[n]++
		}
	}
	for _, n := range s.Nodes {
		if votes[n.Port] >= 2 && n.IsPrimary() {
			return n, nil
		}
	}
	return nil, fmt.Errorf("the sentinels name no primary: %v", votes)
}

// slotOwner returns the node that owns a key's slot, if it and others say so.
func (s *Server) slotOwner(key string) (*Node, error) {
	votes := make(map[int64]int)
	for _, n := range s.Nodes {
		slot, err := n.Do("CLUSTER", "KEYSLOT", key)
		if err != nil {
			continue
		}
		v, err := n.Do("CLUSTER", "SLOTS")
		ranges, ok := v.([]any)
		if err != nil || !ok {
			continue
		}
		for _, r := range ranges {
			fields := r.([]any)
			if fields[0].(int64) <= slot.(int64) && slot.(int64) <= fields[1].(int64) {
				votes[fields[2].([]any)[1].(int64)]++
			}
		}
	}
	for _, n := range s.Nodes {
		if votes[int64(n.Port)] > len(s.Nodes)/2 && n.IsPrimary() {
			return n, nil
		}
	}
	return nil, fmt.Errorf("the nodes name no owner of %s: %v", key, votes)
}

// Replicas returns the nodes that follow a primary.
func (s *Server) Replicas(primary *Node) []*Node {
	var replicas []*Node
	for _, n := range s.Nodes {
		if n.Info("replication", "master_port") == strconv.Itoa(primary.Port) {
			replicas = append(replicas, n)
		}
	}
	return replicas
}

// AwaitReplicas waits until so many replicas follow a primary.
func (s *Server) AwaitReplicas(t testing.TB, primary *Node, replicas int) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%d replicas", replicas), func() bool {
		text, err := primary.Text("INFO", "replication")
		return err == nil && strings.Count(text, "state=online") >= replicas
	})
}
