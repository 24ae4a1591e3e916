//go:build !linux

package main

import (
	"errors"
	"os/exec"
	"time"
)

func tie(*exec.Cmd) {}

func pause(d time.Duration) { time.Sleep(d) }

func processorTime(int) (time.Duration, error) { return 0, errors.New("this needs Linux") }
