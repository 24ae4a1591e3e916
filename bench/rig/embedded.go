package rig

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"strings"

	"muster"
)

// brokerChild runs the broker inside this program, for profiles and for when
// the command does not build. On standard input it takes "profile FILE", which
// begins a processor profile, "stop", which ends it, and "heap FILE", which writes
// the size of the heap to a file.
func brokerChild(ctx context.Context, stop func(), args []string) error {
	props := map[string]string{}
	for _, set := range args[2:] {
		name, value, _ := strings.Cut(set, "=")
		props[name] = value
	}
	b, err := muster.Start(ctx, muster.Config{Listen: args[0], Data: args[1], Properties: props})
	if err != nil {
		return err
	}
	go func() {
		defer stop()
		if err := obey(os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	<-ctx.Done()
	return b.Close()
}

func obey(commands io.Reader) error {
	lines := bufio.NewScanner(commands)
	for lines.Scan() {
		if names, ok := strings.CutPrefix(lines.Text(), "heap "); ok {
			if err := tellHeap(names); err != nil {
				return err
			}
		}
		name, ok := strings.CutPrefix(lines.Text(), "profile ")
		if !ok {
			continue
		}
		if err := profileUntilStop(name, lines); err != nil {
			return err
		}
	}
	return lines.Err()
}

func profileUntilStop(name string, lines *bufio.Scanner) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	for lines.Scan() && lines.Text() != "stop" {
	}
	pprof.StopCPUProfile()
	return f.Close()
}
