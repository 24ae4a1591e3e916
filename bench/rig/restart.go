package rig

import (
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// What lies in each partition before the restarts.
const restartRecords = 3

// restartTopics is how many topics share the partitions.
const restartTopics = 10

// restart is a measure with a number of partitions.
type restart struct {
	name       string
	partitions int
	answer     metric
	metadata   metric
	stop       metric
}

func newRestart(partitions int) restart {
	r := restart{name: fmt.Sprintf("restart %d", partitions), partitions: partitions}
	aim := noAim
	if partitions == 1000 {
		aim = valueAim(1000)
	}
	r.answer = metric{r.name, "exec to first answer", "ms", noAim}
	r.metadata = metric{r.name, "exec to Metadata of all partitions", "ms", aim}
	r.stop = metric{r.name, "clean stop", "ms", noAim}
	return r
}

// restarts measures starts on folders with many partitions.
func (b *Bench) restarts() error {
	for _, n := range b.restartPartitions {
		r := newRestart(n)
		if !b.Wanted(r.name) {
			continue
		}
		if err := b.InScratch(func(folder string) error { return b.restart(r, folder) }); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

func (b *Bench) restart(r restart, folder string) error {
	data := filepath.Join(folder, "broker")
	if err := b.fill(r, data); err != nil {
		return err
	}
	for range max(b.tries/2, 1) {
		if err := b.restartOnce(r, data); err != nil {
			return err
		}
		p, err := b.startBare("_open", data)
		if err != nil {
			return err
		}
		if err := b.timed(r.answer, bare, p, ping); err != nil {
			return err
		}
	}
	b.Say("%s", b.Report.line(r.metadata))
	return nil
}

// restartOnce starts the broker, and stops it after a look at every partition.
func (b *Bench) restartOnce(r restart, data string) error {
	p, err := b.StartBroker(data)
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
	b.Report.add(r.answer, broker, Millis(time.Since(p.Began)))
	if err := CheckMetadata(c, r.partitions); err != nil {
		return err
	}
	b.Report.add(r.metadata, broker, Millis(time.Since(p.Began)))
	for i := range restartTopics {
		if err := CheckEnds(c, restartTopic(i), r.partitions/restartTopics, restartRecords); err != nil {
			return err
		}
	}
	c.Close()
	began := time.Now()
	if err := p.Stop(); err != nil {
		return err
	}
	b.Report.add(r.stop, broker, Millis(time.Since(began)))
	return nil
}

func restartTopic(i int) string { return fmt.Sprintf("bench-%d", i) }

// fill creates the topics, puts a few records into each partition, and stops
// the broker cleanly.
func (b *Bench) fill(r restart, data string) error {
	began := time.Now()
	p, err := b.StartBroker(data)
	if err != nil {
		return err
	}
	defer p.Kill()
	errs := make([]error, restartTopics)
	var running sync.WaitGroup
	for i := range restartTopics {
		running.Go(func() { errs[i] = b.fillTopic(p, restartTopic(i), r.partitions/restartTopics) })
	}
	running.Wait()
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("%w\n%s", err, p.Stderr)
		}
	}
	b.Say("%s: filled in %.1f s", r.name, time.Since(began).Seconds())
	began = time.Now()
	if err := p.Stop(); err != nil {
		return err
	}
	b.Say("%s: first stop took %.1f s", r.name, time.Since(began).Seconds())
	return nil
}

func (b *Bench) fillTopic(p *Process, topic string, partitions int) error {
	c, err := p.Dial(b.Context)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := createTopic(c, topic, partitions); err != nil {
		return err
	}
	indexes := make([]int32, partitions)
	for i := range indexes {
		indexes[i] = int32(i)
	}
	batch := NewBatch(restartRecords, RecordSize, 1)
	return produceOnce(c, ProduceRequest(topic, 1, indexes, func(int) []byte { return batch }), partitions)
}

// produceOnce sends a Produce request and checks its answer.
func produceOnce(c net.Conn, req *kmsg.ProduceRequest, partitions int) error {
	if _, err := c.Write(RequestFrame(req, 0)); err != nil {
		return err
	}
	return readProduced(c, req.Version, partitions)
}

func readProduced(c net.Conn, version int16, partitions int) error {
	_, body, err := ReadFrame(c, nil)
	if err != nil {
		return err
	}
	if len(body) == 0 || body[0] != 0 {
		return fmt.Errorf("tags in the header of a Produce answer")
	}
	return checkProduced(body[1:], version, partitions)
}
