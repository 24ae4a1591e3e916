package protocol

import "github.com/twmb/franz-go/pkg/kmsg"

// NewRequest makes a request of an API key that brokers are asked with, and nil for others.
// kmsg.RequestForKey knows all keys there are: with it the program has the code of each, 0.7 MB of
// requests that no one sends to us.
func NewRequest(key int16) kmsg.Request {
	if key < 0 || int(key) >= len(requests) || requests[key] == nil {
		return nil
	}
	return requests[key]()
}

// requests are those of the table of package handler, whose test compares the two.
var requests = [...]func() kmsg.Request{
	0:  func() kmsg.Request { return kmsg.NewPtrProduceRequest() },
	1:  func() kmsg.Request { return kmsg.NewPtrFetchRequest() },
	2:  func() kmsg.Request { return kmsg.NewPtrListOffsetsRequest() },
	3:  func() kmsg.Request { return kmsg.NewPtrMetadataRequest() },
	8:  func() kmsg.Request { return kmsg.NewPtrOffsetCommitRequest() },
	9:  func() kmsg.Request { return kmsg.NewPtrOffsetFetchRequest() },
	10: func() kmsg.Request { return kmsg.NewPtrFindCoordinatorRequest() },
	11: func() kmsg.Request { return kmsg.NewPtrJoinGroupRequest() },
	12: func() kmsg.Request { return kmsg.NewPtrHeartbeatRequest() },
	13: func() kmsg.Request { return kmsg.NewPtrLeaveGroupRequest() },
	14: func() kmsg.Request { return kmsg.NewPtrSyncGroupRequest() },
	15: func() kmsg.Request { return kmsg.NewPtrDescribeGroupsRequest() },
	16: func() kmsg.Request { return kmsg.NewPtrListGroupsRequest() },
	17: func() kmsg.Request { return kmsg.NewPtrSASLHandshakeRequest() },
	18: func() kmsg.Request { return kmsg.NewPtrApiVersionsRequest() },
	19: func() kmsg.Request { return kmsg.NewPtrCreateTopicsRequest() },
	20: func() kmsg.Request { return kmsg.NewPtrDeleteTopicsRequest() },
	21: func() kmsg.Request { return kmsg.NewPtrDeleteRecordsRequest() },
	22: func() kmsg.Request { return kmsg.NewPtrInitProducerIDRequest() },
	23: func() kmsg.Request { return kmsg.NewPtrOffsetForLeaderEpochRequest() },
	24: func() kmsg.Request { return kmsg.NewPtrAddPartitionsToTxnRequest() },
	25: func() kmsg.Request { return kmsg.NewPtrAddOffsetsToTxnRequest() },
	26: func() kmsg.Request { return kmsg.NewPtrEndTxnRequest() },
	27: func() kmsg.Request { return kmsg.NewPtrWriteTxnMarkersRequest() },
	28: func() kmsg.Request { return kmsg.NewPtrTxnOffsetCommitRequest() },
	29: func() kmsg.Request { return kmsg.NewPtrDescribeACLsRequest() },
	30: func() kmsg.Request { return kmsg.NewPtrCreateACLsRequest() },
	31: func() kmsg.Request { return kmsg.NewPtrDeleteACLsRequest() },
	32: func() kmsg.Request { return kmsg.NewPtrDescribeConfigsRequest() },
	33: func() kmsg.Request { return kmsg.NewPtrAlterConfigsRequest() },
	34: func() kmsg.Request { return kmsg.NewPtrAlterReplicaLogDirsRequest() },
	35: func() kmsg.Request { return kmsg.NewPtrDescribeLogDirsRequest() },
	36: func() kmsg.Request { return kmsg.NewPtrSASLAuthenticateRequest() },
	37: func() kmsg.Request { return kmsg.NewPtrCreatePartitionsRequest() },
	42: func() kmsg.Request { return kmsg.NewPtrDeleteGroupsRequest() },
	43: func() kmsg.Request { return kmsg.NewPtrElectLeadersRequest() },
	44: func() kmsg.Request { return kmsg.NewPtrIncrementalAlterConfigsRequest() },
	45: func() kmsg.Request { return kmsg.NewPtrAlterPartitionAssignmentsRequest() },
	46: func() kmsg.Request { return kmsg.NewPtrListPartitionReassignmentsRequest() },
	47: func() kmsg.Request { return kmsg.NewPtrOffsetDeleteRequest() },
	48: func() kmsg.Request { return kmsg.NewPtrDescribeClientQuotasRequest() },
	49: func() kmsg.Request { return kmsg.NewPtrAlterClientQuotasRequest() },
	50: func() kmsg.Request { return kmsg.NewPtrDescribeUserSCRAMCredentialsRequest() },
	51: func() kmsg.Request { return kmsg.NewPtrAlterUserSCRAMCredentialsRequest() },
	55: func() kmsg.Request { return kmsg.NewPtrDescribeQuorumRequest() },
	57: func() kmsg.Request { return kmsg.NewPtrUpdateFeaturesRequest() },
	60: func() kmsg.Request { return kmsg.NewPtrDescribeClusterRequest() },
	61: func() kmsg.Request { return kmsg.NewPtrDescribeProducersRequest() },
	65: func() kmsg.Request { return kmsg.NewPtrDescribeTransactionsRequest() },
	66: func() kmsg.Request { return kmsg.NewPtrListTransactionsRequest() },
	67: func() kmsg.Request { return kmsg.NewPtrAllocateProducerIDsRequest() },
	68: func() kmsg.Request { return kmsg.NewPtrConsumerGroupHeartbeatRequest() },
	69: func() kmsg.Request { return kmsg.NewPtrConsumerGroupDescribeRequest() },
	74: func() kmsg.Request { return kmsg.NewPtrListConfigResourcesRequest() },
	75: func() kmsg.Request { return kmsg.NewPtrDescribeTopicPartitionsRequest() },
	76: func() kmsg.Request { return kmsg.NewPtrShareGroupHeartbeatRequest() },
	77: func() kmsg.Request { return kmsg.NewPtrShareGroupDescribeRequest() },
	78: func() kmsg.Request { return kmsg.NewPtrShareFetchRequest() },
	79: func() kmsg.Request { return kmsg.NewPtrShareAcknowledgeRequest() },
	83: func() kmsg.Request { return kmsg.NewPtrInitializeShareGroupStateRequest() },
	84: func() kmsg.Request { return kmsg.NewPtrReadShareGroupStateRequest() },
	85: func() kmsg.Request { return kmsg.NewPtrWriteShareGroupStateRequest() },
	86: func() kmsg.Request { return kmsg.NewPtrDeleteShareGroupStateRequest() },
	87: func() kmsg.Request { return kmsg.NewPtrReadShareGroupStateSummaryRequest() },
	88: func() kmsg.Request { return kmsg.NewPtrStreamsGroupHeartbeatRequest() },
	89: func() kmsg.Request { return kmsg.NewPtrStreamsGroupDescribeRequest() },
	90: func() kmsg.Request { return kmsg.NewPtrDescribeShareGroupOffsetsRequest() },
	91: func() kmsg.Request { return kmsg.NewPtrAlterShareGroupOffsetsRequest() },
	92: func() kmsg.Request { return kmsg.NewPtrDeleteShareGroupOffsetsRequest() },
}
