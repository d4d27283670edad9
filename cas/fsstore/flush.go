package fsstore

import (
	"fmt"
	"os"
	"path/filepath"
)

// How a Commit becomes durable.
const (
	flushAuto  = "auto"  // batch where that is known to be safe, else full
	flushFull  = "full"  // every file and every directory
	flushBatch = "batch" // one flush for all, relying on the file system's order
	flushNone  = "none"  // not at all: a power cut may lose or tear nodes, a kill does not
)

func knownFlush(mode string) bool {
	return mode == flushAuto || mode == flushFull || mode == flushBatch || mode == flushNone
}

type flushMode struct{ mode, why string }

// FlushMode is the mode in force: full, batch or none, and why.
func (s *Store) FlushMode() (mode, why string) {
	m := s.flush()
	return m.mode, m.why
}

func (s *Store) chooseFlush() flushMode {
	if s.format.Flush != flushAuto {
		return flushMode{s.format.Flush, "as configured"}
	}
	if s.home == "" {
		return flushMode{flushFull, "the home directory is not known"}
	}
	dir, home := existing(s.dir), existing(s.home)
	if same, err := sameFileSystem(dir, home); err != nil || !same {
		return flushMode{flushFull, "the store and the home directory are not known to share a file system"}
	}
	ordered, why := keepsOrder(dir)
	if !ordered {
		return flushMode{flushFull, why}
	}
	return flushMode{flushBatch, fmt.Sprintf("the store and the home directory share a file system that keeps writes in order (%s)", why)}
}

// existing is path or the nearest directory above it that exists: where path
// will be made.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}
