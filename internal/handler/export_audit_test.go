package handler

// Audits says whether the audit is told what requests of a key change.
func Audits(key int16) bool { return changes[key] != nil }
