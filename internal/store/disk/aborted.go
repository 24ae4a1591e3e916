package disk

import (
	"context"

	"muster/internal/store"
)

// Aborted implements store.Log.
func (h *handle) Aborted(context.Context, int64, int64) ([]store.Aborted, error) { return nil, nil }

// NoteAborted implements store.Log.
func (h *handle) NoteAborted(context.Context, []store.Aborted) error { return nil }
