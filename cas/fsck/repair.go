package fsck

import (
	"context"
	"errors"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/util/durable"
)

// repair fixes what it can, moves other faulty files to the quarantine, and records its actions in the
// faults. It deletes nothing.
func repair(ctx context.Context, s Store, o Options, faults []Fault) error {
	if err := repairNodes(ctx, s, faults); err != nil {
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

// repairNodes removes damaged nodes and seals, so that they can be put again. A readable seal that doesn't match
// stays: the node might be the wrong one, and only a person can decide.
func repairNodes(ctx context.Context, s Store, faults []Fault) error {
	for i := range faults {
		f := &faults[i]
		var err error
		remove := s.Quarantine
		switch f.Kind {
		case Damaged:
			if _, err = s.Get(ctx, f.Hash); !errors.As(err, new(*cas.CorruptError)) {
				continue // another process has put it again
			}
		case Seal:
			if _, err = s.Seal(f.Hash); !errors.As(err, new(*cas.SealError)) {
				continue
			}
			remove = s.QuarantineSeal
		default:
			continue
		}
		to, err := remove(ctx, f.Hash)
		if err != nil {
			return err
		}
		f.Repaired = "moved to " + to
	}
	return nil
}

// makeAgain restores missing schemas of our kinds, which are built into this program.
func makeAgain(ctx context.Context, s Store, o Options, faults []Fault) error {
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
