// Package log is the logger of agents. It writes JSON lines to a file in the step's run directory, to show
// later what an agent did and why. The file is
//   - bounded: further lines are dropped, and the last line mentions that;
//   - clean: it contains no terminal control sequences;
//   - without secrets: known secrets are hidden, in keys and values.
//
// Logging never fails and never interrupts work: a line that can't be written is lost. The file is created
// with the first line, so that an agent without messages leaves none. The package doesn't use log/slog, which
// would add 0.2 ms to the 3 ms that an adapter takes to start.
package log

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/secret"
)

// File is the name of the log in a run directory.
const File = "agent.jsonl"

const (
	maxBytes = 1 << 20 // of a run's log
	maxText  = 2000    // of a single text
	maxLine  = 16 << 10
)

// full is the last line of a log that reached the limit.
const full = `{"level":"warn","msg":"the log is full: later entries were dropped"}` + "\n"

// Logger writes the log of a run. A nil Logger writes nothing. It is safe for concurrent use.
type Logger struct {
	path    string
	secrets *secret.Set
	now     func() time.Time

	mu   sync.Mutex
	full bool
}

// New returns a logger for a run directory, or nil if dir is "". secrets can be nil.
func New(dir string, secrets *secret.Set, now func() time.Time) *Logger {
	if dir == "" {
		return nil
	}
	if secrets == nil {
		secrets = secret.NewSet()
	}
	return &Logger{path: filepath.Join(dir, File), secrets: secrets, now: now}
}

// Info logs an event. fields are alternating keys and values; a value is an error or anything that
// encoding/json can encode.
func (l *Logger) Info(msg string, fields ...any) { l.log("info", msg, fields) }

// Warn logs a problem that didn't stop the work.
func (l *Logger) Warn(msg string, fields ...any) { l.log("warn", msg, fields) }

func (l *Logger) log(level, msg string, fields []any) {
	if l == nil {
		return
	}
	var line strings.Builder
	fmt.Fprintf(&line, `{"time":%q,"level":%q,"msg":%s`, l.now().UTC().Format(time.RFC3339Nano), level, l.text(msg))
	for i := 0; i+1 < len(fields); i += 2 {
		fmt.Fprintf(&line, ",%s:%s", l.text(fmt.Sprint(fields[i])), l.value(fields[i+1]))
	}
	line.WriteString("}\n")
	// Check the whole line again, because a value other than a text can contain a secret.
	if text := l.secrets.Hide(line.String()); len(text) <= maxLine {
		l.add(text)
	}
}

// text encodes a text as JSON. It hides secrets before shortening, which could leave half of one.
func (l *Logger) text(s string) []byte {
	if s = plaintext.Strip(l.secrets.Hide(s)); len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	data, _ := json.Marshal(s) // encoding a string can't fail
	return data
}

func (l *Logger) value(v any) []byte {
	switch v := v.(type) {
	case string:
		return l.text(v)
	case error:
		return l.text(v.Error())
	}
	data, err := json.Marshal(v)
	if err != nil {
		return l.text(fmt.Sprint(v))
	}
	return data
}

func (l *Logger) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	info, err := os.Lstat(l.path)
	switch {
	case l.full:
		return
	case errors.Is(err, fs.ErrNotExist):
	case err != nil || !info.Mode().IsRegular(): // not our file
		return
	case info.Size()+int64(len(line)+len(full)) > maxBytes:
		line, l.full = full, true
	}
	_ = durable.OS().Append(l.path, []byte(line), 0o600, durable.NoFlush) // the step matters more than its log
}
