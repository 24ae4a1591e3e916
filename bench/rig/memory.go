package rig

import (
	"fmt"
	"net"
	"path/filepath"
	"time"
)

const memoryGroup = "memory"

var (
	idleRSS     = metric{memoryGroup, "at rest after start", "MB", valueAim(25)}
	idleAnon    = metric{memoryGroup, "of it not backed by files", "MB", noAim}
	quietRSS    = metric{memoryGroup, "1,000 connections, ApiVersions and Metadata on each", "MB", noAim}
	quietAnon   = metric{memoryGroup, "of it not backed by files, quiet connections", "MB", noAim}
	workingRSS  = metric{memoryGroup, "1,000 connections, 64 KB produced and fetched on each", "MB", noAim}
	workingAnon = metric{memoryGroup, "of it not backed by files, working connections", "MB", noAim}
	workingPeak = metric{memoryGroup, "highest while they worked", "MB", noAim}
)

// memory measures how much memory the processes have.
func (b *Bench) memory() error {
	if !b.Wanted(memoryGroup) {
		return nil
	}
	for range b.Rounds {
		if err := b.InScratch(b.brokerMemory); err != nil {
			return fmt.Errorf("memory: %w", err)
		}
		if err := b.bareMemory(); err != nil {
			return fmt.Errorf("memory: %w", err)
		}
	}
	for _, m := range []metric{idleRSS, quietRSS, workingRSS} {
		b.Say("%s", b.Report.line(m))
	}
	return nil
}

func (b *Bench) brokerMemory(folder string) error {
	p, err := b.StartBroker(filepath.Join(folder, "broker"))
	if err != nil {
		return err
	}
	defer p.Kill()
	c, err := p.Dial(b.Context)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := Greet(c); err != nil {
		return err
	}
	if err := b.noteMemory(p, broker, idleRSS, idleAnon); err != nil {
		return err
	}
	if err := createTopic(c, topicFor(flushFirst), Partitions); err != nil {
		return err
	}
	conns, err := b.Connect(p, b.memoryConnections)
	if err != nil {
		return err
	}
	defer CloseAll(conns)
	for _, c := range conns {
		if err := Greet(c); err != nil {
			return err
		}
		if err := CheckMetadata(c, Partitions); err != nil {
			return err
		}
	}
	if err := b.noteMemory(p, broker, quietRSS, quietAnon); err != nil {
		return err
	}
	if err := work(conns); err != nil {
		return err
	}
	if err := b.noteMemory(p, broker, workingRSS, workingAnon); err != nil {
		return err
	}
	peak, err := p.Status("VmHWM")
	if err != nil {
		return err
	}
	b.Report.add(workingPeak, broker, peak)
	return p.Stop()
}

// work lets all connections produce a batch at the same time, and then fetch
// one at the same time.
func work(conns []net.Conn) error {
	l := newLoad(topicFor(flushFirst), -1)
	batch := l.Frame[4:][l.positions[0]:][:l.BatchSize]
	var frames [Partitions][]byte
	for i := range frames {
		frames[i] = RequestFrame(ProduceRequest(topicFor(flushFirst), -1, []int32{int32(i)}, func(int) []byte { return batch }), 0)
	}
	for i, c := range conns {
		if _, err := c.Write(frames[i%Partitions]); err != nil {
			return err
		}
	}
	for _, c := range conns {
		if err := readProduced(c, 12, 1); err != nil {
			return err
		}
	}
	return fetchOnAll(conns, l.BatchSize)
}

func fetchOnAll(conns []net.Conn, batchSize int) error {
	for i, c := range conns {
		req := FetchRequest(topicFor(flushFirst), batchSize)
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, FetchPartition(int32(i%Partitions), 0, batchSize))
		if _, err := c.Write(RequestFrame(req, 1)); err != nil {
			return err
		}
	}
	for _, c := range conns {
		_, body, err := ReadFrame(c, nil)
		if err != nil {
			return err
		}
		if len(body) < batchSize {
			return fmt.Errorf("fetch of one batch: %d bytes", len(body))
		}
		if _, err := CheckBatches(body[len(body)-batchSize:], 0); err != nil {
			return fmt.Errorf("fetch of one batch: %w", err)
		}
	}
	return nil
}

// bareMemory does the quiet part with a bare program.
func (b *Bench) bareMemory() error {
	p, err := b.startBare("_echo")
	if err != nil {
		return err
	}
	defer p.Kill()
	c, err := p.Dial(b.Context)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := ping(c); err != nil {
		return err
	}
	if err := b.noteMemory(p, bare, idleRSS, idleAnon); err != nil {
		return err
	}
	conns, err := b.Connect(p, b.memoryConnections)
	if err != nil {
		return err
	}
	defer CloseAll(conns)
	for _, c := range conns {
		if err := ping(c); err != nil {
			return err
		}
	}
	if err := b.noteMemory(p, bare, quietRSS, quietAnon); err != nil {
		return err
	}
	return p.Stop()
}

// noteMemory notes the memory of a process that has come to rest.
func (b *Bench) noteMemory(p *Process, s Side, rss, anon metric) error {
	time.Sleep(2 * b.Rest)
	for _, v := range []struct {
		metric
		field string
	}{{rss, "VmRSS"}, {anon, "RssAnon"}} {
		mb, err := p.Status(v.field)
		if err != nil {
			return err
		}
		b.Report.add(v.metric, s, mb)
	}
	return nil
}
