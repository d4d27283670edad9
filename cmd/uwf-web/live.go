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

	"github.com/fsnotify/fsnotify"

	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/runfiles"
)

const (
	settle   = 50 * time.Millisecond  // changes within this time are reported as one
	ping     = 20 * time.Second       // detects a lost connection
	calm     = 500 * time.Millisecond // between two events of a page of many threads
	lookAt   = time.Second            // polling interval where the system does not report changes
	maxLives = 24                     // pages with live updates: each needs a system watch
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
	if id != "" && !validThread(id) {
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
			parts := pageParts(r.URL.Query().Get("page"))
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

// change is the event that tells a page which of its parts to fetch again.
type change struct {
	Thread string   `json:"thread,omitempty"`
	Parts  []string `json:"parts"`
}

// pageParts returns the live parts of a page of many threads.
func pageParts(page string) []string {
	if page == "threads" {
		return []string{"threads"}
	}
	return []string{"waiting", "running"}
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
	watcher, unwatched := watched(dirs, thread)
	now := prints(dirs, thread)
	if seen != "" && seen != now {
		tell(out)
	}
	go func() {
		defer close(out)
		if unwatched == nil {
			listen(ctx, watcher, dirs, thread, out)
			return
		}
		poll(ctx, dirs, thread, now, out)
	}()
	return out
}

func watched(dirs home.Dirs, thread string) (*fsnotify.Watcher, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := w.Add(dirs.Home); err != nil {
		_ = w.Close()
		return nil, err
	}
	if thread != "" {
		_ = w.Add(filepath.Dir(dirs.Run(thread))) // the directory may be created later
		_ = w.Add(dirs.Run(thread))
	}
	return w, nil
}

func listen(ctx context.Context, w *fsnotify.Watcher, dirs home.Dirs, thread string, out chan<- struct{}) {
	defer w.Close()
	settled := time.NewTimer(time.Hour)
	settled.Stop()
	waiting := false
	for {
		select {
		case <-ctx.Done():
			return
		case ev, open := <-w.Events:
			if !open {
				return
			}
			if thread != "" && ev.Has(fsnotify.Create) && (ev.Name == dirs.Run(thread) ||
				ev.Name == filepath.Dir(dirs.Run(thread))) {
				_ = w.Add(ev.Name)
				_ = w.Add(dirs.Run(thread))
			}
			if !waiting {
				waiting = true
				settled.Reset(settle)
			}
		case _, open := <-w.Errors: // events were lost
			if !open {
				return
			}
			if !waiting {
				waiting = true
				settled.Reset(settle)
			}
		case <-settled.C:
			waiting = false
			tell(out)
		}
	}
}

func poll(ctx context.Context, dirs home.Dirs, thread, before string, out chan<- struct{}) {
	look := time.NewTicker(lookAt)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if now := prints(dirs, thread); now != before {
			before = now
			tell(out)
		}
	}
}

func tell(out chan<- struct{}) {
	select {
	case out <- struct{}{}:
	default: // a signal is already pending
	}
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
