package handler

import (
	"reflect"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// illegalState answers a request that came in the middle of a login with ILLEGAL_SASL_STATE,
// as Kafka does before it closes the connection: in the answer itself, and for each thing that
// the request names where the answer has an error for each. It takes no more memory than what
// is counted for any decoded request.
func illegalState(req kmsg.Request) kmsg.Response {
	resp := req.ResponseKind()
	answer := reflect.ValueOf(resp).Elem()
	mirror(answer, reflect.ValueOf(req).Elem())
	if text := answer.FieldByName("ErrorMessage"); text.IsValid() {
		text.Set(reflect.ValueOf(kmsg.StringPtr(kmsg.NameForKey(req.Key()) + " request received where the login does not allow it")))
	}
	return resp
}

// namedElsewhere are the lists of requests that their answers call by another name.
var namedElsewhere = map[string][]string{
	"Coordinators":      {"CoordinatorKeys"},
	"Groups":            {"GroupIDs"},
	"Topics":            {"TopicNames"},
	"TransactionStates": {"TransactionalIDs"},
	"Results":           {"Creations", "Filters", "Upsertions", "Deletions"},
}

// mirror fills an answer, or a part of it: names are those of the request.
func mirror(answer, request reflect.Value) {
	for i := range answer.NumField() {
		name, to := answer.Type().Field(i).Name, answer.Field(i)
		from := request.FieldByName(name)
		switch {
		case name == "ErrorCode":
			to.SetInt(int64(kerr.IllegalSaslState.Code))
		case to.Kind() == reflect.Slice && to.Type().Elem().Kind() == reflect.Struct:
			for _, other := range namedElsewhere[name] {
				if !from.IsValid() || from.Len() == 0 {
					from = request.FieldByName(other)
				}
			}
			if from.IsValid() && from.Kind() == reflect.Slice {
				mirrorEach(to, from)
			}
		case from.IsValid() && from.Type() == to.Type() && to.Kind() != reflect.Struct && to.Kind() != reflect.Slice:
			to.Set(from)
		}
	}
}

// mirrorEach makes an entry of the answer for each entry of the request, which may be a name
// alone.
func mirrorEach(to, from reflect.Value) {
	to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
	for i := range from.Len() {
		entry, of := to.Index(i), from.Index(i)
		if d, ok := entry.Addr().Interface().(interface{ Default() }); ok {
			d.Default()
		}
		if of.Kind() == reflect.Struct {
			mirror(entry, of)
			continue
		}
		named := false
		for j := range entry.NumField() {
			switch field := entry.Field(j); {
			case entry.Type().Field(j).Name == "ErrorCode":
				field.SetInt(int64(kerr.IllegalSaslState.Code))
			case field.Type() == of.Type() && !named:
				field.Set(of)
				named = true
			case field.Type() == reflect.PointerTo(of.Type()) && !named:
				field.Set(of.Addr())
				named = true
			}
		}
	}
}
