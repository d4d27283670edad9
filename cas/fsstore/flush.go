package fsstore

import "github.com/united-workforce/uwf/util/durable"

// How a Commit becomes durable, as format.json and [Options] say it.
const (
	flushAuto  = "auto"  // batch where that is known to be safe, else full
	flushFull  = "full"  // every file and every directory
	flushBatch = "batch" // one flush for all, relying on the file system's order
	flushNone  = "none"  // not at all: a power cut may lose or tear nodes, a kill does not
)

func knownFlush(mode string) bool {
	return mode == flushAuto || mode == flushFull || mode == flushBatch || mode == flushNone
}

type flushMode struct {
	mode durable.Mode
	why  string
}

// FlushMode is the mode in force: full, batch or none, and why.
func (s *Store) FlushMode() (mode, why string) {
	m := s.flush()
	return m.mode.String(), m.why
}

func (s *Store) chooseFlush() flushMode {
	switch s.format.Flush {
	case flushFull:
		return flushMode{durable.Full, "it is configured"}
	case flushBatch:
		return flushMode{durable.Batch, "it is configured"}
	case flushNone:
		return flushMode{durable.None, "it is configured"}
	}
	if s.home == "" {
		return flushMode{durable.Full, "the home directory is not known"}
	}
	mode, why := durable.SafeMode(s.dir, s.home)
	return flushMode{mode, why}
}
