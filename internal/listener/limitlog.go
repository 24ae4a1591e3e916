package listener

import (
	"log/slog"
	"sync"
	"time"
)

// limitedLog logs what clients can provoke: at most a few lines a second, and
// then how many were left out.
type limitedLog struct {
	logger *slog.Logger

	mu      sync.Mutex
	second  int64
	lines   int
	skipped int
}

const linesPerSecond = 5

func (l *limitedLog) warn(msg string, args ...any) {
	l.mu.Lock()
	now := time.Now().Unix()
	if now != l.second {
		if l.skipped > 0 {
			l.logger.Warn("more connection trouble not logged", "lines", l.skipped)
		}
		l.second, l.lines, l.skipped = now, 0, 0
	}
	l.lines++
	quiet := l.lines > linesPerSecond
	if quiet {
		l.skipped++
	}
	l.mu.Unlock()
	if !quiet {
		l.logger.Warn(msg, args...)
	}
}
