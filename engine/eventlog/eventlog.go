// Package eventlog keeps a log of what was done to threads: one file of JSON
// lines a day, named by the date in UTC, in the home directory. It is for people
// who ask later what happened; nothing reads it to decide anything, and losing it
// loses no thread.
//
// An entry never holds a prompt, an answer, or a command line: those may hold
// secrets, and are in the store or the run directory for whoever may read them.
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
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Entry is one line.
type Entry struct {
	TS       time.Time `json:"ts"`
	Pid      string    `json:"pid"` // start of the process in ms, "-", its id
	Tag      string    `json:"tag"` // what kind of event, such as step-done
	Msg      string    `json:"msg"`
	Thread   string    `json:"thread,omitempty"`
	Workflow string    `json:"workflow,omitempty"` // name
	Role     string    `json:"role,omitempty"`
	Agent    string    `json:"agent,omitempty"`
	Ms       int64     `json:"ms,omitempty"`   // how long it took
	Code     string    `json:"code,omitempty"` // of an error
}

// file is the log of a day.
type file struct {
	Name string `json:"name"`
	Size int64  `json:"size"` // bytes
	Date string `json:"date"` // 2006-01-02
}

const extension = ".jsonl"

// Append adds an entry to the log in dir. It is not flushed.
func Append(disk durable.FS, dir string, e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	if err := disk.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	// One write in append mode: entries of two processes do not mix.
	path := filepath.Join(dir, e.TS.UTC().Format(time.DateOnly)+extension)
	if err := disk.Append(path, append(line, '\n'), 0o600, durable.NoFlush); err != nil {
		return fmt.Errorf("log: %w", err)
	}
	return nil
}

// Files lists the log, newest day first. A missing directory is empty.
func Files(dir string) ([]file, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("log: %w", err)
	}
	files := []file{}
	for _, entry := range entries {
		date, ok := strings.CutSuffix(entry.Name(), extension)
		if _, err := time.Parse(time.DateOnly, date); !ok || err != nil {
			continue // not ours
		}
		info, err := entry.Info()
		if err != nil {
			continue // somebody has just removed it
		}
		files = append(files, file{Name: entry.Name(), Size: info.Size(), Date: date})
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(b.Date, a.Date) })
	return files, nil
}

// Filter chooses entries; the zero value takes all.
type Filter struct{ Thread, Process, Date string }

// Read returns the entries that a filter lets through, oldest first. bad is the
// number of lines that cannot be read.
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
	slices.SortStableFunc(entries, func(a, b Entry) int { return a.TS.Compare(b.TS) })
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

// Clean removes the log of all days before a date (2006-01-02), and returns how
// many files that were.
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
