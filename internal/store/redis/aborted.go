package redis

import (
	"context"

	"muster/internal/store"
)

// Aborted implements store.Log.
func (h *log) Aborted(context.Context, int64, int64) ([]store.Aborted, error) { return nil, nil }

// NoteAborted implements store.Log.
func (h *log) NoteAborted(context.Context, []store.Aborted) error { return nil }
