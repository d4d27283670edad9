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

// quarantineFile takes the lines that cannot be read.
const quarantineFile = "quarantine/history.jsonl"

// QuarantineHistory moves the lines of the history that cannot be read to a file
// where nobody reads them, and returns how many there were and where they are.
// They are there before they go here.
func (x *Index) QuarantineHistory(ctx context.Context) (n int, to string, err error) {
	to = x.path(filepath.FromSlash(quarantineFile))
	err = x.locked(ctx, historyLock, func() error {
		data, err := x.readHistory()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		good, bad := sortLines(data)
		if n = bytes.Count(bad, []byte("\n")); n == 0 {
			return nil
		}
		if err := durable.MkdirAll(x.fsys, filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := durable.AppendFile(x.fsys, to, bad, 0o644); err != nil {
			return err
		}
		return durable.WriteFile(x.fsys, x.path(historyFile), good, 0o644)
	})
	return n, to, err
}

// sortLines tells the lines that can be read from those that cannot. One that
// says nothing goes with the good.
func sortLines(data []byte) (good, bad []byte) {
	for line := range bytes.Lines(data) {
		_, err := parseEnded(bytes.TrimSuffix(line, []byte("\n")))
		if err == nil || errors.Is(err, errNothing) {
			good = append(good, line...)
			continue
		}
		bad = append(bad, bytes.TrimSuffix(line, []byte("\n"))...)
		bad = append(bad, '\n')
	}
	return good, bad
}
