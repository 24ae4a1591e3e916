package metrics

import (
	"runtime"
	"runtime/debug"
	"strconv"
)

// addCluster adds what is of the cluster, and of this broker as a whole.
func (v *view) addCluster() {
	c := &v.cluster
	if c.isFirst() {
		v.put(brokersFamily, float64(len(c.Brokers)))
		for _, b := range c.Brokers {
			v.put(brokerInfoFamily, 1, v.label(idLabel, strconv.Itoa(int(b.ID))), v.label(addressLabel, b.Address))
		}
	}
	v.put(brokerStateFamily, float64(c.State))
	v.put(activeControllerFamily, oneIf(c.Controller))
	v.put(uncleanElectionsFamily, 0)
	for listener, n := range c.Connections {
		v.put(connectionsFamily, float64(n), v.label(listenerLabel, listener))
	}
	v.put(storeUpFamily, oneIf(c.StoreUp))
	if c.DiskSize >= 0 {
		v.put(diskSizeFamily, float64(c.DiskSize))
		v.put(diskFreeFamily, float64(c.DiskFree))
	}
	version, revision := build()
	v.put(buildInfoFamily, 1, v.label(versionLabel, version), v.label(revisionLabel, revision), v.label(goversionLabel, runtime.Version()))
	v.addLed()
}

// addLed adds how many partitions this broker leads. Before the first look at topics
// no one knows.
func (v *view) addLed() {
	if v.snapshot.At.IsZero() {
		return
	}
	led, offline := 0, 0
	for i := range v.snapshot.Topics {
		for _, p := range v.snapshot.Topics[i].Partitions {
			if p.Here {
				led++
			}
			if p.Leader < 0 {
				offline++
			}
		}
	}
	v.put(leaderCountFamily, float64(led))
	v.put(partitionCountFamily, float64(led))
	v.put(underReplicatedCountFamily, 0)
	if v.cluster.OneCopy {
		v.put(underMinISRFamily, 0)
	}
	if v.cluster.isFirst() {
		v.put(offlinePartitionsFamily, float64(offline))
	}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// build returns what the go command stamped into the binary.
func build() (version, revision string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			revision = s.Value
		}
	}
	return info.Main.Version, revision
}
