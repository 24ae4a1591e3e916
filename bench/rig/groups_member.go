package rig

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// GroupTopic is what members subscribe to.
const GroupTopic = "bench-groups"

// Versions that members speak: the last ones before everything became longer.
const (
	joinVersion  = 5
	syncVersion  = 3
	beatVersion  = 3
	leaveVersion = 3
)

// roster is what the members of a group agree on.
type roster struct {
	Group string
	size  int          // how many members the group shall have
	final atomic.Int32 // the generation that has them all, 0 if there is none yet
}

// expect begins to wait for a generation of so many members.
func (r *roster) expect(size int) {
	r.size = size
	r.final.Store(0)
}

// GroupMember is a client that is a member of a group.
type GroupMember struct {
	Conn       net.Conn
	Roster     *roster
	id         string
	generation int32
	partition  int32 // that it was assigned
}

var subscription = func() []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics = []string{GroupTopic}
	return m.AppendTo(nil)
}()

func (m *GroupMember) joinRequest() *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version = joinVersion
	req.Group, req.MemberID, req.ProtocolType = m.Roster.Group, m.id, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 30*60_000, 5*60_000
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: subscription}}
	return req
}

// Enter asks for a member id, which the group then waits for.
func (m *GroupMember) Enter() error {
	m.id = ""
	answer, err := Ask(m.Conn, m.joinRequest())
	if err != nil {
		return err
	}
	resp := answer.(*kmsg.JoinGroupResponse)
	if resp.ErrorCode != kerr.MemberIDRequired.Code || resp.MemberID == "" {
		return fmt.Errorf("first join: member id %q, error %w", resp.MemberID, kerr.ErrorForCode(resp.ErrorCode))
	}
	m.id = resp.MemberID
	return nil
}

// join waits for the next generation. The leader gets the list of members.
func (m *GroupMember) join() ([]kmsg.JoinGroupResponseMember, error) {
	answer, err := Ask(m.Conn, m.joinRequest())
	if err != nil {
		return nil, err
	}
	resp := answer.(*kmsg.JoinGroupResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	if resp.MemberID != m.id || resp.Generation <= m.generation || (resp.LeaderID == m.id) != (len(resp.Members) > 0) {
		return nil, fmt.Errorf("join: %s of generation %d got an answer to %s of generation %d with %d members",
			m.id, m.generation, resp.MemberID, resp.Generation, len(resp.Members))
	}
	m.generation = resp.Generation
	return resp.Members, nil
}

// sync asks for the assignment, and if there is a list gives everybody on it a
// partition. It returns false if the group rebalances again.
func (m *GroupMember) sync(list []kmsg.JoinGroupResponseMember) (bool, error) {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version = syncVersion
	req.Group, req.MemberID, req.Generation = m.Roster.Group, m.id, m.generation
	for i := range list {
		req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{
			MemberID: list[i].MemberID, MemberAssignment: assignment(int32(i)),
		})
	}
	answer, err := Ask(m.Conn, req)
	if err != nil {
		return false, err
	}
	resp := answer.(*kmsg.SyncGroupResponse)
	err = kerr.ErrorForCode(resp.ErrorCode)
	if errors.Is(err, kerr.RebalanceInProgress) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("sync: %w", err)
	}
	m.partition, err = assigned(resp.MemberAssignment)
	return true, err
}

func assignment(partition int32) []byte {
	a := kmsg.NewConsumerMemberAssignment()
	a.Topics = []kmsg.ConsumerMemberAssignmentTopic{{Topic: GroupTopic, Partitions: []int32{partition}}}
	return a.AppendTo(nil)
}

// assigned reads an assignment of one partition.
func assigned(b []byte) (int32, error) {
	a := kmsg.NewConsumerMemberAssignment()
	if err := a.ReadFrom(b); err != nil {
		return 0, fmt.Errorf("assignment of %d bytes: %w", len(b), err)
	}
	if len(a.Topics) != 1 || a.Topics[0].Topic != GroupTopic || len(a.Topics[0].Partitions) != 1 {
		return 0, fmt.Errorf("assignment of something else: %v", a.Topics)
	}
	return a.Topics[0].Partitions[0], nil
}

// settle joins and syncs until the generation with all members has assigned.
func (m *GroupMember) settle() error {
	for {
		list, err := m.join()
		if err != nil {
			return err
		}
		if len(list) == m.Roster.size {
			m.Roster.final.Store(m.generation)
		}
		ok, err := m.sync(list)
		if err != nil || ok && m.generation == m.Roster.final.Load() {
			return err
		}
		for ok { // Assigned too early: not all were there. A heartbeat will tell.
			time.Sleep(time.Millisecond)
			if ok, err = m.beat(); err != nil {
				return err
			}
		}
	}
}

// beat sends a heartbeat. It returns false if the group rebalances.
func (m *GroupMember) beat() (bool, error) {
	answer, err := Ask(m.Conn, m.heartbeat())
	if err != nil {
		return false, err
	}
	err = kerr.ErrorForCode(answer.(*kmsg.HeartbeatResponse).ErrorCode)
	if errors.Is(err, kerr.RebalanceInProgress) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("heartbeat: %w", err)
	}
	return true, nil
}

func (m *GroupMember) heartbeat() *kmsg.HeartbeatRequest {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version = beatVersion
	req.Group, req.MemberID, req.Generation = m.Roster.Group, m.id, m.generation
	return req
}

func (m *GroupMember) Leave() error {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version, req.Group = leaveVersion, m.Roster.Group
	req.Members = []kmsg.LeaveGroupRequestMember{{MemberID: m.id}}
	answer, err := Ask(m.Conn, req)
	if err != nil {
		return err
	}
	resp := answer.(*kmsg.LeaveGroupResponse)
	if len(resp.Members) != 1 || resp.ErrorCode != 0 || resp.Members[0].ErrorCode != 0 {
		return fmt.Errorf("leave: error %d, %v", resp.ErrorCode, resp.Members)
	}
	m.generation = 0
	return nil
}

// checkAssigned checks that each of the members has a partition of its own, in
// one generation.
func checkAssigned(members []*GroupMember) error {
	owner := make([]*GroupMember, len(members))
	for _, m := range members {
		if m.generation != members[0].generation {
			return fmt.Errorf("%s is of generation %d, others of %d", m.id, m.generation, members[0].generation)
		}
		if int(m.partition) >= len(owner) || m.partition < 0 || owner[m.partition] != nil {
			return fmt.Errorf("%s was assigned partition %d, which another has or nobody could", m.id, m.partition)
		}
		owner[m.partition] = m
	}
	return nil
}

// CheckStable checks that the broker thinks of the group what its members do.
func CheckStable(c net.Conn, group string, members int) error {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version, req.Groups = 4, []string{group}
	answer, err := Ask(c, req)
	if err != nil {
		return err
	}
	for _, g := range answer.(*kmsg.DescribeGroupsResponse).Groups {
		if g.ErrorCode != 0 || g.State != "Stable" || len(g.Members) != members {
			return fmt.Errorf("group %s is %s with %d members, error %d; expected %d", g.Group, g.State, len(g.Members), g.ErrorCode, members)
		}
	}
	return nil
}
