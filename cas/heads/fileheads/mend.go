package fileheads

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// path is where one of the four files is.
func (x *Heads) path(file string) string { return filepath.Join(x.dir, file) }

// HistoryPath is the file of the history.
func (x *Heads) HistoryPath() string { return x.path(historyFile) }

// FactsPath is the file of the facts.
func (x *Heads) FactsPath() string { return x.path(factsFile) }

// ThreadsPath is the file of the active threads.
func (x *Heads) ThreadsPath() string { return x.path(threadsFile) }

// RegistryPath is the file of the workflows' names.
func (x *Heads) RegistryPath() string { return x.path(registryFile) }

// QuarantineDir takes the lines that cannot be read. Each file has one of the same
// name there.
func (x *Heads) QuarantineDir() string { return x.path("quarantine") }

// QuarantineHistory moves the lines of the history that cannot be read to a file
// where nobody reads them, and returns how many there were and where they are.
// They are there before they go here.
func (x *Heads) QuarantineHistory(ctx context.Context) (n int, to string, err error) {
	return x.quarantine(ctx, historyLock, historyFile, 0o644, func(data []byte) (good, bad []byte, err error) {
		good, bad = sortLines(data, parseEnded)
		return good, bad, nil
	})
}

// QuarantineFacts is [Heads.QuarantineHistory] for the facts. The threads that those
// lines may have been about are from elsewhere from now on, as far as anybody knows; so
// are all, if the file is lost.
func (x *Heads) QuarantineFacts(ctx context.Context) (n int, to string, err error) {
	to = filepath.Join(x.QuarantineDir(), factsFile)
	err = x.changeThreads(ctx, func(f *file) error {
		if err := x.appendFacts(ctx, f, nil); err != nil {
			return err
		}
		r, err := x.readFacts(ctx, "")
		if err != nil {
			return err
		}
		good, bad, err := r.sort()
		if err != nil || bytes.Equal(good, r.data) {
			return err
		}
		if n = bytes.Count(bad, []byte("\n")); n > 0 {
			if err := x.setAside(to, bad, privateFile); err != nil {
				return err
			}
		}
		return x.replaceFacts(f, good, false)
	})
	return n, to, err
}

// QuarantineThreads is [Heads.QuarantineHistory] for the active threads. Of a file
// that is not kept by lines a copy is moved, and what can be read stays.
func (x *Heads) QuarantineThreads(ctx context.Context) (n int, to string, err error) {
	return x.quarantine(ctx, threadsLock, threadsFile, 0o644, func(data []byte) (good, bad []byte, err error) {
		good, bad = sortEntries(data, threadProblem)
		return good, bad, nil
	})
}

// QuarantineRegistry is [Heads.QuarantineThreads] for the names of workflows.
func (x *Heads) QuarantineRegistry(ctx context.Context) (n int, to string, err error) {
	return x.quarantine(ctx, registryLock, registryFile, 0o644, func(data []byte) (good, bad []byte, err error) {
		good, bad = sortEntries(data, protocol.WorkflowNameProblem)
		return good, bad, nil
	})
}

func (x *Heads) quarantine(ctx context.Context, lock, file string, perm fs.FileMode, sort func([]byte) (good, bad []byte, err error)) (n int, to string, err error) {
	to = filepath.Join(x.QuarantineDir(), file)
	err = x.locked(ctx, lock, func() error {
		data, err := x.readLog(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		good, bad, err := sort(data)
		if err != nil {
			return err
		}
		if n = bytes.Count(bad, []byte("\n")); n == 0 {
			return nil
		}
		if err := x.setAside(to, bad, perm); err != nil {
			return err
		}
		return durable.WriteFile(x.fsys, x.path(file), good, perm)
	})
	return n, to, err
}

// setAside adds lines to a file of the quarantine.
func (x *Heads) setAside(to string, lines []byte, perm fs.FileMode) error {
	if err := durable.MkdirAll(x.fsys, filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return durable.AppendFile(x.fsys, to, lines, perm)
}

// sortLines tells the lines that can be read from those that cannot. One that
// says nothing goes.
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

// sortEntries is sortLines for a file of entries. A thread that the end of a comment
// hides comes back.
func sortEntries(data []byte, keys rule) (good, bad []byte) {
	t := parseTable("", string(data), keys)
	if t.frozen {
		bad = append(bytes.TrimSuffix(bytes.Clone(data), []byte("\n")), '\n')
	} else {
		for _, b := range t.bad {
			bad = append(append(bad, b.text...), '\n')
			if e, ok := behindComment(b.text); ok {
				if _, there := t.find(e.key); !there {
					t.set(e.key, e.hash)
				}
			}
		}
	}
	t.bad, t.frozen = nil, false
	return t.render(), bad
}
