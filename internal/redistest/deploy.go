package redistest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// settle is how long a deployment may take until its nodes have found one
// another.
const settle = 60 * time.Second

// common is the configuration of every server with data. What was written
// survives a kill, since it is in the page cache; the disk itself is not
// waited for, which tests need not.
var common = []string{
	`save ""`,
	"appendonly yes",
	"appendfsync no",
	"auto-aof-rewrite-percentage 0",
	"repl-diskless-sync yes",
	"repl-diskless-sync-delay 0",
	"repl-ping-replica-period 1",
}

// startNodes starts n servers that do not know one another. Other programs
// look for ports too, so a server that finds its port taken gets another one.
func (s *Server) startNodes(binary, dir string, n int, config []string, perNode ...func() (string, error)) error {
	for i := range n {
		var err error
		for attempt := range 3 {
			var node *Node
			if node, err = s.newNode(binary, dir, fmt.Sprintf("node-%d-%d", i, attempt), config, perNode); err != nil {
				return err
			}
			if err = node.start(); err == nil {
				s.Nodes = append(s.Nodes, node)
				break
			}
			node.Kill()
			if !strings.Contains(node.logTail(), "bind") {
				break
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) newNode(binary, dir, name string, config []string, perNode []func() (string, error)) (*Node, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	lines := append([]string{}, common...)
	for _, line := range perNode {
		text, err := line()
		if err != nil {
			return nil, err
		}
		lines = append(lines, text)
	}
	return newNode(binary, dir, name, port, append(lines, config...))
}

// startCluster starts six nodes and joins them.
func (s *Server) startCluster(binary, dir string, patience time.Duration, config []string) error {
	busPort := func() (string, error) {
		port, err := freePort()
		return fmt.Sprintf("cluster-port %d", port), err
	}
	config = append([]string{
		"cluster-enabled yes",
		"cluster-node-timeout 1000", // Nodes with more patience take longer to find one another.
		"cluster-require-full-coverage no",
		"cluster-replica-validity-factor 0",
		"cluster-allow-replica-migration no",
		"cluster-replica-no-failover yes", // Until all is there.
	}, config...)
	if err := s.startNodes(binary, dir, 6, config, busPort); err != nil {
		return err
	}
	if err := s.giveSlots(); err != nil {
		return err
	}
	for _, n := range s.Nodes[1:] {
		v, err := n.Do("CONFIG", "GET", "cluster-port")
		if err != nil {
			return err
		}
		port, _ := v.([]any)[1].(string)
		if _, err := s.Nodes[0].Do("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(n.Port), port); err != nil {
			return err
		}
	}
	if err := s.addReplicas(); err != nil {
		return err
	}
	if err := Poll(settle, s.clusterSettled); err != nil {
		return err
	}
	for _, n := range s.Nodes {
		if _, err := n.Do("CONFIG", "SET", "cluster-node-timeout", strconv.FormatInt(patience.Milliseconds(), 10), "cluster-replica-no-failover", "no"); err != nil {
			return err
		}
	}
	return nil
}

// giveSlots divides the hash slots among the first three nodes.
func (s *Server) giveSlots() error {
	for i, n := range s.Nodes {
		if _, err := n.Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
			return err
		}
		if i >= 3 {
			continue
		}
		first, next := 16384*i/3, 16384*(i+1)/3
		if _, err := n.Do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(next-1)); err != nil {
			return err
		}
	}
	return nil
}

// addReplicas makes the last three nodes replicas of the first three.
func (s *Server) addReplicas() error {
	for i, replica := range s.Nodes[3:] {
		id, err := s.Nodes[i].Text("CLUSTER", "MYID")
		if err != nil {
			return err
		}
		// The order is refused until the replica has heard of the primary.
		if err := Poll(settle, func() error {
			_, err := replica.Do("CLUSTER", "REPLICATE", id)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// clusterSettled says whether every node knows all others and all roles.
func (s *Server) clusterSettled() error {
	for i, n := range s.Nodes {
		text, err := n.Text("CLUSTER", "INFO")
		if err != nil {
			return err
		}
		for _, want := range []string{"cluster_state:ok", "cluster_known_nodes:6", "cluster_slots_ok:16384"} {
			if !strings.Contains(text, want) {
				return fmt.Errorf("node %d misses %s", i, want)
			}
		}
		if text, err = n.Text("CLUSTER", "NODES"); err != nil {
			return err
		}
		text = strings.ReplaceAll(text, "nofailover", "")
		if strings.Count(text, "slave") != 3 || strings.Contains(text, "fail") || strings.Contains(text, "handshake") {
			return fmt.Errorf("node %d sees other roles:\n%s", i, text)
		}
	}
	return inSync(s.Nodes[:3], 1)
}

// inSync says whether primaries have so many replicas that follow them.
func inSync(primaries []*Node, replicas int) error {
	for _, n := range primaries {
		following := 0
		for i := range replicas {
			if strings.Contains(n.Info("replication", "slave"+strconv.Itoa(i)), "state=online") {
				following++
			}
		}
		if following != replicas {
			return fmt.Errorf("the primary on port %d has %d of %d replicas", n.Port, following, replicas)
		}
	}
	return nil
}

// startSentinel starts a primary, two replicas and three sentinels.
func (s *Server) startSentinel(binary, dir string, patience time.Duration, config []string) error {
	if err := s.startNodes(binary, dir, 3, config); err != nil {
		return err
	}
	for _, replica := range s.Nodes[1:] {
		if _, err := replica.Do("REPLICAOF", "127.0.0.1", strconv.Itoa(s.Nodes[0].Port)); err != nil {
			return err
		}
	}
	// A sentinel learns about replicas from the primary, every ten seconds.
	if err := Poll(settle, func() error { return inSync(s.Nodes[:1], 2) }); err != nil {
		return err
	}
	for i := range 3 {
		port, err := freePort()
		if err != nil {
			return err
		}
		n, err := newNode(binary, dir, "sentinel-"+strconv.Itoa(i), port, []string{
			fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", MasterName, s.Nodes[0].Port),
			fmt.Sprintf("sentinel down-after-milliseconds %s %d", MasterName, patience.Milliseconds()),
			"sentinel failover-timeout " + MasterName + " 4000",
			"sentinel parallel-syncs " + MasterName + " 2",
		}, "--sentinel")
		if err != nil {
			return err
		}
		s.Sentinels = append(s.Sentinels, n)
		if err := n.start(); err != nil {
			return err
		}
	}
	return Poll(settle, s.sentinelsSettled)
}

// sentinelsSettled says whether the sentinels know one another and the
// replicas, without which they replace no one.
func (s *Server) sentinelsSettled() error {
	for _, n := range s.Sentinels {
		if state := n.Info("sentinel", "master0"); !strings.HasSuffix(state, "status=ok,address="+s.Nodes[0].Addr()+",slaves=2,sentinels=3") {
			return errors.New("a sentinel says " + state)
		}
	}
	return nil
}
