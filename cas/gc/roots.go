package gc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
)

// indexRoots yields what the index of a home names. Heads are read twice: a
// thread that is reopened between the looks at the two files is in neither of
// them at the first look.
func indexRoots(ctx context.Context, home string) iter.Seq2[cas.Hash, error] {
	return func(yield func(cas.Hash, error) bool) {
		if _, err := os.Stat(home); err != nil {
			yield("", err)
			return
		}
		x := fileheads.Open(home, durable.OS())
		heads := func() bool {
			for h, err := range x.Heads(ctx) {
				if !yield(h.Hash, err) {
					return false
				}
			}
			return true
		}
		if !heads() {
			return
		}
		for e, err := range x.History(ctx) {
			if !yield(e.Head, err) || err == nil && e.Workflow.Valid() && !yield(e.Workflow, nil) {
				return
			}
		}
		if !heads() {
			return
		}
		names, err := x.Workflows(ctx)
		if err != nil {
			yield("", err)
			return
		}
		for _, n := range names {
			if !yield(n.Hash, nil) {
				return
			}
		}
	}
}

// runRoots yields every word in the facts of threads, in lines of the index that were
// moved to the quarantine, and in the records and the output of runs, that looks like a hash: the prompt, the head, announced turns, the result. A word too
// many keeps some garbage; one too few would cost paid work. Half-written turns do not
// count: while the agent lives they are recent, and later nobody needs them.
func runRoots(ctx context.Context, home string) iter.Seq2[cas.Hash, error] {
	return func(yield func(cas.Hash, error) bool) {
		x := fileheads.Open(home, durable.OS())
		files := []string{x.FactsPath()}
		// A thread whose line fsck had to move away is not garbage before a person
		// has said so, and removed the file.
		for _, path := range []string{x.ThreadsPath(), x.HistoryPath(), x.RegistryPath(), x.FactsPath()} {
			files = append(files, filepath.Join(x.QuarantineDir(), filepath.Base(path)))
		}
		for _, file := range files {
			for h, err := range hashesIn(ctx, file, careful.Follow) {
				if !yield(h, err) {
					return
				}
			}
		}
		dirs, err := runDirs(home)
		if err != nil {
			yield("", err)
			return
		}
		for _, dir := range dirs {
			for _, name := range []string{runfiles.RecordFile, runfiles.StdoutFile, runfiles.ResultFile} {
				for h, err := range hashesIn(ctx, filepath.Join(dir, name), careful.NoFollow) {
					if errors.As(err, new(*careful.NotFileError)) || errors.As(err, new(*careful.TooBigError)) {
						continue // an agent put it there; it names nothing
					}
					if !yield(h, err) {
						return
					}
				}
			}
		}
	}
}

func runDirs(home string) ([]string, error) {
	root := filepath.Join(home, "runs")
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var dirs []string
	for _, e := range entries {
		dir := filepath.Join(root, e.Name())
		// What an agent has moved behind a link may still be its work.
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			dirs = append(dirs, dir)
		}
	}
	return dirs, err
}

// maxRootFile bounds a file that is searched for hashes: no run keeps as much of an agent's output.
const maxRootFile = 4 << 30

// hashesIn yields the words of a file that are hashes, in either case.
func hashesIn(ctx context.Context, path string, links careful.Links) iter.Seq2[cas.Hash, error] {
	return func(yield func(cas.Hash, error) bool) {
		f, err := careful.OpenMax(path, maxRootFile, links)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield("", err)
			return
		}
		defer func() { _ = f.Close() }() // nothing was written
		r := bufio.NewReaderSize(f, 64<<10)
		announced := 0 // how far the last words are "writing", "hash", which announce a half-written turn
		seen := map[cas.Hash]bool{}
		word := make([]byte, 0, protocol.HashLen+1)
		for {
			c, err := r.ReadByte()
			if err == nil && r.Buffered() == 0 {
				err = ctx.Err()
			}
			if err == nil && isWord(c) {
				if len(word) <= protocol.HashLen { // a longer word is not a hash
					word = append(word, c)
				}
				continue
			}
			if len(word) == protocol.HashLen && announced < 2 {
				h := cas.Hash(protocol.FoldCrockford(string(word)))
				if h.Valid() && !seen[h] && !yield(h, nil) {
					return
				}
				if len(seen) < maxSeen {
					seen[h] = true
				}
			}
			switch {
			case len(word) == 0:
			case string(word) == "writing":
				announced = 1
			case announced == 1 && string(word) == "hash":
				announced = 2
			default:
				announced = 0
			}
			word = word[:0]
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield("", err)
				return
			}
		}
	}
}

// maxSeen bounds how many words of a file are remembered, so that each is looked
// up once.
const maxSeen = 100_000

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// clockSlack allows for clocks that differ: that of the process which recorded
// when a run began, and that of the disk.
const clockSlack = time.Minute

// oldestRun is a time before the oldest run with a living agent or engine began to put
// nodes; nil if there is no such run. A living run that does not say when it began is older
// than everything.
func oldestRun(home string) (*time.Time, error) {
	dirs, err := runDirs(home)
	if err != nil {
		return nil, err
	}
	var oldest *time.Time
	note := func(begun time.Time) {
		if oldest == nil || begun.Before(*oldest) {
			oldest = &begun
		}
	}
	for _, dir := range dirs {
		run := runfiles.Dir(dir)
		alive, err := run.Alive()
		if err != nil {
			return nil, fmt.Errorf("look for runs: %w", err)
		}
		if alive {
			note(began(run))
		}
	}
	locks, err := filepath.Glob(filepath.Join(home, "locks", "*.lock"))
	for _, lock := range locks {
		// An agent that has removed its run directory is still named here.
		if who, err := durable.ReadHolder(lock); err == nil && proc.Lives(who.Child, who.Birth) {
			note(who.Since.Add(-clockSlack))
		}
	}
	return oldest, err
}

// began is a time before a run began; zero if the run does not say.
func began(run runfiles.Dir) time.Time {
	at := run.Record().Began()
	if at.IsZero() {
		return at
	}
	return at.Add(-clockSlack)
}
