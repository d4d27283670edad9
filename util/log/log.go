// Package log is the logger of agents: JSON lines in a file of the step's run
// directory, for whoever asks later what an agent did and why. The file is
//   - bounded: what no longer fits is left out, and the last line says so;
//   - clean: no text in it can do anything to a terminal;
//   - without secrets: those that are known are hidden, in keys and values.
//
// Logging never fails and never stops anybody's work: a line that cannot be written
// is lost. The file is made with the first line, so that an agent with nothing to
// say leaves none. It is not log/slog, which would cost every adapter 0.2 ms of its
// 3 ms at each start.
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
	maxText  = 2000    // bytes of one text in it
	maxLine  = 16 << 10
)

// full is the last line of a log that was too long.
const full = `{"level":"warn","msg":"the log is full: what came after this was left out"}` + "\n"

// Logger writes the log of a run. Nil writes nothing. It is safe for concurrent use.
type Logger struct {
	path    string
	secrets *secret.Set
	now     func() time.Time

	mu   sync.Mutex
	full bool
}

// New is a logger for a run directory; nil without one, dir "". secrets may be nil.
func New(dir string, secrets *secret.Set, now func() time.Time) *Logger {
	if dir == "" {
		return nil
	}
	if secrets == nil {
		secrets = secret.NewSet()
	}
	return &Logger{path: filepath.Join(dir, File), secrets: secrets, now: now}
}

// Info logs what happened. fields are keys and values in turn; a value is anything
// that encoding/json can write, or an error.
func (l *Logger) Info(msg string, fields ...any) { l.log("info", msg, fields) }

// Warn logs what went wrong, and did not stop the work.
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
	// Once more as a whole: a secret may be inside of a value that is no text.
	if text := l.secrets.Hide(line.String()); len(text) <= maxLine {
		l.add(text)
	}
}

// text is a text as JSON, fit to be stored: secrets go before it is cut, which could
// leave half of one.
func (l *Logger) text(s string) []byte {
	if s = plaintext.Strip(l.secrets.Hide(s)); len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	data, _ := json.Marshal(s) // a string always encodes
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
	_ = durable.OS().Append(l.path, []byte(line), 0o600, durable.NoFlush) // the step matters, not what is told of it
}
