package metadata

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Refused is an error of a change that the cluster does not allow: the code
// that Kafka has for it, and a sentence for people.
type Refused struct {
	Code *kerr.Error
	Msg  string
}

func (e *Refused) Error() string { return e.Msg }

// Unwrap returns the code.
func (e *Refused) Unwrap() error { return e.Code }

// Refuse makes a Refused.
func Refuse(code *kerr.Error, format string, args ...any) error {
	return &Refused{Code: code, Msg: fmt.Sprintf(format, args...)}
}

// NewTopic asks for a topic. Of an internal one only the name counts.
type NewTopic struct {
	Name string
	// Partitions is how many; -1 for num.partitions.
	Partitions int32
	// Replication is the replication factor; -1 for the default.
	Replication int16
	// Leaders names the first leader of each partition; empty to let the cluster
	// choose.
	Leaders []int32
	Set     map[string]string
}

// Reassignment asks for a partition to be led by a broker.
type Reassignment struct {
	Topic     string
	Partition int32
	Replicas  []int32
	// Cancel asks for an earlier one to be given up instead.
	Cancel bool
}

// ConfigOp says what an incremental change does to a setting, numbered as in
// IncrementalAlterConfigs.
type ConfigOp int8

// The operations. Append and Subtract are for lists.
const (
	ConfigSet ConfigOp = iota
	ConfigDelete
	ConfigAppend
	ConfigSubtract
)

// ConfigChange is one incremental change of a setting.
type ConfigChange struct {
	Name  string
	Op    ConfigOp
	Value *string
}
