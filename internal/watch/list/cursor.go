package list

// Cursor is the cursor after a group. Its bytes, decoded, are in the order of the list, so
// that pages of several indexes can be merged by their cursors.
func (q *Query) Cursor(s *GroupRow) string { return q.next(s) }
