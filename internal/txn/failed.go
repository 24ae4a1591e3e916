package txn

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// failed returns the answer that tells a client of an error that is not about its
// request but about the coordinator; nil makes it a success.
func failed(req kmsg.Request, err *kerr.Error) kmsg.Response {
	var code int16
	if err != nil {
		code = err.Code
	}
	out := req.ResponseKind()
	switch resp := out.(type) {
	case *kmsg.InitProducerIDResponse:
		resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch = code, none, none
	case *kmsg.AddPartitionsToTxnResponse:
		failPartitions(req.(*kmsg.AddPartitionsToTxnRequest), resp, err)
	case *kmsg.AddOffsetsToTxnResponse:
		resp.ErrorCode = code
	case *kmsg.EndTxnResponse:
		resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch = code, none, none
	case *kmsg.ListTransactionsResponse:
		resp.ErrorCode = code
	case *kmsg.DescribeTransactionsResponse:
		for _, id := range req.(*kmsg.DescribeTransactionsRequest).TransactionalIDs {
			e := kmsg.NewDescribeTransactionsResponseTransactionState()
			e.TransactionalID, e.ErrorCode = id, code
			resp.TransactionStates = append(resp.TransactionStates, e)
		}
	}
	return out
}
