package auth

// Operations is a set of operations, one bit each at Kafka's number. The wire
// has it in this form as authorized_operations.
type Operations uint32

// everything holds all operations that there are.
const everything = Operations(1)<<operations - 1<<All

// Set returns the set of some operations.
func Set(ops ...Operation) (s Operations) {
	for _, op := range ops {
		s |= bit(op)
	}
	return s
}

// bit is the set of one operation.
func bit(op Operation) Operations { return Operations(1) << uint8(op) }

// Has says whether an operation is in the set.
func (s Operations) Has(op Operation) bool { return s&bit(op) != 0 }

// allowed returns what rules give that allow these operations: to read, write,
// delete or alter a thing one must see it, to alter settings one must see them.
func (s Operations) allowed() Operations {
	if s.Has(All) {
		return everything
	}
	if s&Set(Read, Write, Delete, Alter) != 0 {
		s |= bit(Describe)
	}
	if s.Has(AlterConfigs) {
		s |= bit(DescribeConfigs)
	}
	return s
}

// denied returns what rules take that deny these operations: nothing is implied,
// so who may not write can still see.
func (s Operations) denied() Operations {
	if s.Has(All) {
		return everything
	}
	return s
}

// allowing returns which operations, allowed by a rule, would give this one.
func allowing(op Operation) Operations {
	s := Set(op, All)
	switch op {
	case Describe:
		s |= Set(Read, Write, Delete, Alter)
	case DescribeConfigs:
		s |= bit(AlterConfigs)
	}
	return s
}

// supported holds the operations that mean something for a resource type.
var supported = [resourceTypes]Operations{
	Topic:           Set(Read, Write, Create, Describe, Delete, Alter, DescribeConfigs, AlterConfigs),
	Group:           Set(Read, Describe, Delete, DescribeConfigs, AlterConfigs),
	Cluster:         Set(Create, ClusterAction, DescribeConfigs, AlterConfigs, IdempotentWrite, Alter, Describe),
	TransactionalID: Set(Describe, Write, TwoPhaseCommit),
}

// Operations returns the operations that mean something for the resource type.
// A rule may name others, as in Kafka, where only kafka-acls refuses them.
func (t ResourceType) Operations() Operations {
	if t < 0 || t >= resourceTypes {
		return 0
	}
	return supported[t]
}
