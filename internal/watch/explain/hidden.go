package explain

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"muster/internal/journal"
)

// HiddenTopic stands for the name of a topic that someone may not know of. No topic can
// have it.
const HiddenTopic = "(hidden)"

// Hide puts HiddenTopic in the place of the topics that someone may not see, and leaves out
// what clients said if it names such a topic: whether a word is one is asked, too. What is
// left of the entry is what this version understands of it.
func (e *Entry) Hide(sees, exists func(topic string) bool) error {
	unseen := func(topic *string) bool { return !sees(*topic) }
	hidden := func(word string) bool { return exists(word) && !sees(word) }
	says := func(t journal.Trigger) bool { return names(t.Reason, hidden) }
	if !slices.ContainsFunc(topicsIn(&e.Entry), unseen) && !slices.ContainsFunc(e.Triggers, says) {
		return nil
	}
	out, err := ReadEntry(e.Raw) // Others may have the lists of this one.
	if err != nil {
		return err
	}
	for i := range out.Triggers {
		if says(out.Triggers[i]) {
			out.Triggers[i].Reason = ""
		}
	}
	for _, topic := range topicsIn(&out.Entry) {
		if unseen(topic) {
			*topic = HiddenTopic
		}
	}
	out.Raw, err = json.Marshal(&out.Entry)
	*e = out
	return err
}

// topicsIn returns where an entry names topics.
func topicsIn(e *journal.Entry) (out []*string) {
	parts := func(r *journal.Revoke) {
		for i := range r.Parts {
			out = append(out, &r.Parts[i].Topic)
		}
	}
	for i := range e.Moves {
		out = append(out, &e.Moves[i].Topic)
	}
	for i := range e.Topics {
		out = append(out, &e.Topics[i].Topic)
	}
	for i := range e.Suspects {
		out = append(out, &e.Suspects[i].Topic)
	}
	if e.Reset != nil {
		for i := range e.Reset.Moved {
			out = append(out, &e.Reset.Moved[i].Topic)
		}
	}
	for i := range e.Revokes {
		parts(&e.Revokes[i])
	}
	for i := range e.Triggers {
		t := &e.Triggers[i]
		if t.Change != nil {
			for _, list := range [][]string{t.Change.TopicsAdded, t.Change.TopicsRemoved} {
				for i := range list {
					out = append(out, &list[i])
				}
			}
		}
		if t.Revoke != nil {
			parts(t.Revoke)
		}
		if t.Topics != nil {
			for i := range t.Topics.List {
				out = append(out, &t.Topics.List[i].Topic)
			}
		}
	}
	return out
}

// names says whether a text has a certain word, alone or with the number of a partition:
// clients say which ones they give up.
func names(text string, certain func(word string) bool) bool {
	ends := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-", r)
	}
	for word := range strings.FieldsFuncSeq(text, ends) {
		sentence := strings.TrimRight(word, ".")
		topic := strings.TrimRight(strings.TrimRight(sentence, "0123456789"), "-")
		if certain(word) || certain(sentence) || certain(topic) {
			return true
		}
	}
	return false
}
