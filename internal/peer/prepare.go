package peer

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// leastQuestion is the first version of AddPartitionsToTxn that is about several
// transactions, and for brokers only.
const leastQuestion = 4

// leastBounds is the first version of ListOffsets that has tagged fields.
const leastBounds = 6

// prepare returns a copy of a request in another version. Transactions and ListOffsets are open to
// clients too, by rules that brokers need not have.
func prepare(req kmsg.Request, version int16) (kmsg.Request, error) {
	switch r := req.(type) {
	case *kmsg.AddPartitionsToTxnRequest:
		if version < leastQuestion {
			return nil, fmt.Errorf("it serves only version %d", version)
		}
		out := *r
		out.Version = version
		return &out, nil
	case *kmsg.WriteTxnMarkersRequest:
		out := *r
		out.Version = version
		return &out, nil
	case *kmsg.DescribeTransactionsRequest:
		out := *r
		out.Version = version
		return &out, nil
	case *kmsg.ListTransactionsRequest:
		out := *r
		out.Version = version
		return &out, nil
	case *kmsg.ListOffsetsRequest:
		if version < leastBounds {
			return nil, fmt.Errorf("it serves only version %d", version)
		}
		out := *r
		out.Version = version
		return &out, nil
	case *kmsg.InitializeShareGroupStateRequest:
		out := *r
		out.Version = version
		return &out, nil
	case *kmsg.ReadShareGroupStateRequest:
		out := *r
		out.Version = version
		return &out, nil
	case *kmsg.WriteShareGroupStateRequest:
		out := *r
		out.Version = version
		return &out, nil
	case *kmsg.DeleteShareGroupStateRequest:
		out := *r
		out.Version = version
		return &out, nil
	case *kmsg.ReadShareGroupStateSummaryRequest:
		out := *r
		out.Version = version
		return &out, nil
	}
	return nil, fmt.Errorf("%s is not for other brokers", kmsg.NameForKey(req.Key()))
}
