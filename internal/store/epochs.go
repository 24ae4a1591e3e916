package store

// AddEpoch returns the leader epochs of a log after a batch of an epoch was
// appended at an offset. An epoch before it that begins there too has no record
// left since a trim, and is forgotten. The list given is not changed.
func AddEpoch(epochs []EpochStart, epoch int32, start int64) []EpochStart {
	n := len(epochs)
	if n > 0 && epochs[n-1].Epoch >= epoch {
		return epochs
	}
	if n > 0 && epochs[n-1].Start == start {
		n--
	}
	return append(epochs[:n:n], EpochStart{Epoch: epoch, Start: start})
}

// TrimEpochs returns the leader epochs of a log that begins at an offset:
// without those that ended before it. The list given is not changed.
func TrimEpochs(epochs []EpochStart, logStart int64) []EpochStart {
	for len(epochs) > 1 && epochs[1].Start <= logStart {
		epochs = epochs[1:]
	}
	if len(epochs) == 0 || epochs[0].Start >= logStart {
		return epochs
	}
	return append([]EpochStart{{Epoch: epochs[0].Epoch, Start: logStart}}, epochs[1:]...)
}
