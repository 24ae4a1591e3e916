//go:build !linux

package rig

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"time"
)

// FreeSpace is not known, and taken to be enough.
func FreeSpace(string) (int64, error) { return math.MaxInt64, nil }

func Forget(*os.File) error { return nil }

func Tie(*exec.Cmd) {}

func Pause(d time.Duration) { time.Sleep(d) }

func ProcessorTime(int) (time.Duration, error) { return 0, errors.New("this needs Linux") }
