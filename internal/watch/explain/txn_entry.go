package explain

import (
	"encoding/json"
	"fmt"

	"muster/internal/journal"
	"muster/internal/words"
)

// TxnEntry is an entry of the journal of transactions, with what the broker wrote.
type TxnEntry struct {
	journal.Txn
	Raw json.RawMessage
}

// ReadTxnEntry reads a record of the journal of transactions.
func ReadTxnEntry(key, value []byte) (TxnEntry, error) {
	e := TxnEntry{Raw: value}
	err := json.Unmarshal(value, &e.Txn)
	e.Key = string(key)
	return e, err
}

// Name is what the entry is about: a transactional id, or a producer.
func (e *TxnEntry) Name() string {
	if e.ID == "" {
		return "producer " + e.Key
	}
	return e.ID
}

// Line words an entry in a sentence or two, without when it was and of what.
func (e *TxnEntry) Line() string {
	out := e.what()
	if e.LeftOut > 0 {
		out += fmt.Sprintf(" (%d before this left out)", e.LeftOut)
	}
	return out
}

func (e *TxnEntry) what() string {
	switch e.Kind {
	case journal.TxnFenced:
		return e.fenced()
	case journal.TxnOperator:
		if e.PartitionN == 0 {
			return fmt.Sprintf("fenced by an operator: %s; no transaction was open", wordHolder(e.By, "someone"))
		}
		return fmt.Sprintf("aborted by an operator: %s; %s", wordHolder(e.By, "someone"), e.held())
	case journal.TxnTimedOut:
		return fmt.Sprintf("timed out: %s, longer than it may; it was aborted", e.held())
	case journal.TxnLost:
		return fmt.Sprintf("aborted because Redis restarted or failed over, and may have lost a part of it: %s", e.held())
	case journal.TxnRefused:
		return e.refused()
	case journal.TxnExpired:
		out := "id expired: no one had used it for " + words.Duration(e.Idle)
		if e.Holder != nil {
			out += "; last held by " + wordHolder(e.Holder, "")
		}
		return out
	case journal.TxnResolved:
		who := "a broker"
		if e.Broker != nil {
			who = fmt.Sprintf("broker %d", *e.Broker)
		}
		return fmt.Sprintf("orphan resolved: %s aborted what had been open in %s for %s and no coordinator knew", who, e.partitions(), words.Duration(e.Open))
	case journal.TxnMarked:
		end := "an abort"
		if e.Committed {
			end = "a commit"
		}
		return fmt.Sprintf("ended by an operator: %s wrote %s marker to %s, past the coordinator", wordHolder(e.By, "someone"), end, e.partitions())
	}
	return fmt.Sprintf("something that this version of muster has no words for (%s)", e.Kind)
}

// fenced words that an instance took the id.
func (e *TxnEntry) fenced() string {
	by := wordHolder(e.By, "another instance")
	switch {
	case e.PartitionN == 0:
		return fmt.Sprintf("fenced: %s took the id from %s; no transaction was open", by, wordHolder(e.Holder, "another"))
	case e.By != nil && e.Holder != nil && *e.By == *e.Holder:
		return fmt.Sprintf("fenced: %s started again; what it had left open in %s for %s was aborted", by, e.partitions(), words.Duration(e.Open))
	}
	return fmt.Sprintf("fenced: %s took the id; %s", by, e.held())
}

// held words who held what for how long.
func (e *TxnEntry) held() string {
	return fmt.Sprintf("%s had held %s for %s", wordHolder(e.Holder, "someone"), e.partitions(), words.Duration(e.Open))
}

// refused words that someone came who does not have the id.
func (e *TxnEntry) refused() string {
	out := "refused: " + wordHolder(e.By, "a producer")
	if e.Request != "" {
		out += " sent " + e.Request
	} else {
		out += " came"
	}
	now := e.Was
	if e.Now != nil {
		now = *e.Now
	}
	switch {
	case e.Was.ID != now.ID:
		return out + fmt.Sprintf(" as producer %d, epoch %d; the id belongs to producer %d now%s", e.Was.ID, e.Was.Epoch, now.ID, e.heldNow())
	case e.Was.Epoch > now.Epoch:
		return out + fmt.Sprintf(" with epoch %d, but the coordinator knows of epoch %d only: the end of __transaction_state may be lost", e.Was.Epoch, now.Epoch)
	}
	return out + fmt.Sprintf(" with epoch %d; the id is at epoch %d%s", e.Was.Epoch, now.Epoch, e.heldNow())
}

// heldNow words who has the id, unless it is who was refused: the place of that one was
// taken by no one, but its time was up.
func (e *TxnEntry) heldNow() string {
	if e.Holder == nil || e.By != nil && *e.By == *e.Holder {
		return ""
	}
	return fmt.Sprintf(", which %s has", wordHolder(e.Holder, ""))
}

// partitions words which partitions: by name if there are few.
func (e *TxnEntry) partitions() string {
	if e.PartitionN <= words.Named && len(e.Partitions) == e.PartitionN {
		return words.List(e.Partitions)
	}
	return words.Plural(e.PartitionN, "partition")
}

// wordHolder words a client.
func wordHolder(h *journal.Holder, unknown string) string {
	switch {
	case h == nil:
		return unknown
	case h.ClientID == "":
		return "a client at " + h.Host
	case h.Host == "":
		return h.ClientID
	}
	return h.ClientID + " (" + h.Host + ")"
}
