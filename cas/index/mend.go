package index

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/united-workforce/uwf/util/durable"
)

// HistoryPath is the file of the history.
func (x *Index) HistoryPath() string { return x.path(historyFile) }

// quarantineDir takes the lines that cannot be read.
const quarantineDir = "quarantine"

// QuarantineHistory moves the lines of the history that cannot be read to a file
// where nobody reads them, and returns how many there were and where they are.
// They are there before they go here.
func (x *Index) QuarantineHistory(ctx context.Context) (n int, to string, err error) {
	return x.quarantine(ctx, historyLock, historyFile, 0o644, isEnded)
}

// QuarantineFacts is [Index.QuarantineHistory] for the facts.
func (x *Index) QuarantineFacts(ctx context.Context) (n int, to string, err error) {
	return x.quarantine(ctx, threadsLock, factsFile, privateFile, isFacts)
}

func (x *Index) quarantine(ctx context.Context, lock, file string, perm fs.FileMode, parse func([]byte) error) (n int, to string, err error) {
	to = filepath.Join(x.path(quarantineDir), file)
	err = x.locked(ctx, lock, func() error {
		data, err := x.readLog(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		good, bad := sortLines(data, parse)
		if n = bytes.Count(bad, []byte("\n")); n == 0 {
			return nil
		}
		if err := durable.MkdirAll(x.fsys, filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := durable.AppendFile(x.fsys, to, bad, perm); err != nil {
			return err
		}
		return durable.WriteFile(x.fsys, x.path(file), good, perm)
	})
	return n, to, err
}

// sortLines tells the lines that can be read from those that cannot. One that
// says nothing goes with the good.
func sortLines(data []byte, parse func([]byte) error) (good, bad []byte) {
	for line := range bytes.Lines(data) {
		err := parse(bytes.TrimSuffix(line, []byte("\n")))
		if err == nil || errors.Is(err, errNothing) {
			good = append(good, line...)
			continue
		}
		bad = append(bad, bytes.TrimSuffix(line, []byte("\n"))...)
		bad = append(bad, '\n')
	}
	return good, bad
}
