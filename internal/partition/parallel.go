package partition

import (
	"errors"
	"sync"
)

// openAtOnce is how many partitions, or topics, are opened or looked at at the
// same time.
const openAtOnce = 16

// inParallel does something with each of a list, a few at a time.
func inParallel[T any](list []T, do func(T)) {
	var running sync.WaitGroup
	gate := make(chan struct{}, openAtOnce)
	for _, x := range list {
		gate <- struct{}{}
		running.Go(func() {
			defer func() { <-gate }()
			do(x)
		})
	}
	running.Wait()
}

// allOf does something with each of a list, a few at a time, and returns the errors
// in the order of the list.
func allOf[T any](list []T, do func(T) error) error {
	errs, places := make([]error, len(list)), make([]int, len(list))
	for i := range places {
		places[i] = i
	}
	inParallel(places, func(i int) { errs[i] = do(list[i]) })
	return errors.Join(errs...)
}
