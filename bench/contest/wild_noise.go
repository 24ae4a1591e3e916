package contest

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/bench/rig"
)

// How fast topics are written that are compacted or deleted meanwhile, in MB/s, and
// to how many partitions.
const (
	compactRate     = 20
	retentionRate   = 40
	noisePartitions = 2
)

// compactionWork writes records with keys that come again and again, in segments that
// are soon compacted.
func (x *session) compactionWork(turn string) (*tailWork, error) {
	topic := "wild-compact-" + turn
	set := []string{"cleanup.policy=compact", fmt.Sprintf("segment.bytes=%d", x.o.wild.segment), "min.cleanable.dirty.ratio=0.01"}
	if err := x.withConn(func(c net.Conn) error { return x.NewTopic(c, topic, noisePartitions, set...) }); err != nil {
		return nil, err
	}
	loads := keyedLoads(topic, noisePartitions)
	var sent int64
	return &tailWork{
		run: func(stop <-chan struct{}) (err error) {
			sent, err = x.paced(loads, compactRate, stop)
			return err
		},
		check: func() error {
			if x.tooLittle("compaction", sent) {
				return nil
			}
			return x.eventually(func() error {
				left, err := topicSize(x.data, topic)
				if err == nil && left > sent*9/10 {
					err = fmt.Errorf("%d of %d bytes are left, as if nothing was compacted", left, sent)
				}
				if err == nil {
					x.Say("compaction has left %s of %s MB", rig.Number(float64(left)/1e6), rig.Number(float64(sent)/1e6))
				}
				return err
			})
		},
	}, nil
}

// keyedLoads encodes requests whose records have keys out of few.
func keyedLoads(topic string, partitions int) []*rig.Load {
	const frames, keys = 16, 200
	random := rand.New(rand.NewPCG(3, 3))
	var loads []*rig.Load
	for range frames {
		records := make([]kmsg.Record, rig.BatchRecords)
		for i := range records {
			records[i].Key = fmt.Appendf(nil, "key-%05d", random.IntN(keys))
			records[i].Value = make([]byte, rig.RecordSize)
			for j := range records[i].Value {
				records[i].Value[j] = byte(random.Uint32())
			}
		}
		batch := rig.BatchOf(rig.BatchRecords, 0, rig.RecordsBody(records))
		var indexes []int32
		for i := range partitions {
			indexes = append(indexes, int32(i))
		}
		loads = append(loads, &rig.Load{
			Shape: rig.Shape{Partitions: partitions, Record: rig.RecordSize, Records: rig.BatchRecords}, BatchSize: len(batch),
			Frame: rig.RequestFrame(rig.ProduceRequest(topic, -1, indexes, func(int) []byte { return batch }), 0),
		})
	}
	return loads
}

// retentionWork writes a topic that keeps no more than a segment.
func (x *session) retentionWork(turn string) (*tailWork, error) {
	topic := "wild-retention-" + turn
	set := []string{
		fmt.Sprintf("segment.bytes=%d", x.o.wild.segment), fmt.Sprintf("retention.bytes=%d", x.o.wild.segment),
		"file.delete.delay.ms=500", // Kafka removes files a minute later by default, muster at once.
	}
	if err := x.withConn(func(c net.Conn) error { return x.NewTopic(c, topic, noisePartitions, set...) }); err != nil {
		return nil, err
	}
	loads := []*rig.Load{rig.Shape{Partitions: noisePartitions, Record: rig.RecordSize, Records: rig.BatchRecords}.Load(topic, -1)}
	var sent int64
	return &tailWork{
		run: func(stop <-chan struct{}) (err error) {
			sent, err = x.paced(loads, retentionRate, stop)
			return err
		},
		check: func() error {
			if x.tooLittle("retention", sent) {
				return nil
			}
			return x.eventually(func() error { return x.checkDeleted(topic, sent) })
		},
	}, nil
}

// checkDeleted checks that a topic does not begin with its first record any more.
func (x *session) checkDeleted(topic string, sent int64) error {
	return x.withConn(func(c net.Conn) error {
		first, err := rig.ListOffsets(c, topic, []int32{0}, rig.Earliest)
		if err == nil && first[0] == 0 {
			err = fmt.Errorf("of %d bytes retention has deleted nothing", sent)
		}
		if err == nil {
			x.Say("retention has deleted %d of the records of a partition, of %s MB in all", first[0], rig.Number(float64(sent)/1e6))
		}
		return err
	})
}

// tooLittle says whether a broker on a busy machine has taken so little that there need
// be nothing to compact or to delete, and notes it.
func (x *session) tooLittle(what string, sent int64) bool {
	little := sent/noisePartitions < 4*int64(x.o.wild.segment)
	if little {
		x.leaveOut("%s had little to do at %s, which took only %s MB", what, x.side, rig.Number(float64(sent)/1e6))
	}
	return little
}

// eventually calls fn until it succeeds, for some seconds.
func (x *session) eventually(fn func() error) error {
	for deadline := time.Now().Add(20 * time.Second); ; {
		err := fn()
		if err == nil || time.Now().After(deadline) || x.Context.Err() != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// topicSize adds up the segments of a topic.
func topicSize(data, topic string) (sum int64, err error) {
	err = filepath.WalkDir(data, func(name string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil || d.IsDir() || filepath.Ext(name) != ".log" || !strings.HasPrefix(filepath.Base(filepath.Dir(name)), topic+"-") {
			return err
		}
		info, err := d.Info()
		if os.IsNotExist(err) {
			return nil
		}
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return sum, err
}

// hogWork has another program write and read a large file.
func (x *session) hogWork(turn string) (*tailWork, error) {
	gb := x.o.wild.hog
	free, err := rig.FreeSpace(x.Folder)
	if err != nil {
		return nil, err
	}
	if most := float64(free) / 1e9 / 3; most < gb {
		gb = most
		x.leaveOut("a file of %s GB instead of %s to fill the page cache, for lack of space", rig.Number(gb), rig.Number(x.o.wild.hog))
	}
	name := filepath.Join(x.Folder, "hog-"+turn)
	p, err := x.StartSelf("", "_hog", name, strconv.FormatInt(int64(gb*1e9), 10))
	if err != nil {
		return nil, err
	}
	<-p.Ready // Or gone, which run tells.
	return &tailWork{
		run: func(stop <-chan struct{}) error {
			defer p.Kill()
			select {
			case <-stop:
				return p.Stop()
			case <-p.Exited:
				return fmt.Errorf("the other program ended: %w\n%s", p.Err, p.Stderr)
			}
		},
		check: func() error { return nil },
	}, nil
}
