package rig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"
)

const groupMemory = "groups memory"

// groupMemory makes a group with many members, and many groups with one, and
// notes what they add to the memory of a broker. No one is connected any more
// when it is measured: what connections take is measured elsewhere. The broker
// is the package inside this program, since it must be told to collect its
// garbage.
func (b *Bench) groupMemory(data string, groups int) (*crowd, error) {
	p, err := b.startGroups(b.startEmbedded, data)
	if err != nil {
		return nil, err
	}
	defer p.Kill()
	members := slices.Max(b.Group.members)
	if err := b.warmUp(p, members); err != nil {
		return nil, err
	}
	before, err := b.heap(p, "before")
	if err != nil {
		return nil, err
	}
	conns, err := b.Peers(p, members)
	if err != nil {
		return nil, err
	}
	defer CloseAll(conns)
	if err := Form(NewMembers("large", conns)); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, p.Stderr)
	}
	if err := CheckStable(conns[0], "large", members); err != nil {
		return nil, err
	}
	CloseAll(conns)
	large, err := b.heap(p, "members")
	if err != nil {
		return nil, err
	}
	b.noteHeap(fmt.Sprintf("member of a group of %s", Thousands(members)), large.sub(before), members)
	all, err := b.Gather(p, groups)
	if err != nil {
		return nil, err
	}
	many, err := b.heap(p, "groups")
	if err != nil {
		return nil, err
	}
	b.noteHeap(fmt.Sprintf("group of 1 member, of %s", Thousands(groups)), many.sub(large), groups)
	return all, p.Stop()
}

// warmUp lets the broker serve as many connections as it will have, so that the
// structures which never shrink are there before they could be counted.
func (b *Bench) warmUp(p *Process, connections int) error {
	conns, err := b.Peers(p, max(connections, b.Group.Makers))
	if err != nil {
		return err
	}
	defer CloseAll(conns)
	for _, c := range conns {
		if err := Greet(c); err != nil {
			return err
		}
	}
	return nil
}

// heapSize is the memory of a process without its garbage, in KB.
type heapSize struct{ heap, resident float64 }

func (h heapSize) sub(other heapSize) heapSize {
	return heapSize{h.heap - other.heap, h.resident - other.resident}
}

func (b *Bench) noteHeap(what string, h heapSize, n int) {
	if !b.Wanted(groupMemory) {
		return
	}
	heap := metric{groupMemory, "heap per " + what, "KB", valueAim(2)}
	b.Report.add(heap, broker, h.heap/float64(n))
	b.Report.add(metric{groupMemory, "resident per " + what, "KB", noAim}, broker, h.resident/float64(n))
	b.Say("%s", b.Report.line(heap))
}

// heap has an embedded broker collect its garbage and returns what is left.
func (b *Bench) heap(p *Process, name string) (heapSize, error) {
	time.Sleep(2 * b.Rest) // until it has noticed who is gone
	answer := filepath.Join(b.Folder, "heap")
	profile := ""
	if b.Profiles != "" {
		folder, err := filepath.Abs(b.Profiles)
		if err != nil {
			return heapSize{}, err
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return heapSize{}, err
		}
		profile = filepath.Join(folder, "groups heap "+name+".pprof")
	}
	if _, err := fmt.Fprintf(p.stdin, "heap %s\t%s\n", answer, profile); err != nil {
		return heapSize{}, err
	}
	for {
		text, err := os.ReadFile(answer)
		switch {
		case err == nil:
			heap, err := strconv.ParseFloat(string(text), 64)
			resident, statusErr := p.Status("RssAnon")
			return heapSize{heap / 1000, resident * 1000}, errors.Join(err, statusErr, os.Remove(answer))
		case !errors.Is(err, fs.ErrNotExist):
			return heapSize{}, err
		}
		select {
		case <-b.Context.Done():
			return heapSize{}, b.Context.Err()
		case <-p.Exited:
			return heapSize{}, errors.Join(errors.New("the broker ended"), p.Err)
		case <-time.After(b.Rest / 10):
		}
	}
}

// tellHeap writes the size of this process's heap to a file, and if there is a
// second name a profile of it to another.
func tellHeap(names string) error {
	answer, profile, _ := strings.Cut(names, "\t")
	for range 3 { // Pools let go of what they have after two.
		debug.FreeOSMemory() // collects garbage, too
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		if err := errors.Join(pprof.WriteHeapProfile(f), f.Close()); err != nil {
			return err
		}
	}
	whole := answer + ".new"
	if err := os.WriteFile(whole, fmt.Append(nil, m.HeapAlloc), 0o644); err != nil {
		return err
	}
	return os.Rename(whole, answer)
}
