package disk

import (
	"fmt"
	"hash/crc32"
	"path"
	"strings"

	"muster/internal/store"
)

// cleanedFile says how far compaction has come, and when, followed by a
// checksum. It is only a help: without it the log is compacted anew, and
// tombstones stay for longer.
const cleanedFile = "compacted"

func (l *log) writeCleaned() {
	text := l.cleaned.String()
	content := fmt.Sprintf("%s\n%08x\n", text, crc32.Checksum([]byte(text), crcTable))
	_ = writeFile(l.store.fs, path.Join(l.dir, cleanedFile), []byte(content), true)
}

// readCleaned reads what writeCleaned left, nothing if that is not whole.
func (l *log) readCleaned() store.Cleaned {
	b, err := readFile(l.store.fs, path.Join(l.dir, cleanedFile), -1)
	if err != nil {
		return nil
	}
	text, sum, _ := strings.Cut(string(b), "\n")
	if sum != fmt.Sprintf("%08x\n", crc32.Checksum([]byte(text), crcTable)) {
		return nil
	}
	cleaned, err := store.ParseCleaned(text)
	if err != nil {
		return nil
	}
	return cleaned
}
