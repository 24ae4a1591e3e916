package txn

import "strings"

// Unfinished says whether the coordinator will end a transaction that is in a state, by
// Kafka's name of that.
func Unfinished(state string) bool { return state == "Ongoing" || strings.HasPrefix(state, "Prepare") }
