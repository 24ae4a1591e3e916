package web

import (
	"bytes"
	"context"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/audit"
	"muster/internal/auth"
	"muster/internal/auth/sasl"
	"muster/internal/record"
	"muster/internal/watch/groupview"
	"muster/internal/web/act"
)

// fakeActs notes what it is told to do.
type fakeActs struct {
	did       []string
	fails     error
	committed map[groupview.TopicPartition]int64
	holds     func() // Called by Committed.
}

func (f *fakeActs) note(who act.Asker, format string, args ...any) error {
	f.did = append(f.did, fmt.Sprintf("%s@%s ", who.Principal, who.Host)+fmt.Sprintf(format, args...))
	return f.fails
}

// do answers the requests of the Kafka protocol that acts send.
func (f *fakeActs) do(_ context.Context, who act.Asker, req kmsg.Request) (act.Answer, error) {
	resp, err := f.answer(who, req)
	return act.Answer{Response: resp}, err
}

func (f *fakeActs) answer(who act.Asker, req kmsg.Request) (kmsg.Response, error) {
	switch req := req.(type) {
	case *kmsg.CreateTopicsRequest:
		resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
		resp.Topics = []kmsg.CreateTopicsResponseTopic{{NumPartitions: 3}}
		return resp, f.note(who, "create %s %t", req.Topics[0].Topic, req.ValidateOnly)
	case *kmsg.DeleteTopicsRequest:
		resp := req.ResponseKind().(*kmsg.DeleteTopicsResponse)
		resp.Topics = make([]kmsg.DeleteTopicsResponseTopic, 1)
		return resp, f.note(who, "delete %s", *req.Topics[0].Topic)
	case *kmsg.CreatePartitionsRequest:
		resp := req.ResponseKind().(*kmsg.CreatePartitionsResponse)
		resp.Topics = make([]kmsg.CreatePartitionsResponseTopic, 1)
		return resp, f.note(who, "grow %s %d %t", req.Topics[0].Topic, req.Topics[0].Count, req.ValidateOnly)
	case *kmsg.IncrementalAlterConfigsRequest:
		resp := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
		resp.Resources = make([]kmsg.IncrementalAlterConfigsResponseResource, 1)
		return resp, f.note(who, "alter %s %s %t", req.Resources[0].ResourceName, configsOf(req.Resources[0].Configs), req.ValidateOnly)
	case *kmsg.ProduceRequest:
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		resp.Topics = []kmsg.ProduceResponseTopic{{Partitions: []kmsg.ProduceResponseTopicPartition{{BaseOffset: 1 << 60}}}}
		var r record.Record
		err := record.Batch(req.Topics[0].Partitions[0].Records).Each(func(x *record.Record) error { r = *x; return nil })
		return resp, errors.Join(err, f.note(who, "produce %s %q %q", req.Topics[0].Topic, r.Key, r.Value))
	case *kmsg.DeleteRecordsRequest:
		return f.deleteRecords(who, req)
	case *kmsg.DeleteGroupsRequest:
		resp := req.ResponseKind().(*kmsg.DeleteGroupsResponse)
		resp.Groups = make([]kmsg.DeleteGroupsResponseGroup, 1)
		return resp, f.note(who, "delete group %s", req.Groups[0])
	case *kmsg.LeaveGroupRequest:
		resp := req.ResponseKind().(*kmsg.LeaveGroupResponse)
		resp.Members = make([]kmsg.LeaveGroupResponseMember, 1)
		return resp, f.note(who, "remove %s %s", req.Group, req.Members[0].MemberID)
	case *kmsg.AlterClientQuotasRequest:
		resp := req.ResponseKind().(*kmsg.AlterClientQuotasResponse)
		resp.Entries = make([]kmsg.AlterClientQuotasResponseEntry, 1)
		x := &req.Entries[0]
		return resp, f.note(who, "quota %s %q %s %v %t", x.Entity[0].Type, *x.Entity[0].Name, x.Ops[0].Key, x.Ops[0].Value, req.ValidateOnly)
	case *kmsg.OffsetFetchRequest, *kmsg.OffsetCommitRequest, *kmsg.OffsetDeleteRequest, *kmsg.ListOffsetsRequest:
		return f.offsets(who, req)
	}
	return f.security(who, req)
}

// configsOf shows which settings are set, and which are deleted.
func configsOf(configs []kmsg.IncrementalAlterConfigsRequestResourceConfig) string {
	set, deleted := map[string]string{}, []string{}
	for _, c := range configs {
		if c.Op == kmsg.IncrementalAlterConfigOpSet {
			set[c.Name] = *c.Value
		} else {
			deleted = append(deleted, c.Name)
		}
	}
	return fmt.Sprint(set, " ", deleted)
}

func (f *fakeActs) deleteRecords(who act.Asker, req *kmsg.DeleteRecordsRequest) (kmsg.Response, error) {
	resp := req.ResponseKind().(*kmsg.DeleteRecordsResponse)
	before := map[int32]int64{}
	var starts []kmsg.DeleteRecordsResponseTopicPartition
	for _, p := range req.Topics[0].Partitions {
		before[p.Partition] = p.Offset
		starts = append(starts, kmsg.DeleteRecordsResponseTopicPartition{Partition: p.Partition, LowWatermark: p.Offset})
	}
	resp.Topics = []kmsg.DeleteRecordsResponseTopic{{Partitions: starts}}
	return resp, f.note(who, "trim %s %v", req.Topics[0].Topic, before)
}

// offsets answers what is about offsets: what is committed, and logs with 100 records, of
// which those of a time begin at 50.
func (f *fakeActs) offsets(who act.Asker, req kmsg.Request) (kmsg.Response, error) {
	switch req := req.(type) {
	case *kmsg.OffsetFetchRequest:
		resp := req.ResponseKind().(*kmsg.OffsetFetchResponse)
		var g kmsg.OffsetFetchResponseGroup
		for tp, at := range f.committed { // As it is when someone asks.
			g.Topics = append(g.Topics, kmsg.OffsetFetchResponseGroupTopic{Topic: tp.Topic, Partitions: []kmsg.OffsetFetchResponseGroupTopicPartition{{Partition: tp.Partition, Offset: at}}})
		}
		resp.Groups = append(resp.Groups, g)
		if f.holds != nil {
			f.holds()
		}
		return resp, nil
	case *kmsg.OffsetCommitRequest:
		resp := req.ResponseKind().(*kmsg.OffsetCommitResponse)
		to := map[groupview.TopicPartition]int64{}
		for _, t := range req.Topics {
			for _, p := range t.Partitions {
				to[groupview.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = p.Offset
			}
		}
		maps.Copy(f.committed, to)
		return resp, f.note(who, "commit %s %v", req.Group, to)
	case *kmsg.OffsetDeleteRequest:
		var partitions []int32
		for _, p := range req.Topics[0].Partitions {
			partitions = append(partitions, p.Partition)
		}
		return req.ResponseKind(), f.note(who, "forget %s %s %v", req.Group, req.Topics[0].Topic, partitions)
	}
	list := req.(*kmsg.ListOffsetsRequest)
	resp := list.ResponseKind().(*kmsg.ListOffsetsResponse)
	at := map[int64]int64{-1: 100, -2: 0}
	for _, t := range list.Topics {
		out := kmsg.ListOffsetsResponseTopic{Topic: t.Topic}
		for _, p := range t.Partitions {
			offset, ok := at[p.Timestamp]
			if !ok {
				offset = 50
			}
			out.Partitions = append(out.Partitions, kmsg.ListOffsetsResponseTopicPartition{Partition: p.Partition, Offset: offset})
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}

// security answers what is about users and rules.
func (f *fakeActs) security(who act.Asker, req kmsg.Request) (kmsg.Response, error) {
	switch req := req.(type) {
	case *kmsg.AlterUserSCRAMCredentialsRequest:
		resp := req.ResponseKind().(*kmsg.AlterUserSCRAMCredentialsResponse)
		resp.Results = make([]kmsg.AlterUserSCRAMCredentialsResponseResult, 1)
		if len(req.Deletions) > 0 {
			return resp, f.note(who, "delete user %s", req.Deletions[0].Name)
		}
		return resp, f.note(who, "password %s %s", req.Upsertions[0].Name, passwordOf(&req.Upsertions[0]))
	case *kmsg.CreateACLsRequest:
		resp := req.ResponseKind().(*kmsg.CreateACLsResponse)
		resp.Results = make([]kmsg.CreateACLsResponseResult, 1)
		c := &req.Creations[0]
		return resp, f.note(who, "allow %s", auth.Rule{
			Type: auth.ResourceType(c.ResourceType), Pattern: auth.PatternType(c.ResourcePatternType), Name: c.ResourceName,
			Principal: auth.Principal(c.Principal), Host: c.Host, Operation: auth.Operation(c.Operation), Permission: auth.Permission(c.PermissionType),
		})
	case *kmsg.DeleteACLsRequest:
		resp := req.ResponseKind().(*kmsg.DeleteACLsResponse)
		resp.Results = []kmsg.DeleteACLsResponseResult{{MatchingACLs: make([]kmsg.DeleteACLsResponseResultMatchingACL, 1)}}
		c := &req.Filters[0]
		return resp, f.note(who, "disallow %s", auth.Rule{
			Type: auth.ResourceType(c.ResourceType), Pattern: auth.PatternType(c.ResourcePatternType), Name: *c.ResourceName,
			Principal: auth.Principal(*c.Principal), Host: *c.Host, Operation: auth.Operation(c.Operation), Permission: auth.Permission(c.PermissionType),
		})
	}
	return nil, fmt.Errorf("no one expects %T", req)
}

// passwordOf says whether a credential is of the password x.
func passwordOf(u *kmsg.AlterUserSCRAMCredentialsRequestUpsertion) string {
	salted, err := pbkdf2.Key(sha256.New, "x", u.Salt, int(u.Iterations), sha256.Size)
	if u.Mechanism == int8(sasl.SHA512) {
		salted, err = pbkdf2.Key(sha512.New, "x", u.Salt, int(u.Iterations), sha512.Size)
	}
	if err != nil || !bytes.Equal(salted, u.SaltedPassword) {
		return "another"
	}
	return fmt.Sprintf("x by %d", u.Mechanism)
}

// bringing gives a request a body.
func bringing(contentType, body string) func(*http.Request) {
	return func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Type", contentType)
	}
}

func acting(f *fakeActs) func(*Options) {
	return func(o *Options) {
		o.Actions = act.New(act.Options{
			Do: f.do, Image: o.Reads.Image, Node: o.Reads.Node, Sees: o.Gate.Sees, Audit: func(audit.Entry) {},
			GroupError: func(_ string, err error) error { return err },
		})
	}
}
