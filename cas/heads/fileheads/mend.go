package fileheads

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/threadid"
)

// path returns the path of a file or directory of the home.
func (x *Heads) path(file string) string { return filepath.Join(x.dir, file) }

// HistoryPath returns the path of the history.
func (x *Heads) HistoryPath() string { return x.path(historyFile) }

// FactsPath returns the path of the facts.
func (x *Heads) FactsPath() string { return x.path(factsFile) }

// ThreadsPath returns the path of the active threads.
func (x *Heads) ThreadsPath() string { return x.path(threadsFile) }

// RegistryPath returns the path of the workflows' names.
func (x *Heads) RegistryPath() string { return x.path(registryFile) }

// QuarantineDir returns the directory for unreadable lines, with a file of the same name for each file.
func (x *Heads) QuarantineDir() string { return x.path("quarantine") }

// QuarantineHistory moves unreadable lines of the history to the quarantine, and returns their number and the
// new file. The lines are written there before they are removed here.
func (x *Heads) QuarantineHistory(ctx context.Context) (n int, to string, err error) {
	to = filepath.Join(x.QuarantineDir(), historyFile)
	err = x.locked(ctx, historyLock, func() error {
		data, err := x.readFile(historyFile)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		good, bad := sortLines(data, parseEnded)
		if n = bytes.Count(bad, []byte("\n")); n == 0 {
			return nil
		}
		if err := x.setAside(to, bad, 0o644); err != nil {
			return err
		}
		return durable.WriteFile(x.fsys, x.path(historyFile), good, 0o644)
	})
	return n, to, err
}

// QuarantineFacts is [Heads.QuarantineHistory] for the facts. Threads that those lines might have been about
// count as imported from now on; if the file was lost, all threads do.
func (x *Heads) QuarantineFacts(ctx context.Context) (n int, to string, err error) {
	to = filepath.Join(x.QuarantineDir(), factsFile)
	err = x.changeThreads(ctx, func(f *table) error {
		data, err := x.readFile(factsFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		marks, err := x.marks(ctx)
		if err != nil {
			return err
		}
		good, bad := sortLines(data, parseFacts)
		if good = append(good, marks...); bytes.Equal(good, data) {
			return nil
		}
		if n = bytes.Count(bad, []byte("\n")); n > 0 {
			if err := x.setAside(to, bad, privateFile); err != nil {
				return err
			}
		}
		return x.replaceFacts(f, good)
	})
	return n, to, err
}

// QuarantineThreads is [Heads.QuarantineHistory] for the active threads. It corrects a wrong checksum, and
// threads in doubt count as imported from now on.
func (x *Heads) QuarantineThreads(ctx context.Context) (n int, to string, err error) {
	return x.quarantineTable(ctx, threadsLock, threadsFile, func(f *table) error {
		marks, err := x.marks(ctx)
		if err != nil || len(marks) == 0 {
			return err
		}
		return x.appendFactsText(f, marks)
	})
}

// QuarantineRegistry is [Heads.QuarantineHistory] for the names of workflows. It corrects a wrong checksum.
func (x *Heads) QuarantineRegistry(ctx context.Context) (n int, to string, err error) {
	return x.quarantineTable(ctx, registryLock, registryFile, func(*table) error { return nil })
}

func (x *Heads) quarantineTable(ctx context.Context, lock, file string,
	before func(*table) error) (n int, to string, err error) {
	to = filepath.Join(x.QuarantineDir(), file)
	err = x.locked(ctx, lock, func() error {
		f, err := x.read(ctx, file)
		if err != nil {
			return err
		}
		f.ensureParsed()
		bad := f.bad
		if file == registryFile {
			bad = append(bad, f.misnamed()...)
		}
		if len(bad) == 0 && f.wrong == "" {
			return nil
		}
		if err := before(f); err != nil {
			return err
		}
		if n = len(bad); n > 0 {
			var lines []byte
			for _, b := range bad {
				lines = append(append(lines, b.text...), '\n')
			}
			if err := x.setAside(to, lines, 0o644); err != nil {
				return err
			}
		}
		f.bad, f.wrong = nil, ""
		return x.save(f)
	})
	return n, to, err
}

// setAside appends lines to a file of the quarantine.
func (x *Heads) setAside(to string, lines []byte, perm fs.FileMode) error {
	if err := durable.MkdirAll(x.fsys, filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return durable.AppendFile(x.fsys, to, lines, perm)
}

// sortLines separates readable from unreadable lines, and drops lines without content.
func sortLines[T any](data []byte, parse func([]byte) (T, error)) (good, bad []byte) {
	for line := range linesOf(data, parse) {
		text := append(bytes.TrimSuffix(line.text, []byte("\n")), '\n')
		if line.err == nil {
			good = append(good, text...)
		} else {
			bad = append(bad, text...)
		}
	}
	return good, bad
}

// Lost returns the threads that have run and that neither threads.yaml nor history.jsonl contains, sorted:
// their lines were lost, or their ids are damaged. If there are any, or if threads.yaml was lost completely,
// it includes threads that have only facts; otherwise it doesn't, because a killed command can leave facts
// without a thread.
func (x *Heads) Lost(ctx context.Context) (lost []string, err error) {
	runs, err := os.ReadDir(x.path("runs")) // first, because a thread is in one of the files before it runs
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	known := map[string]bool{}
	f, err := x.look(ctx)
	if err != nil {
		return nil, ctx.Err() // reported with the heads
	}
	for thread := range f.all { // an unreadable line might be any thread: see nowhere
		known[thread] = true
	}
	size, err := x.factsSize(0)
	if err != nil {
		return nil, ctx.Err() // reported with the facts
	}
	recorded := f.minFacts > 0 || size == 0
	runs = slices.DeleteFunc(runs, func(e fs.DirEntry) bool { return known[e.Name()] || !threadid.Valid(e.Name()) })
	if len(runs) == 0 && recorded {
		return nil, ctx.Err()
	}
	ends, _, err := x.lastEnds()
	if err != nil {
		return nil, err
	}
	add := func(id string) {
		if _, ended := ends[id]; !known[id] && !ended && x.nowhere(ctx, id) {
			known[id] = true
			lost = append(lost, id)
		}
	}
	for _, e := range runs {
		run := runfiles.Dir(filepath.Join(x.path("runs"), e.Name()))
		if _, err := run.Read(runfiles.RecordFile, runfiles.MaxRecord); err == nil {
			add(e.Name())
		}
	}
	if !recorded || len(lost) > 0 {
		facts, _ := x.AllFacts(ctx) // unreadable lines are reported with the facts
		for id, f := range facts {
			if f.Doubt == nil {
				add(id)
			}
		}
	}
	slices.Sort(lost)
	return lost, ctx.Err()
}

// nowhere checks again, because the thread might have been started or resumed since. A damaged line that
// mentions it was already reported.
func (x *Heads) nowhere(ctx context.Context, id string) bool {
	if _, err := x.Head(ctx, id); !errors.Is(err, heads.ErrNoThread) {
		return false
	}
	_, err := x.Ended(ctx, id)
	return errors.Is(err, heads.ErrNoThread)
}

// CheckLost returns an error if threads are lost ([Heads.Lost]).
func (x *Heads) CheckLost(ctx context.Context) error {
	lost, err := x.Lost(ctx)
	if err != nil || len(lost) == 0 {
		return err
	}
	return &protocol.Error{
		Code:    protocol.CodeCorrupt,
		Message: fmt.Sprintf("%s lost %s, such as %s, which history.jsonl lacks; restore the file from a backup", x.path(threadsFile), render.Count(len(lost), "thread"), lost[0]),
	}
}

// ThreadPlace returns the line with a thread's state, as file:line, or "". Messages use it to show where to
// fix a bad hash.
func (x *Heads) ThreadPlace(ctx context.Context, thread string) string {
	for _, file := range []string{threadsFile, historyFile} {
		if places := x.places(ctx, file, thread); len(places) > 0 {
			return places[len(places)-1] // the last line applies
		}
	}
	return ""
}

// WorkflowPlace is [Heads.ThreadPlace] for a name in the registry.
func (x *Heads) WorkflowPlace(ctx context.Context, name string) string {
	if places := x.places(ctx, registryFile, name); len(places) > 0 {
		return places[0]
	}
	return ""
}

// places returns the lines of a file that mention a key.
func (x *Heads) places(ctx context.Context, file, key string) (found []string) {
	data, err := x.readFile(file)
	if err != nil || ctx.Err() != nil {
		return nil
	}
	number := 0
	for line := range strings.Lines(string(data)) {
		if number++; mentions(line, key) {
			found = append(found, fmt.Sprintf("%s:%d", x.path(file), number))
		}
	}
	return found
}
