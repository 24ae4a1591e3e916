package disk

import (
	"errors"
	"io/fs"
	"path"
)

// Private tells how many files and folders others on this machine could use when the store
// was opened, which they no longer can, and why the rest could not be changed, if some could not.
func (s *Store) Private() (tightened int, err error) { return s.tightened, s.tightenErr }

// tighten takes what earlier versions made readable for everyone away from others. What
// this version makes is its owner's alone, so the lock file tells whether there is anything to do;
// it is last, so that what is interrupted is done again.
func (s *Store) tighten() {
	lock := path.Join(s.root, lockFile)
	info, err := s.fs.Stat(lock)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return
	}
	if info, err := s.fs.Stat(s.root); err == nil && info.Mode()&fs.ModeSticky == 0 { // /tmp is not ours.
		s.tightenOne(s.root)
	}
	entries, _ := s.fs.ReadDir(s.root)
	for _, e := range entries {
		name := path.Join(s.root, e.Name())
		_, isLog := parseFolderName(e.Name())
		switch {
		case e.IsDir() && (isLog || e.Name() == journalDir || e.Name() == replayingDir):
			files, _ := s.fs.ReadDir(name)
			for _, f := range files {
				s.tightenOne(path.Join(name, f.Name()))
			}
			s.tightenOne(name)
		case e.Name() == formatFile || e.Name() == cleanFile || e.Name() == stopFile:
			s.tightenOne(name)
		}
	}
	if s.tightenErr == nil {
		s.tightenOne(lock)
	}
}

func (s *Store) tightenOne(name string) {
	changed, err := s.fs.Private(name)
	if err != nil {
		s.tightenErr = errors.Join(s.tightenErr, err)
	}
	if changed {
		s.tightened++
	}
}
