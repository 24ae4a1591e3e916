package auth

import (
	"testing"

	"pgregory.net/rapid"
)

func TestTheSizeOfAnIndexIsThatOfItsRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := New(Policy{})
		for range rapid.IntRange(1, 4).Draw(t, "edits") {
			edit := x.Edit()
			for range rapid.IntRange(0, 12).Draw(t, "changes") {
				r := genRule.Draw(t, "rule")
				switch rapid.IntRange(0, 3).Draw(t, "change") {
				case 0:
					edit.Remove(r)
				case 1:
					edit.RemoveID(r.ID())
				default:
					edit.Add(r)
				}
			}
			x = edit.Index()
			size := 0
			for _, r := range x.Rules(Filter{Type: AnyResource, Pattern: AnyPattern, Operation: AnyOperation, Permission: AnyPermission}) {
				size += len(r.Name) + len(r.Principal) + len(r.Host)
			}
			if x.Size() != size {
				t.Fatalf("counted %d bytes, there are %d", x.Size(), size)
			}
		}
	})
}
