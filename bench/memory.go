package main

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
func (b *bench) memory() error {
	if !b.wanted(memoryGroup) {
		return nil
	}
	for range b.rounds {
		if err := b.inScratch(b.brokerMemory); err != nil {
			return fmt.Errorf("memory: %w", err)
		}
		if err := b.bareMemory(); err != nil {
			return fmt.Errorf("memory: %w", err)
		}
	}
	for _, m := range []metric{idleRSS, quietRSS, workingRSS} {
		b.say("%s", b.report.line(m))
	}
	return nil
}

func (b *bench) brokerMemory(folder string) error {
	p, err := b.startBroker(filepath.Join(folder, "broker"))
	if err != nil {
		return err
	}
	defer p.kill()
	c, err := p.dial(b.ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := greet(c); err != nil {
		return err
	}
	if err := b.noteMemory(p, broker, idleRSS, idleAnon); err != nil {
		return err
	}
	if err := createTopic(c, topicFor(flushFirst), partitions); err != nil {
		return err
	}
	conns, err := b.connect(p, b.memoryConnections)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	for _, c := range conns {
		if err := greet(c); err != nil {
			return err
		}
		if err := checkMetadata(c, partitions); err != nil {
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
	peak, err := p.status("VmHWM")
	if err != nil {
		return err
	}
	b.report.add(workingPeak, broker, peak)
	return p.stop()
}

// work lets all connections produce a batch at the same time, and then fetch
// one at the same time.
func work(conns []net.Conn) error {
	l := newLoad(topicFor(flushFirst), -1)
	batch := l.frame[4:][l.positions[0]:][:l.batchSize]
	var frames [partitions][]byte
	for i := range frames {
		frames[i] = requestFrame(produceRequest(topicFor(flushFirst), -1, []int32{int32(i)}, func(int) []byte { return batch }), 0)
	}
	for i, c := range conns {
		if _, err := c.Write(frames[i%partitions]); err != nil {
			return err
		}
	}
	for _, c := range conns {
		if err := readProduced(c, 12, 1); err != nil {
			return err
		}
	}
	return fetchOnAll(conns, l.batchSize)
}

func fetchOnAll(conns []net.Conn, batchSize int) error {
	for i, c := range conns {
		req := fetchRequest(topicFor(flushFirst), batchSize)
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, fetchPartition(int32(i%partitions), 0, batchSize))
		if _, err := c.Write(requestFrame(req, 1)); err != nil {
			return err
		}
	}
	for _, c := range conns {
		_, body, err := readFrame(c, nil)
		if err != nil {
			return err
		}
		if len(body) < batchSize {
			return fmt.Errorf("fetch of one batch: %d bytes", len(body))
		}
		if _, err := checkBatches(body[len(body)-batchSize:], 0); err != nil {
			return fmt.Errorf("fetch of one batch: %w", err)
		}
	}
	return nil
}

// bareMemory does the quiet part with a bare program.
func (b *bench) bareMemory() error {
	p, err := b.startBare("_echo")
	if err != nil {
		return err
	}
	defer p.kill()
	c, err := p.dial(b.ctx)
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
	conns, err := b.connect(p, b.memoryConnections)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	for _, c := range conns {
		if err := ping(c); err != nil {
			return err
		}
	}
	if err := b.noteMemory(p, bare, quietRSS, quietAnon); err != nil {
		return err
	}
	return p.stop()
}

// noteMemory notes the memory of a process that has come to rest.
func (b *bench) noteMemory(p *process, s side, rss, anon metric) error {
	time.Sleep(2 * b.rest)
	for _, v := range []struct {
		metric
		field string
	}{{rss, "VmRSS"}, {anon, "RssAnon"}} {
		mb, err := p.status(v.field)
		if err != nil {
			return err
		}
		b.report.add(v.metric, s, mb)
	}
	return nil
}
