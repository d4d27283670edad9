// Package eventlog keeps a log of actions on threads in the home directory: one file of JSON lines per day,
// named by the UTC date. It is for people who later want to know what happened. No program bases decisions on
// it, and no thread depends on it.
//
// An entry never contains a prompt, an answer, or a command line, because these may contain secrets. They are
// in the store or the run directory, which have their own permissions.
package eventlog

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/sorting"
)

// Entry is one line of the log.
type Entry struct {
	TS       time.Time `json:"ts"`
	Pid      string    `json:"pid"` // start time of the process in ms, "-", and its ID
	Tag      string    `json:"tag"` // kind of event, such as step-done
	Msg      string    `json:"msg"`
	Thread   string    `json:"thread,omitempty"`
	Workflow string    `json:"workflow,omitempty"` // name
	Role     string    `json:"role,omitempty"`
	Agent    string    `json:"agent,omitempty"`
	Ms       int64     `json:"ms,omitempty"`   // duration
	Code     string    `json:"code,omitempty"` // error code
}

// file describes the log of one day.
type file struct {
	Name string `json:"name"`
	Size int64  `json:"size"` // bytes
	Date string `json:"date"` // 2006-01-02
}

const extension = ".jsonl"

// Append adds an entry to the log in dir, without flushing it.
func Append(disk durable.FS, dir string, e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	if err := disk.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	// Use a single write in append mode, so that entries of two processes don't mix.
	path := filepath.Join(dir, e.TS.UTC().Format(time.DateOnly)+extension)
	if err := disk.Append(path, append(line, '\n'), 0o600, durable.NoFlush); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	return nil
}

// Files lists the log files, newest first. A missing directory counts as empty.
func Files(dir string) ([]file, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("log: %w", err)
	}
	files := []file{}
	for _, entry := range entries {
		date, ok := strings.CutSuffix(entry.Name(), extension)
		if _, err := time.Parse(time.DateOnly, date); !ok || err != nil {
			continue // not a log file
		}
		info, err := entry.Info()
		if err != nil {
			continue // removed in the meantime
		}
		files = append(files, file{Name: entry.Name(), Size: info.Size(), Date: date})
	}
	sorting.Func(files, func(a, b file) int { return cmp.Compare(b.Date, a.Date) })
	return files, nil
}

// Filter selects entries; the zero value selects all.
type Filter struct{ Thread, Process, Date string }

// Read returns the entries that match the filter, oldest first. bad is the number of unreadable lines.
func Read(dir string, f Filter) (entries []Entry, bad int, err error) {
	files, err := Files(dir)
	if err != nil {
		return nil, 0, err
	}
	entries = []Entry{}
	for _, file := range files {
		if f.Date != "" && f.Date != file.Date {
			continue
		}
		n, err := readFile(filepath.Join(dir, file.Name), func(e Entry) {
			if (f.Thread == "" || f.Thread == e.Thread) && (f.Process == "" || f.Process == e.Pid) {
				entries = append(entries, e)
			}
		})
		if err != nil {
			return nil, 0, err
		}
		bad += n
	}
	sorting.Stable(entries, func(a, b Entry) int { return a.TS.Compare(b.TS) })
	return entries, bad, nil
}

func readFile(path string, yield func(Entry)) (bad int, err error) {
	f, err := safeopen.Open(path, safeopen.Follow)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("log: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	const longest = 1 << 20
	lines.Buffer(nil, longest)
	for lines.Scan() {
		var e Entry
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.TS.IsZero() {
			bad++
			continue
		}
		yield(e)
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return bad + 1, nil
	}
	return bad, lines.Err()
}

// Clean removes the log of all days before a date (2006-01-02), and returns the number of removed files.
func Clean(disk durable.FS, dir, before string) (int, error) {
	files, err := Files(dir)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, file := range files {
		if file.Date >= before {
			continue
		}
		if err := disk.Remove(filepath.Join(dir, file.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return n, fmt.Errorf("log: %w", err)
		}
		n++
	}
	return n, nil
}
