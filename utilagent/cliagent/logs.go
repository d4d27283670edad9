package cliagent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/secret"
)

// The files of a run directory in which a program's streams are kept as they
// came, over all calls of the step.
const (
	stdoutFile = "program.stdout"
	stderrFile = "program.stderr"
)

// maxLog is how much of a stream is kept.
const maxLog = 256 << 20

// logs are the files of one step.
type logs struct {
	dir            string // "": nothing is kept
	stdout, stderr *logFile
}

// openLogs makes new files in a run directory.
func openLogs(dir string, secrets *secret.Set) (*logs, error) {
	l := &logs{dir: dir, stdout: &logFile{}, stderr: &logFile{}}
	if dir == "" {
		return l, nil
	}
	for name, into := range map[string]*logFile{stdoutFile: l.stdout, stderrFile: l.stderr} {
		path := filepath.Join(dir, name)
		fsys := durable.OS()
		if err := fsys.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("keep the program's output: %w", err)
		}
		if err := fsys.Append(path, nil, 0o600, durable.NoFlush); err != nil {
			return nil, fmt.Errorf("keep the program's output: %w", err)
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return nil, fmt.Errorf("keep the program's output: %w", err)
		}
		into.file, into.w = f, secrets.NewWriter(f)
	}
	return l, nil
}

func (l *logs) close() error { return errors.Join(l.stdout.close(), l.stderr.close()) }

// logFile is one stream. Its zero value keeps nothing. Safe for concurrent use.
type logFile struct {
	mu   sync.Mutex
	file io.Closer
	w    *secret.Writer // nil: nothing is kept
	size int
}

// Write implements io.Writer.
func (f *logFile) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.w == nil || f.size > maxLog {
		return len(b), nil
	}
	f.size += len(b)
	return f.w.Write(b)
}

func (f *logFile) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.w == nil {
		return nil
	}
	err := errors.Join(f.w.Flush(), f.file.Close())
	f.w = nil
	return err
}

// streamEnds shows the ends of both streams of the step, "" for one that is not kept, so that
// a person sees what the program did instead of its work.
func streamEnds(dir string) string {
	const most = maxShown / 3 // bytes of each
	text := ""
	for _, stream := range []struct{ name, file string }{{"stdout", stdoutFile}, {"stderr", stderrFile}} {
		end, err := tailOf(filepath.Join(dir, stream.file), most)
		if dir == "" || err != nil {
			continue
		}
		if end = strings.TrimSpace(plaintext.Strip(strings.ToValidUTF8(end, ""))); end == "" {
			end = "(nothing)"
		}
		text += fmt.Sprintf("\nits %s ends:\n%s", stream.name, end)
	}
	return text
}

// tailOf is the end of a regular file.
func tailOf(path string, most int64) (string, error) {
	f, err := careful.Open(path, careful.Follow)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // read-only
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	at := max(0, info.Size()-most)
	data, err := io.ReadAll(io.NewSectionReader(f, at, info.Size()-at))
	return string(data), err
}
