package fsck

import (
	"context"
	"errors"
	"io/fs"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/util/durable"
)

// repair fixes what it can, moves other faulty files to the quarantine, and records its actions in the
// faults. It deletes nothing.
func repair(ctx context.Context, s *fsstore.Store, o Options, faults []Fault) error {
	if err := repairFiles(ctx, s, faults); err != nil {
		return err
	}
	if err := makeAgain(ctx, s, o, faults); err != nil {
		return err
	}
	if o.Home == "" {
		return nil
	}
	x := fileheads.Open(o.Home, durable.OS())
	return errors.Join(
		quarantineLines(ctx, x.QuarantineThreads, x.ThreadsPath(), faults),
		quarantineLines(ctx, x.QuarantineHistory, x.HistoryPath(), faults),
		quarantineLines(ctx, x.QuarantineRegistry, x.RegistryPath(), faults),
		quarantineLines(ctx, x.QuarantineFacts, x.FactsPath(), faults),
	)
}

// repairFiles repairs node files while no process writes any.
func repairFiles(ctx context.Context, s *fsstore.Store, faults []Fault) (err error) {
	sole, err := s.LockExclusive(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sole.Release()) }()
	for i := range faults {
		f := &faults[i]
		switch f.Kind {
		case Damaged:
			err = setAside(ctx, s, sole, f)
		case Misplaced:
			err = putInPlace(s, sole, f)
		case Seal:
			err = setSealAside(s, sole, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// setAside moves a damaged file to the quarantine, so that the node can be put again.
func setAside(ctx context.Context, s *fsstore.Store, sole *fsstore.Exclusive, f *Fault) error {
	_, err := s.Get(ctx, f.Hash)
	if _, ok := errors.AsType[*cas.CorruptError](err); !ok {
		return nil // another process has put it again
	}
	to, err := sole.Quarantine(f.Path)
	if err != nil {
		return err
	}
	f.Repaired = "moved to " + to
	return nil
}

// setSealAside moves a damaged seal file to the quarantine, so that the node can be sealed again. A readable
// seal that doesn't match stays: the node might be the wrong one, and only a person can decide.
func setSealAside(s *fsstore.Store, sole *fsstore.Exclusive, f *Fault) error {
	_, err := s.Seal(f.Hash)
	if _, ok := errors.AsType[*cas.SealError](err); !ok {
		return nil
	}
	to, err := sole.Quarantine(s.SealPath(f.Hash))
	if err != nil {
		return err
	}
	f.Repaired = "moved to " + to
	return nil
}

// putInPlace moves a valid node file to its place, any other to the quarantine.
func putInPlace(s *fsstore.Store, sole *fsstore.Exclusive, f *Fault) error {
	_, err := s.ReadStray(*f.stray)
	if _, redacted := cas.AsRedacted(err); err == nil || redacted {
		err := sole.Restore(f.Path, f.Hash)
		if err == nil {
			f.Repaired = "moved to " + s.Path(f.Hash)
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	to, err := sole.Quarantine(f.Path)
	if err != nil {
		return err
	}
	f.Repaired = "moved to " + to
	return nil
}

// makeAgain restores missing schemas of our kinds, which are built into this program.
func makeAgain(ctx context.Context, s *fsstore.Store, o Options, faults []Fault) error {
	for i := range faults {
		f := &faults[i]
		n, ok := s.Kinds().Builtin(f.Hash)
		if !ok || f.Kind != Missing && f.Kind != Damaged {
			continue
		}
		n.Timestamp = o.Now().UnixMilli()
		if err := s.Commit(ctx, n); err != nil {
			return err
		}
		if f.Repaired != "" {
			f.Repaired += ", and "
		}
		f.Repaired += "recreated"
	}
	return nil
}

// quarantineLines moves the unreadable lines of a file to the quarantine.
func quarantineLines(ctx context.Context, quarantine func(context.Context) (int, string, error), path string,
	faults []Fault) error {
	n, to, err := quarantine(ctx)
	if err != nil {
		return err
	}
	what := "the line was moved to " + to
	if n == 0 { // the file was lost
		what = "the file was rewritten"
	}
	for i := range faults {
		f := &faults[i]
		if f.Kind == Index && f.Hash == "" && f.Path == path {
			f.Repaired = what
		}
	}
	return nil
}
