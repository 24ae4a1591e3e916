package rig

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const groupLoad = "groups load"

// loadMeasure is a measure of starts after one kind of end.
type loadMeasure struct{ wall, cpu, peak metric }

func newLoadMeasure(after string) loadMeasure {
	return loadMeasure{
		wall: metric{groupLoad, after + ": exec to all groups listed", "ms", noAim},
		cpu:  metric{groupLoad, after + ": processor time", "CPU-ms", noAim},
		peak: metric{groupLoad, after + ": highest memory", "MB", noAim},
	}
}

var (
	loadStopped = newLoadMeasure("after SIGTERM")
	loadKilled  = newLoadMeasure("after SIGKILL")
	loadSize    = metric{groupLoad, "size of __consumer_offsets", "MB", noAim}
	loadHeap    = metric{groupLoad, "heap with all of it loaded", "MB", noAim}
)

// groupLoads has many groups commit offsets, and measures how long the broker
// takes to load them.
func (b *Bench) groupLoads(data string, all *crowd) error {
	p, err := b.fillOffsets(data, all)
	if err != nil {
		return err
	}
	for range b.Group.loads {
		if err := p.Stop(); err != nil {
			return err
		}
		if p, err = b.loadOnce(loadStopped, data, all); err != nil {
			return err
		}
		// What is acknowledged now must be there after the kill.
		if err := b.commitCrowd(p, all, min(len(all.members), b.Group.Makers)); err != nil {
			p.Kill()
			return err
		}
		p.Kill()
		if p, err = b.loadOnce(loadKilled, data, all); err != nil {
			return err
		}
	}
	if err := p.Stop(); err != nil {
		return err
	}
	b.Say("%s", b.Report.line(loadStopped.wall))
	b.Say("%s", b.Report.line(loadKilled.wall))
	return b.loadedHeap(data, all)
}

// loadedHeap notes the memory that all groups and offsets take.
func (b *Bench) loadedHeap(data string, all *crowd) error {
	p, err := b.startEmbedded(data, NoDelay)
	if err != nil {
		return err
	}
	defer p.Kill()
	c, err := p.Dial(b.Context)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := awaitGroups(c, all); err != nil {
		return err
	}
	h, err := b.heap(p, "loaded")
	if err != nil {
		return err
	}
	b.Report.add(loadHeap, broker, h.heap/1000)
	return p.Stop()
}

// fillOffsets has every group commit its offsets.
func (b *Bench) fillOffsets(data string, all *crowd) (*Process, error) {
	p, err := b.startGroups(b.StartBroker, data)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	c, err := p.Dial(b.Context)
	if err == nil {
		defer c.Close()
		err = createTopic(c, GroupTopic, b.Group.offsets)
	}
	if err == nil {
		err = b.commitCrowd(p, all, len(all.members))
	}
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("%w\n%s", err, p.Stderr)
	}
	b.Say("%s offsets committed in %.1f s", Thousands(len(all.members)*b.Group.offsets), time.Since(began).Seconds())
	size, err := offsetsSize(data)
	b.Report.add(loadSize, broker, float64(size)/1e6)
	return p, err
}

// commitCrowd has the first n groups commit an offset to each partition. They
// go on from the last ones, which their members remember.
func (b *Bench) commitCrowd(p *Process, all *crowd, n int) error {
	conns, err := b.Peers(p, min(n, b.Group.Makers))
	if err != nil {
		return err
	}
	defer CloseAll(conns)
	return Together(conns, func(at int, c net.Conn) error {
		for i := at; i < n; i += len(conns) {
			m := all.members[i]
			m.partition++ // Counts its commits from here on.
			req := CommitRequest(m.Roster.Group, b.offsetPartitions()...)
			req.MemberID, req.Generation = m.id, m.generation
			for j := range req.Topics[0].Partitions {
				req.Topics[0].Partitions[j].Offset = crowdOffset(i, m, int32(j))
			}
			if err := commitAsked(c, req); err != nil {
				return err
			}
		}
		return nil
	})
}

func crowdOffset(group int, m *GroupMember, partition int32) int64 {
	return int64(m.partition)<<40 + int64(group)<<8 + int64(partition)
}

func (b *Bench) offsetPartitions() []int32 {
	all := make([]int32, b.Group.offsets)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

// loadOnce starts the broker, waits until it knows all groups, and checks some
// of them.
func (b *Bench) loadOnce(m loadMeasure, data string, all *crowd) (*Process, error) {
	p, err := b.StartBroker(data, NoDelay)
	if err != nil {
		return nil, err
	}
	err = b.Profile(p, "groups load", func() error { return b.loaded(m, p, all) })
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("%w\n%s", err, p.Stderr)
	}
	return p, nil
}

func (b *Bench) loaded(m loadMeasure, p *Process, all *crowd) error {
	c, err := p.Dial(b.Context)
	if err != nil {
		return err
	}
	defer c.Close()
	list, err := awaitGroups(c, all)
	if err != nil {
		return err
	}
	wall := time.Since(p.Began)
	used, err := p.CPU()
	if err != nil {
		return err
	}
	peak, err := p.Status("VmHWM")
	if err != nil {
		return err
	}
	b.Report.add(m.wall, broker, Millis(wall))
	b.Report.add(m.cpu, broker, Millis(used.Total()))
	b.Report.add(m.peak, broker, peak)
	return b.checkCrowd(c, list, all)
}

// awaitGroups waits until all groups are loaded. To ask for their list again and
// again would cost as much as to load them, so it waits for some first, which
// are on all shards.
func awaitGroups(c net.Conn, all *crowd) (map[string]string, error) {
	for i := 0; i < min(len(all.members), 500); i++ {
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.Version, req.Groups = 4, []string{all.members[i].Roster.Group}
		answer, err := Ask(c, req)
		if err != nil {
			return nil, err
		}
		if answer.(*kmsg.DescribeGroupsResponse).Groups[0].ErrorCode == kerr.CoordinatorLoadInProgress.Code {
			time.Sleep(2 * time.Millisecond)
			i-- // The same one again.
		}
	}
	for {
		list, err := listGroups(c)
		if err != nil || list != nil {
			return list, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// checkCrowd checks that all groups are there, and the offsets and sessions of
// some.
func (b *Bench) checkCrowd(c net.Conn, list map[string]string, all *crowd) error {
	for _, m := range all.members {
		if list[m.Roster.Group] != "Stable" {
			return fmt.Errorf("group %s is %q of %d groups", m.Roster.Group, list[m.Roster.Group], len(list))
		}
	}
	for i := 0; i < len(all.members); i += max(len(all.members)/1000, 1) {
		m := all.members[i]
		want := func(p int32) int64 { return crowdOffset(i, m, p) }
		if err := CheckCommitted(c, m.Roster.Group, b.offsetPartitions(), want); err != nil {
			return err
		}
		m.Conn = c
		if ok, err := m.beat(); err != nil || !ok {
			return fmt.Errorf("heartbeat after the load: rebalance %v, %w", !ok, err)
		}
	}
	return nil
}

// offsetsSize returns the bytes in the partitions of __consumer_offsets.
func offsetsSize(data string) (int64, error) {
	files, err := filepath.Glob(filepath.Join(data, "__consumer_offsets*", "*"))
	var total int64
	for _, f := range files {
		info, statErr := os.Stat(f)
		if statErr != nil {
			err = errors.Join(err, statErr)
			continue
		}
		total += info.Size()
	}
	if err == nil && total == 0 {
		err = fmt.Errorf("nothing of __consumer_offsets in %s", data)
	}
	return total, err
}
