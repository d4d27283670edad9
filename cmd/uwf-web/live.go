package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/threadid"
)

const (
	lookAt   = 150 * time.Millisecond // between two looks at the files; each takes some 50 µs
	settle   = 50 * time.Millisecond  // changes within this time are reported as one
	ping     = 20 * time.Second       // detects a lost connection
	calm     = 500 * time.Millisecond // between two events of a page of many threads
	maxLives = 24                     // pages with live updates
)

// events sends an event to an open page for each change.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	if s.lives.Add(1) > maxLives {
		s.lives.Add(-1)
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusServiceUnavailable, "too many live pages are open")
		return
	}
	defer s.lives.Add(-1)
	id := r.URL.Query().Get("thread")
	if id != "" && !threadid.Valid(id) {
		refuse(w, http.StatusNotFound, "thread not found")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for nginx
	out := http.NewResponseController(w)
	say := func(word string) bool {
		_ = out.SetWriteDeadline(s.env.Now().Add(ping)) // a failure means that the client disconnected
		_, err := fmt.Fprint(w, word)
		return err == nil && out.Flush() == nil
	}
	if !say("retry: 2000\ndata: begin\n\n") {
		return
	}
	seen := r.URL.Query().Get("seen")
	changed := changes(r.Context(), s.engine.Reader.Dirs, id, seen)
	last := s.markOf(r.Context(), id)
	if seen != "" && seen != prints(s.engine.Reader.Dirs, id) {
		last = mark{} // what changed before is not known
	}
	tick := time.NewTicker(ping)
	defer tick.Stop()
	for {
		word := ": still here\n\n"
		select {
		case <-r.Context().Done():
			return
		case _, open := <-changed:
			if !open {
				return
			}
			parts := r.URL.Query()["part"]
			if id != "" {
				parts, last = s.changedParts(r.Context(), id, last)
			} else {
				pause(r.Context(), calm)
			}
			if len(parts) == 0 {
				continue
			}
			data, err := json.Marshal(change{id, parts})
			if err != nil {
				return
			}
			word = fmt.Sprintf("data: %s\n\n", data)
		case <-tick.C:
		}
		if !say(word) {
			return
		}
	}
}

// change is the event that lists the parts that a page must fetch again.
type change struct {
	Thread string   `json:"thread,omitempty"`
	Parts  []string `json:"parts"`
}

// mark changes with what the page of a thread shows.
type mark struct{ thread, record, run string }

// markOf returns the current mark of a thread; the zero value for "".
func (s *server) markOf(ctx context.Context, id string) (m mark) {
	if id == "" {
		return m
	}
	head, ended, err := s.engine.Reader.Lookup(ctx, id)
	facts, _ := s.engine.Reader.Heads.Facts(ctx, id)
	data, _ := json.Marshal(facts) // all of it comes from JSON
	m.thread = fmt.Sprintln(head, ended != nil, err, string(data))
	started, _ := s.engine.Reader.Started(ctx, id) // none if it cannot be read
	for _, child := range started {
		m.thread += fmt.Sprintln(child.Thread, child.Head, child.Ended)
	}
	dir := s.engine.Reader.Dirs.Run(id)
	if info, err := os.Stat(filepath.Join(dir, runfiles.RecordFile)); err == nil {
		m.record = info.ModTime().String()
	}
	m.run = printsOf(dir)
	return m
}

// changedParts returns the parts of a thread's page that can have changed since a mark, and the mark now.
func (s *server) changedParts(ctx context.Context, id string, last mark) (parts []string, now mark) {
	now = s.markOf(ctx, id)
	switch {
	case now.thread != last.thread:
		parts = []string{"about", "act", "flight", "kids", "steps", "time", "facts", "graph"}
	case now.record != last.record:
		parts = []string{"about", "act", "flight", "kids"}
	case now.run != last.run:
		parts = []string{"flight"}
	}
	return parts, now
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// changes signals changes to the files that determine the state of threads until ctx is cancelled. With a
// thread, it includes the files of its step in flight. Pending changes are merged. It signals at once if
// something has changed since the fingerprint seen, unless that is "".
func changes(ctx context.Context, dirs home.Dirs, thread, seen string) <-chan struct{} {
	out := make(chan struct{}, 1)
	before := prints(dirs, thread)
	if seen != "" {
		before = seen
	}
	go func() {
		defer close(out)
		for ctx.Err() == nil {
			if now := prints(dirs, thread); now != before {
				before = now
				pause(ctx, settle) // another change can have the same time, and is then not noticed
				select {
				case out <- struct{}{}:
				default: // a signal is already pending
				}
			}
			pause(ctx, lookAt)
		}
	}()
	return out
}

// prints returns a fingerprint of the files.
func prints(dirs home.Dirs, thread string) string {
	if thread == "" {
		return printsOf(dirs.Home)
	}
	return printsOf(dirs.Home, dirs.Run(thread))
}

func printsOf(look ...string) string {
	sum := fnv.New64a()
	for _, dir := range look {
		entries, _ := os.ReadDir(dir) // a missing directory has no entries
		for _, entry := range entries {
			if info, err := entry.Info(); err == nil {
				fmt.Fprintln(sum, entry.Name(), info.Size(), info.ModTime().UnixNano())
			}
		}
	}
	return strconv.FormatUint(sum.Sum64(), 36)
}
