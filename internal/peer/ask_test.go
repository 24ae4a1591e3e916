package peer

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/machine"
	"muster/internal/partition"
)

func (w *world) ask(q partition.TxnQuestion) chan partition.TxnAnswer {
	out := make(chan partition.TxnAnswer, 1)
	w.Ask(q, func(a partition.TxnAnswer) { out <- a })
	return out
}

func about(id string, pid int64, index int32) partition.TxnQuestion {
	return partition.TxnQuestion{TransactionalID: id, ProducerID: pid, ProducerEpoch: 3, Topic: "t", Partition: index}
}

// reply answers questions: partition 9 is in no transaction, and each transaction
// began at its producer id.
func reply(a arrived) {
	req := a.Request.(*kmsg.AddPartitionsToTxnRequest)
	resp := kmsg.NewPtrAddPartitionsToTxnResponse()
	for _, t := range req.Transactions {
		out := kmsg.NewAddPartitionsToTxnResponseTransaction()
		out.TransactionalID = t.TransactionalID
		for _, topic := range t.Topics {
			answer := kmsg.NewAddPartitionsToTxnResponseTransactionTopic()
			answer.Topic = topic.Topic
			for _, index := range topic.Partitions {
				p := kmsg.NewAddPartitionsToTxnResponseTransactionTopicPartition()
				p.Partition = index
				machine.TxnStart(t.ProducerID).Set(&p.UnknownTags)
				if index == 9 {
					p.ErrorCode = kerr.TransactionAbortable.Code
				}
				answer.Partitions = append(answer.Partitions, p)
			}
			out.Topics = append(out.Topics, answer)
		}
		resp.Transactions = append(resp.Transactions, out)
	}
	a.answer(resp)
}

func TestQuestionsThatComeMeanwhileGoOutTogether(t *testing.T) {
	f := newFake(t)
	w := newWorld(t, f.broker())
	var first []arrived
	var answers []chan partition.TxnAnswer
	for i := range asksAtOnce {
		answers = append(answers, w.ask(about(fmt.Sprint(i), int64(i), 0)))
		first = append(first, <-f.requests)
	}
	const more = 100
	for i := range more {
		n := asksAtOnce + i
		answers = append(answers, w.ask(about(fmt.Sprint(n), int64(n), int32(i%10))))
	}
	defer func() {
		for _, a := range first[1:] { // Meanwhile there is one way left.
			reply(a)
		}
	}()
	reply(first[0])
	second := <-f.requests
	assert.Equal(t, len(second.Request.(*kmsg.AddPartitionsToTxnRequest).Transactions), more, "questions in one request")
	reply(second)
	for i, out := range answers {
		if i > 0 && i < asksAtOnce {
			continue
		}
		got := <-out
		wantErr := i >= asksAtOnce && (i-asksAtOnce)%10 == 9
		assert.True(t, got.Start == int64(i) && (got.Err == kerr.TransactionAbortable) == wantErr && (got.Err == nil || wantErr), "%d: %+v", i, got)
	}
}

func TestPartitionsOfATransactionStandTogetherAndOtherTransactionsOfTheIDApart(t *testing.T) {
	a := &asking{}
	add := about("x", 1, 2)
	add.Add = true
	for _, q := range []partition.TxnQuestion{about("x", 1, 0), about("x", 1, 1), about("x", 1, 1), about("x", 2, 0), add, about("y", 5, 0)} {
		a.add(question{TxnQuestion: q})
	}
	req := buildQuestions(a.take())
	if len(req.Transactions) != 2 || len(req.Transactions[0].Topics) != 1 || len(req.Transactions[0].Topics[0].Partitions) != 2 || !req.Transactions[0].VerifyOnly {
		t.Errorf("first %+v", req.Transactions)
	}
	req = buildQuestions(a.take())
	assert.True(t, len(req.Transactions) == 1 && req.Transactions[0].ProducerID == 2 && req.Transactions[0].ProducerEpoch == 3, "then %+v", req.Transactions)
	req = buildQuestions(a.take())
	assert.True(t, len(req.Transactions) == 1 && !req.Transactions[0].VerifyOnly && len(a.take()) == 0, "last %+v", req.Transactions)
}

func TestARequestHoldsNoMoreQuestionsThanItMay(t *testing.T) {
	a := &asking{}
	for i := range asksTogether + 1 {
		a.add(question{TxnQuestion: about(fmt.Sprint(i), 1, 0)})
	}
	if n, rest := len(a.take()), len(a.take()); n != asksTogether || rest != 1 {
		t.Errorf("%d, then %d", n, rest)
	}
}

// The last transaction of a request has only the room that the others have left.
func TestATransactionIsAskedAboutInPartsIfTheRequestIsFull(t *testing.T) {
	a := &asking{}
	const each = asksTogether * 2 / 5
	for _, id := range []string{"x", "y", "z"} {
		for i := range each {
			a.add(question{TxnQuestion: about(id, 1, int32(i))})
		}
	}
	assert.Equal(t, len(a.take()), asksTogether, "questions in a request")
	rest := a.take()
	assert.MustTrue(t, len(rest) == 3*each-asksTogether, "%d questions in the next", len(rest))
	assert.True(t, rest[0].TransactionalID == "z" && rest[0].Partition == asksTogether-2*each, "it begins with %+v", rest[0].TxnQuestion)
}

// A producer may ask about one id with as many producer ids as it likes.
func TestManyQuestionsThatDoNotGoTogetherKeepNobodyWaiting(t *testing.T) {
	a := &asking{}
	const many = 100_000
	for i := range many {
		a.add(question{TxnQuestion: about("x", int64(i), 0)})
	}
	a.add(question{TxnQuestion: about("y", 1, 0)})
	if some := a.take(); len(some) != 2 || some[1].TransactionalID != "y" {
		t.Errorf("first %d questions", len(some))
	}
	taken := 1
	for len(a.take()) > 0 {
		taken++ // If each looked at all that is left, this would take minutes.
	}
	assert.True(t, taken == many && len(a.queues) == 0, "%d of %d were taken", taken, many)
}

func TestAQuestionThatNobodyAnswersFailsForTheNetwork(t *testing.T) {
	f := newFake(t)
	w := newWorld(t, f.broker())
	out := w.ask(about("x", 1, 0))
	<-f.requests
	f.hangUp()
	if got := <-out; got.Err != kerr.NetworkException || got.Start != -1 {
		t.Errorf("%+v", got)
	}
}

func TestAQuestionThatIsRefusedOrForgottenFails(t *testing.T) {
	f := newFake(t)
	w := newWorld(t, f.broker())
	for _, tt := range []struct {
		answer int16
		want   *kerr.Error
	}{
		{kerr.ClusterAuthorizationFailed.Code, kerr.NetworkException}, // A producer would give up, and secrets may differ for a moment.
		{kerr.InvalidRequest.Code, kerr.InvalidRequest},
		{0, kerr.UnknownServerError},
	} {
		out := w.ask(about("x", 1, 0))
		resp := kmsg.NewPtrAddPartitionsToTxnResponse()
		resp.ErrorCode = tt.answer
		a := <-f.requests
		a.answer(resp)
		if got := <-out; got.Err != tt.want {
			t.Errorf("%+v, want %v", got, tt.want)
		}
	}
}

func TestWithoutATopicThereIsNoCoordinatorToAsk(t *testing.T) {
	w := newWorld(t)
	if got := <-w.ask(about("x", 1, 0)); got.Err != kerr.CoordinatorNotAvailable {
		t.Errorf("%+v", got)
	}
}

// The log of a coordinator may have lost the transaction when its leader epoch has changed.
func TestTheAnswerOfACoordinatorThatWasReplacedIsRefused(t *testing.T) {
	f := newFake(t)
	w := newWorld(t, f.broker())
	out := w.ask(about("x", 1, 0))
	asked := <-f.requests
	edit := w.image.Load().Edit()
	edit.SetLeaderEpoch(1)
	w.image.Store(edit.Image())
	reply(asked)
	if got := <-out; got.Err != kerr.NotCoordinator || got.Start != -1 {
		t.Errorf("the answer of a coordinator that was replaced: %+v", got)
	}
	out = w.ask(about("x", 1, 0))
	reply(<-f.requests)
	if got := <-out; got.Err != nil || got.Start != 1 {
		t.Errorf("asked again: %+v", got)
	}
}

// A question goes out under the topic's id; two topics of one name, of which one was
// made after the other, are not the same.
func TestQuestionsNameTheTopicByItsID(t *testing.T) {
	some := []question{}
	for i, id := range []byte{1, 2, 1} {
		q := about("x", 7, int32(i))
		q.TopicID[15] = id
		some = append(some, question{TxnQuestion: q})
	}
	topics := buildQuestions(some).Transactions[0].Topics
	if len(topics) != 2 || machine.TopicIDOf(&topics[0].UnknownTags) != (machine.TopicID{15: 1}) || machine.TopicIDOf(&topics[1].UnknownTags) != (machine.TopicID{15: 2}) {
		t.Errorf("asked about %+v", topics)
	}
}
