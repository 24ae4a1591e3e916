package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"syscall"
)

const (
	formatFile = "format"
	// format is the version of what is in a data folder:
	//
	//	1  before there was a journal; no file says so
	//	2  a journal may hold what segments lack
	format = 2
)

// checkFormat refuses a folder that a later version has written, and notes ours in one
// that an earlier version has, which changes nothing of what that understands.
func (s *Store) checkFormat() error {
	name := path.Join(s.root, formatFile)
	b, err := readFile(s.fs, name, 64)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		version, err := strconv.Atoi(strings.TrimSpace(string(b)))
		switch {
		case err != nil || version < 1:
			return fmt.Errorf("%s does not hold a version", name)
		case version > format:
			return fmt.Errorf("it has format %d, this version knows up to %d: a later version has written it", version, format)
		case version == format:
			return nil
		}
	}
	err = writeFile(s.fs, name, []byte(strconv.Itoa(format)+"\n"), true)
	if errors.Is(err, syscall.ENOSPC) {
		return nil // A folder on a full disk must open, if only to be trimmed. The next start tries again.
	}
	return err
}
