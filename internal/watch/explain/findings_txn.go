package explain

import (
	"fmt"
	"strings"
	"time"

	"muster/internal/watch/groupview"
	"muster/internal/words"
)

// HeldBack is a partition whose end readers of committed records do not see,
// because of an open transaction.
type HeldBack struct {
	LastStableOffset int64
	TransactionalID  string // "" if no coordinator knows the transaction
	Hidden           bool   // One knows it, and whoever asks may not know whose it is.
	ProducerID       int64  // -1 if it is not known
	Open             time.Duration
}

// Hide takes out whose the transaction is.
func (h *HeldBack) Hide() { h.TransactionalID, h.Hidden = "", true }

// heldBack says whether a group has read a partition as far as a reader of
// committed records can.
func (e *Evidence) heldBack(p *groupview.Partition) (HeldBack, bool) {
	h, ok := e.Held[groupview.TopicPartition{Topic: p.Topic, Partition: p.Partition}]
	return h, ok && p.Committed != nil && p.Lag != nil && *p.Lag > 0 && p.Next() >= h.LastStableOffset
}

// openTransactions finds lag that is an open transaction's, and not the
// consumer's.
func (e *Evidence) openTransactions() []Finding {
	if e.Group == nil {
		return nil
	}
	type cause struct {
		partitions []string
		lag        int64
		held       HeldBack
	}
	var causes []*cause
	byProducer := map[int64]*cause{}
	for i := range e.Group.Partitions {
		p := &e.Group.Partitions[i]
		h, ok := e.heldBack(p)
		if !ok {
			continue
		}
		c := byProducer[h.ProducerID]
		if c == nil {
			c = &cause{held: h}
			byProducer[h.ProducerID] = c
			causes = append(causes, c)
		}
		c.partitions = append(c.partitions, p.Name())
		c.lag += *p.Lag
	}
	var out []Finding
	for _, c := range causes {
		who, change := "An open transaction", "Look for it: muster txns find-hanging."
		switch {
		case c.held.Hidden:
			who = fmt.Sprintf("A transaction, open for %s, of a transactional id that you may not describe", words.Duration(c.held.Open))
			change = "Ask someone who may see what ends it: muster txns list."
		case c.held.TransactionalID != "":
			who = fmt.Sprintf("The transaction of %s, open for %s,", c.held.TransactionalID, words.Duration(c.held.Open))
			change = fmt.Sprintf("See what ends it: %s. To end it now: %s.", words.Command("txns describe", c.held.TransactionalID), words.Command("txns abort", c.held.TransactionalID))
		case c.held.ProducerID >= 0:
			who = fmt.Sprintf("A transaction of producer %d, which no coordinator knows,", c.held.ProducerID)
			change = fmt.Sprintf("End it: muster txns abort --partition %s --producer-id %d.", c.partitions[0], c.held.ProducerID)
		}
		out = append(out, Finding{
			"open-transaction",
			fmt.Sprintf("%s holds back %s. The group has read all that is committed there; with isolation.level=read_committed its lag of %d is not its own.", who, words.List(c.partitions), c.lag),
			strings.TrimSpace(change),
		})
	}
	return out
}
